/* host_call.h - one call of clfd_reference_attention on dense floats, for the tests to change step by step. */
#ifndef SUPPORT_HOST_CALL_H
#define SUPPORT_HOST_CALL_H

#include <clfd/clfd.h>

#define MAX_VALUES (1 << 18) /* per tensor */

/* The call, its tensors, K and V as [batch][token][kv_head][dim], and its results. */
extern clfd_attention attention;
extern clfd_host_tensors tensors;
extern float q[MAX_VALUES], k[MAX_VALUES], v[MAX_VALUES];
extern double out[MAX_VALUES], lse[MAX_VALUES];

/* Rows of q and out, and elements of each tensor. */
size_t num_rows(void);
size_t num_out(void);
size_t num_k(void);
size_t num_v(void);

/* Sets up a call on random values without options; every sequence has kv_len keys, and the scale is 1/4. */
void set_problem(uint32_t batch, uint32_t q_len, uint32_t num_q_heads, uint32_t num_kv_heads, uint32_t head_dim,
                 uint32_t head_dim_v, uint32_t kv_len);

/* The same, with queries of zeros: every visible key weighs the same, so that lse tells their number. */
void set_counting_problem(uint32_t batch, uint32_t q_len, uint32_t num_q_heads, uint32_t kv_len);

void fill(float *values, size_t count, float value);

/* Runs the reference over results filled with NaN, so that what it does not write is seen. */
void run(void);

/* Runs it and keeps the results, for later runs that must repeat them bit for bit. */
extern double kept_out[MAX_VALUES], kept_lse[MAX_VALUES];
void keep(void);
void assert_kept(void);

/* A row's out, the same in every element, and its lse. */
void assert_row(size_t row, double out_value, double lse_value);

/* A row of a counting problem sees this many keys. */
void assert_count(size_t row, unsigned count);

/* Copies rows [batch][token][head][dim] to where the strides say, into memory that is NaN elsewhere. The caller frees
 * it. */
float *scatter(const float *dense, const clfd_strides *strides, size_t batch, size_t tokens, size_t heads, size_t dim,
               size_t elements);

#endif
