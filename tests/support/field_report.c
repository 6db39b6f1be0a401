#include "support/field_report.h"
#include <check.h>
#include <math.h>
#include <string.h>

const float report_nothing[576];

attention_problem report_problem(uint32_t num_q_heads, uint32_t num_kv_heads, uint32_t head_dim, clfd_type type,
                                 uint32_t capacity)
{
    return (attention_problem){.attention = {.num_q_heads = num_q_heads,
                                             .num_kv_heads = num_kv_heads,
                                             .head_dim = head_dim,
                                             .q_type = type,
                                             .out_type = F32,
                                             .max_kv_len = capacity}};
}

void report_split(attention_problem *problem, clfd_split_policy policy, uint32_t size)
{
    problem->attention.split_policy = policy;
    problem->attention.split_size = size;
}

void report_pages(attention_problem *problem, clfd_paging paging, uint32_t page_size)
{
    problem->attention.paging = paging;
    problem->attention.page_size = page_size;
}

void report_expect_empty(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head)
{
    const size_t bytes = call->complete.head_dim_v * sizeof(float);

    ck_assert_int_eq(memcmp(attention_out(call, batch, query, head), report_nothing, bytes), 0);
    ck_assert(call->lse[attention_row(call, batch, query, head)] == -INFINITY);
}
