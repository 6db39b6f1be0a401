/* decode_cases.h - what every decode family must get right, as tables of problems that are compared with the reference.
 * Each function is the body of one test. */
#ifndef TEST_SUPPORT_DECODE_CASES_H
#define TEST_SUPPORT_DECODE_CASES_H

#include "support/attention.h"

/* How a test chooses the kernel. A program is built for each number of rows per block, each type and each dim; on CPUs
 * that takes seconds for kernels full of barriers. */
typedef struct decode_family {
    const char *tuning; /* NULL: what the device gets by itself */
    uint32_t ratio;     /* query heads per KV head, except where ratios are the point */
    bool choice;        /* only the first few rows of tables that build a program each */
} decode_family;

/* The forms of the kernels through which rules are tested that every one of them must keep, in blocks of two rows: what
 * the device gets by itself, the reference row, the blocked vectors of either width, lanes with steps loaded ahead. */
#define NUM_DECODE_FORMS 4
extern const decode_family decode_forms[NUM_DECODE_FORMS];

/* f16 q, K and V, f32 out, dim 64, two KV heads, splits of 32 tokens, at most 200 tokens. */
attention_problem decode_case(const decode_family *family);

/* Lengths round every tile and every split, below 0 and beyond the bound, under every policy. */
void verify_lengths(const decode_family *family);
void verify_bounds(const decode_family *family);

/* Strides, offsets, broadcasts, and rows that keep no more than an element's alignment. */
void verify_layouts(const decode_family *family);
void verify_unaligned(const decode_family *family);

/* Pages of one token, as long as a tile of 16, and as long as several; their order changes no bit. */
void verify_pages(const decode_family *family);

/* Numbers of KV heads that do and do not divide into those that take turns in one item. */
void verify_kv_heads(const decode_family *family);

/* q_len 1..16, with and without causal, down to sequences shorter than q_len. */
void verify_queries(const decode_family *family);

/* Queries whose rows of a block see different keys, in splits of 32 tokens and in three. */
void verify_masked_queries(const decode_family *family, uint32_t q_len);

/* Scores so great that they lie 16 apart, in units of log2, and rise by as much from key to key of a warp: whatever the
 * weights, all keys have one V, which comes out. */
void verify_coarse_scores(const decode_family *family);

/* head_dim and head_dim_v, V of its own and V from K. */
void verify_dims(const decode_family *family);

/* Types of q, K and V, and out, with both partial formats. */
void verify_types(const decode_family *family);

/* From 1 to 8 rows per block, of several heads or of several queries; head ratios that need several passes, whose last
 * block is not full. */
void verify_row_blocks(const decode_family *family);
void verify_ratios(const decode_family *family);

#endif
