#include "plan/append.h"
#include "plan/describe.h"
#include "plan/extent.h"
#include "type.h"
#include <stdio.h>

#define PIECE_DIMS 8u /* of a row without groups, on a GPU: neighbours write neighbouring bytes */
#define GPU_WORK_GROUP 64u
#define GGML_BLOCK 32u

/* ---- Footprints -------------------------------------------------------------------------------------------------- */

static clfd_footprint rows(const clfd_strides *strides, uint64_t batch, uint64_t tokens, uint64_t heads, uint32_t dim,
                           clfd_type type)
{
    const uint64_t unit = clfd_type_size(type);
    clfd_footprint footprint = clfd_footprint_run(clfd_row_units(type, dim) * unit);

    clfd_footprint_repeat(&footprint, batch, (uint64_t)strides->batch * unit);
    clfd_footprint_repeat(&footprint, tokens, (uint64_t)strides->token * unit);
    clfd_footprint_repeat(&footprint, heads, (uint64_t)strides->head * unit);
    return footprint;
}

/* Rows or pages of the cache, and tokens of each, that a call may touch. */
static uint64_t cache_regions(const clfd_attention *a, uint64_t batch)
{
    return a->paging != CLFD_PAGING_NONE ? a->num_pages : clfd_cache_rows(a, batch);
}

static uint64_t cache_tokens(const clfd_attention *a)
{
    return a->paging != CLFD_PAGING_NONE && a->page_size < a->max_kv_len ? a->page_size : a->max_kv_len;
}

static clfd_footprint cache(const clfd_attention *a, const clfd_strides *strides, uint32_t dim, clfd_type type,
                            uint64_t batch)
{
    return rows(strides, cache_regions(a, batch), cache_tokens(a), a->num_kv_heads, dim, type);
}

clfd_footprint clfd_append_k_footprint(const clfd_append *append, uint64_t batch)
{
    const clfd_attention *const a = append->attention;
    return cache(a, &a->k_strides, a->head_dim, a->k_type, batch);
}

clfd_footprint clfd_append_v_footprint(const clfd_append *append, uint64_t batch)
{
    const clfd_attention *const a = append->attention;
    return cache(a, &a->v_strides, a->head_dim_v, a->v_type, batch);
}

clfd_footprint clfd_append_new_k_footprint(const clfd_append *append, uint64_t batch)
{
    const clfd_attention *const a = append->attention;
    return rows(&append->new_k_strides, batch, append->num_tokens, a->num_kv_heads, a->head_dim, append->new_type);
}

clfd_footprint clfd_append_new_v_footprint(const clfd_append *append, uint64_t batch)
{
    const clfd_attention *const a = append->attention;
    return rows(&append->new_v_strides, batch, append->num_tokens, a->num_kv_heads, a->head_dim_v, append->new_type);
}

clfd_footprint clfd_append_q_footprint(const clfd_append *append, uint64_t batch)
{
    const clfd_attention *const a = append->attention;
    return rows(&a->q_strides, batch, append->num_tokens, a->num_q_heads, a->head_dim, a->q_type);
}

clfd_footprint clfd_append_scale_footprint(const clfd_append *append, const clfd_quant *quant, uint32_t dim,
                                           uint64_t batch)
{
    const clfd_attention *const a = append->attention;
    const uint64_t element = clfd_type_size(quant->scale_type);
    if (quant->group == 0)
        return clfd_footprint_run(0);
    clfd_footprint footprint =
        rows(&quant->strides, cache_regions(a, batch), cache_tokens(a), a->num_kv_heads, 1, quant->scale_type);

    clfd_footprint_repeat(&footprint, dim / quant->group, (uint64_t)quant->group_stride * element);
    return footprint;
}

/* ---- The kernel -------------------------------------------------------------------------------------------------- */

/* Dims that must be written together, else the given number. */
static uint32_t piece_dims(clfd_type type, const clfd_quant *quant, uint32_t otherwise)
{
    return clfd_type_is_grouped(type) ? quant->group : clfd_type_elements(type) == GGML_BLOCK ? GGML_BLOCK : otherwise;
}

clfd_append_pieces clfd_append_cut(const clfd_caps *caps, const clfd_append *append)
{
    const clfd_attention *const a = append->attention;
    const bool gpu = (caps->type & CL_DEVICE_TYPE_GPU) != 0;
    clfd_append_pieces pieces = {.work_group = gpu ? GPU_WORK_GROUP : 1};

    while (pieces.work_group > caps->max_work_group)
        pieces.work_group /= 2;
    pieces.k_dims = piece_dims(a->k_type, &a->k_quant, gpu ? PIECE_DIMS : a->head_dim);
    if (!a->v_from_k)
        pieces.v_dims = piece_dims(a->v_type, &a->v_quant, gpu ? PIECE_DIMS : a->head_dim_v);
    if (append->rope_q)
        pieces.q_pairs = gpu ? PIECE_DIMS / 2 : append->rotary_dim / 2;
    return pieces;
}

uint64_t clfd_append_items(const clfd_append *append, const clfd_append_pieces *pieces, uint64_t batch)
{
    const clfd_attention *const a = append->attention;
    const uint64_t k = a->head_dim / pieces->k_dims, v = pieces->v_dims == 0 ? 0 : a->head_dim_v / pieces->v_dims;
    const uint64_t q = pieces->q_pairs == 0 ? 0 : (append->rotary_dim / 2 + pieces->q_pairs - 1) / pieces->q_pairs;

    return batch * append->num_tokens * (a->num_kv_heads * (k + v) + a->num_q_heads * q);
}

int clfd_append_options(const clfd_caps *caps, const clfd_append *append, const clfd_append_pieces *pieces, char *text,
                        size_t bytes)
{
    const clfd_attention *const a = append->attention;

    return snprintf(
        text, bytes,
        "-DNEW_TYPE=%d -DQ_TYPE=%d -DK_TYPE=%d -DV_TYPE=%d -DHEAD_DIM=%u -DHEAD_DIM_V=%u -DAPPEND_K_DIMS=%u "
        "-DAPPEND_V_DIMS=%u -DAPPEND_Q_PAIRS=%u -DAPPEND_WG=%u -DK_ZEROS=%u -DV_ZEROS=%u "
        "-DK_SCALE_TYPE=%d -DV_SCALE_TYPE=%d -DROPE=%d -DROTARY_START=%u -DROTARY_DIM=%u -DKV_PAGED=%u "
        "-DKV_CSR=%d%s%s",
        (int)append->new_type, (int)a->q_type, (int)a->k_type, (int)a->v_type, a->head_dim, a->head_dim_v,
        pieces->k_dims, pieces->v_dims, pieces->q_pairs, pieces->work_group, a->k_quant.zeros, a->v_quant.zeros,
        (int)a->k_quant.scale_type, (int)a->v_quant.scale_type, (int)append->rope, append->rotary_start,
        append->rotary_dim, clfd_page_class(a), a->paging == CLFD_PAGING_CSR, caps->build_options[0] != '\0' ? " " : "",
        caps->build_options);
}

int clfd_append_describe(const clfd_append *append, const clfd_append_pieces *pieces, char *text, size_t bytes)
{
    static const char *const ropes[] = {[CLFD_ROPE_NONE] = "", [CLFD_ROPE_NEOX] = " neox", [CLFD_ROPE_GPTJ] = " gptj"};
    const clfd_attention *const a = append->attention;
    char types[64], dims[32], pages[32] = "", rotary[48] = "";

    if (a->k_type == a->v_type)
        snprintf(types, sizeof types, "%s kv%s", clfd_type_name(append->new_type), clfd_type_name(a->k_type));
    else
        snprintf(types, sizeof types, "%s k%s v%s", clfd_type_name(append->new_type), clfd_type_name(a->k_type),
                 clfd_type_name(a->v_type));
    if (a->head_dim == a->head_dim_v)
        snprintf(dims, sizeof dims, "d%u", a->head_dim);
    else
        snprintf(dims, sizeof dims, "d%u dv%u", a->head_dim, a->head_dim_v);
    if (a->paging != CLFD_PAGING_NONE)
        snprintf(pages, sizeof pages, " page%u%s", a->page_size, a->paging == CLFD_PAGING_CSR ? " csr" : "");
    if (append->rope != CLFD_ROPE_NONE)
        snprintf(rotary, sizeof rotary, "%s rotary%u+%u%s", ropes[append->rope], append->rotary_start,
                 append->rotary_dim, append->rope_q ? " q" : "");
    return snprintf(text, bytes, "append %s %s hkv%u tokens%u%s%s%s%s kdims=%u vdims=%u wg=%u", types, dims,
                    a->num_kv_heads, append->num_tokens, append->ragged ? " ragged" : "", pages,
                    a->v_from_k ? " v_from_k" : "", rotary, pieces->k_dims, pieces->v_dims, pieces->work_group);
}
