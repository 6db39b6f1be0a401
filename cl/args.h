/* args.h - the run-time arguments of the kernels, written once for both sides: the C host fills these structs and the
 * kernels receive them by value. Only 8-byte and 4-byte members, 4-byte ones in even numbers, so that both compilers lay
 * them out alike. Strides and offsets count elements of the tensor they belong to.
 */
#ifndef CLFD_ARGS_H
#define CLFD_ARGS_H

#ifdef __OPENCL_C_VERSION__
typedef long clfd_arg_long;
typedef int clfd_arg_int;
typedef uint clfd_arg_uint;
typedef float clfd_arg_float;

/* CLFD_FLAG_ bits of the status word (clfd/attention.h). */
#define FLAG_PAGE 1u
#define FLAG_CACHE_ROW 2u
#define FLAG_CAPACITY 4u
#else
#include <CL/cl.h>
typedef cl_long clfd_arg_long;
typedef cl_int clfd_arg_int;
typedef cl_uint clfd_arg_uint;
typedef cl_float clfd_arg_float;
#endif

/* What to divide by, as cl/divisor.cl has it. */
typedef struct divisor_args {
    clfd_arg_uint inverse;
    clfd_arg_int shift;
} divisor_args;

/* How the visible keys of a sequence are cut into splits. */
typedef struct split_args {
    clfd_arg_int grid_splits;  /* splits that have a slot in the grid and in the workspace */
    clfd_arg_int has_kv_lens;  /* 0: every length is max_kv_len */
    clfd_arg_int max_kv_len;   /* lengths are clamped to [0, max_kv_len] */
    clfd_arg_int num_splits;   /* COUNT and AUTO: splits per sequence at most */
    divisor_args by_tile;      /* split_tile */
    clfd_arg_int split_tile;   /* COUNT and AUTO: cuts fall on multiples of so many tokens from the first visible one */
    clfd_arg_int split_tokens; /* TOKENS: tokens per split; 0 under COUNT and AUTO */
} split_args;

/* How pages are found (cl/pages.cl). All 0 where the cache has none. */
typedef struct page_args {
    clfd_arg_long table_stride; /* elements of block_table from row to row; 0 under CSR */
    clfd_arg_int page_size;     /* tokens per page */
    clfd_arg_int page_shift;    /* log2 of page_size where that is a power of two */
    clfd_arg_int num_pages;     /* of the cache: page ids are below it */
    clfd_arg_int num_indices;   /* CSR: elements of block_table */
} page_args;

/* A tensor of K or of V: bytes from the start of the buffer. batch is the stride over cache rows, or over pages. */
typedef struct kv_args {
    clfd_arg_long offset, batch, token, head;
} kv_args;

/* Scales and zeros of K or of V, in elements; both share the strides. */
typedef struct scale_args {
    clfd_arg_long scale_offset, zero_offset, batch, token, head, group;
} scale_args;

/* A bias or a mask, in elements. */
typedef struct plane_args {
    clfd_arg_long offset, batch, head, query, key;
} plane_args;

typedef struct decode_args {
    /* First, and together, what every kernel asks for before it can read K: constants come by lines, each with a wait. */
    kv_args k;
    divisor_args by_splits, by_head_groups; /* split.grid_splits, head_groups */
    clfd_arg_int head_groups;               /* num_kv_heads / heads */
    clfd_arg_int num_kv_heads;
    split_args split;
    kv_args v;
    divisor_args by_passes, by_ratio; /* passes, ratio */
    clfd_arg_int passes;              /* blocks of DECODE_ROWS query rows per KV head */
    clfd_arg_int heads;               /* KV heads per item, a divisor of num_kv_heads */
    clfd_arg_int ratio;               /* query heads per KV head */
    clfd_arg_int q_len;
    clfd_arg_int sequences;     /* K and V sequences: the batch, or 1 that the whole batch shares */
    clfd_arg_int rows;          /* query rows per KV head of a K and V sequence */
    clfd_arg_int partial_slots; /* splits that the workspace has room for: the stride of slot */
    clfd_arg_int num_cache_rows;
    clfd_arg_int direct; /* 1: the grid has one split per row, which writes out and lse itself */
    clfd_arg_int has_lse, has_status;
    clfd_arg_int window;
    divisor_args by_blocks;  /* balanced: work-groups of a share */
    divisor_args by_shares;  /* balanced: num_shares */
    clfd_arg_int num_shares; /* balanced: shares that the tiles are cut into */
    clfd_arg_int min_tiles;  /* balanced: tiles of a share at least */
    clfd_arg_int items;      /* DECODE_LOOPS: passes, splits, heads and sequences in all */
    clfd_arg_int padding;
    clfd_arg_float scale, softcap;
    clfd_arg_long q_offset, q_batch, q_token, q_head;
    clfd_arg_long out_offset, out_batch, out_token, out_head;
    clfd_arg_long kv_lens_offset, lse_offset;
    clfd_arg_long partial_o_offset; /* floats from the start of the workspace: [batch][query][head][slot][dim] */
    clfd_arg_long stats_offset;     /* floats: [batch][query][head][slot], statistic after statistic */
    clfd_arg_long stats_stride;     /* floats from one statistic to the next */
    clfd_arg_long list_offset;      /* ints: what the merge must know of each sequence or item; see cl/schedule.cl */
    clfd_arg_long control_offset;   /* ints: the workspace's control region */
    clfd_arg_long alibi_offset, sinks_offset, positions_offset, kv_start_offset, cache_rows_offset, status_offset;
    clfd_arg_long block_table_offset, page_indptr_offset;
    page_args pages;
    scale_args k_scale, v_scale;
    plane_args bias, mask;
} decode_args;

/* Where a merge writes the statistics of its rows. */
typedef struct merge_stats_args {
    clfd_arg_long lse_offset, m_offset, l_offset;
    clfd_arg_int has_lse, has_m, has_l, padding;
} merge_stats_args;

typedef struct merge_args {
    clfd_arg_long o_offset;                   /* floats: states [row][slot][dim] */
    clfd_arg_long stat0_offset, stat1_offset; /* floats: [row][slot]; S, or m and l */
    clfd_arg_long out_offset, out_batch, out_token, out_head;
    clfd_arg_long sinks_offset;
    clfd_arg_long list_offset; /* ints: which states each row has; see cl/schedule.cl */
    merge_stats_args stats;
    clfd_arg_int num_rows; /* batch * q_len * num_q_heads */
    clfd_arg_int q_len, num_q_heads;
    clfd_arg_int partial_slots; /* the stride of slot */
    clfd_arg_int list;          /* a merge_list: where the states of a row are */
    clfd_arg_int has_sinks;
    clfd_arg_int ratio, heads, passes; /* MERGE_SHARES: as in decode_args */
    clfd_arg_int block_rows;           /* MERGE_SHARES: DECODE_ROWS */
} merge_args;

/* Which states of a row the merge takes. */
#define MERGE_ALL 0       /* every slot (clfd_enqueue_merge) */
#define MERGE_SEQUENCES 1 /* the first list[sequence] slots */
#define MERGE_SHARED 2    /* the first list[0] slots */
#define MERGE_SHARES 3    /* balanced: those of shares list[2 sequence] to list[2 sequence + 1] */

typedef struct merge_pair_args {
    clfd_arg_long o1_offset, stat0_1_offset, stat1_1_offset;
    clfd_arg_long o2_offset, stat0_2_offset, stat1_2_offset;
    clfd_arg_long out_offset;
    merge_stats_args stats;
} merge_pair_args;

/* A tensor of plain rows [batch][token][head], in elements. */
typedef struct row_args {
    clfd_arg_long offset, batch, token, head;
} row_args;

typedef struct append_args {
    row_args new_k, new_v, q;
    kv_args k, v;
    scale_args k_scale, v_scale; /* of fp8 the strides of groups, tokens and batch are 0 */
    clfd_arg_long block_table_offset, page_indptr_offset, cache_rows_offset;
    clfd_arg_long kv_lens_offset, kv_lens_out_offset, new_lens_offset;
    clfd_arg_long cos_offset, sin_offset, positions_offset, status_offset;
    page_args pages;
    clfd_arg_int num_sequences, num_tokens;
    clfd_arg_int num_kv_heads, num_q_heads;
    clfd_arg_int max_kv_len, num_cache_rows, max_positions;
    clfd_arg_int has_kv_lens, has_kv_lens_out, has_new_lens, has_cache_rows, has_positions, has_status;
    clfd_arg_int padding;
} append_args;

#endif
