/* field_report.h - what the tests of FIELD_REPORTS.md share: faults that were reported against other decode-attention and
 * OpenCL projects, each as the small case that shows it. */
#ifndef TEST_SUPPORT_FIELD_REPORT_H
#define TEST_SUPPORT_FIELD_REPORT_H

#include "support/attention.h"

#define F32 CLFD_TYPE_F32
#define F16 CLFD_TYPE_F16
#define BF16 CLFD_TYPE_BF16

/* One sequence of one query; type is that of q, K and V; out is f32. */
attention_problem report_problem(uint32_t num_q_heads, uint32_t num_kv_heads, uint32_t head_dim, clfd_type type,
                                 uint32_t capacity);

void report_split(attention_problem *problem, clfd_split_policy policy, uint32_t size);
void report_pages(attention_problem *problem, clfd_paging paging, uint32_t page_size);

/* out of a row is 0 and lse -inf. */
void report_expect_empty(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head);

extern const float report_nothing[576];

#endif
