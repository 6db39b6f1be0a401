/* append_loop.c - the loop of clfd/cache.h, as it stands there. */
#include "support/append_case.h"
#include "type.h"
#include <math.h>
#include <string.h>

enum { MAX_DIM = 576 };

static int64_t clamped(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

int64_t append_kv_len(const append_call *call, uint32_t b)
{
    return call->problem.kv_lens == NULL ? 0 : clamped(call->problem.kv_lens[b], 0, call->attention.max_kv_len);
}

int64_t append_count(const append_call *call, uint32_t b)
{
    return call->append.ragged ? clamped(call->problem.new_lens[b], 0, call->append.num_tokens)
                               : call->append.num_tokens;
}

uint32_t append_find_token(const append_call *call, uint32_t b, int64_t token, uint32_t *page, uint32_t *within)
{
    const clfd_attention *const a = &call->attention;
    const append_problem *const p = &call->problem;
    const int64_t row = a->cache_batch_idx ? p->cache_batch_idx[b] : (int64_t)b;
    const int64_t number = a->paging == CLFD_PAGING_NONE ? 0 : token / a->page_size;
    int32_t id;

    if (row < 0 || row >= a->num_cache_rows)
        return CLFD_FLAG_CACHE_ROW;
    if (token >= a->max_kv_len)
        return CLFD_FLAG_CAPACITY;
    *page = (uint32_t)row;
    *within = (uint32_t)token;
    if (a->paging == CLFD_PAGING_NONE)
        return 0;
    if (a->paging == CLFD_PAGING_TABLE) {
        id = p->block_table[row * a->block_table_stride + number];
    } else {
        const int64_t index = p->page_indptr[row] + number;
        id = index >= 0 && index < p->page_indptr[row + 1] && index < (int64_t)p->num_page_indices
                 ? p->block_table[index]
                 : -1;
    }
    if (id < 0 || id >= (int64_t)a->num_pages)
        return CLFD_FLAG_PAGE;
    *page = (uint32_t)id;
    *within = (uint32_t)(token % a->page_size);
    return 0;
}

static void rotate(const append_call *call, float *row, int64_t position)
{
    const clfd_append *const p = &call->append;
    const uint32_t half = p->rotary_dim / 2;
    const int64_t r = clamped(position, 0, (int64_t)p->max_positions - 1);

    for (uint32_t i = 0; i < half; i++) {
        const bool neox = p->rope == CLFD_ROPE_NEOX;
        float *const a = row + p->rotary_start + (neox ? i : 2 * i);
        float *const b = row + p->rotary_start + (neox ? i + half : 2 * i + 1);
        const float cosine = call->cos[r * half + i], sine = call->sin[r * half + i];
        const float a_cos = *a * cosine, b_sin = *b * sine, b_cos = *b * cosine, a_sin = *a * sine;
        *a = a_cos - b_sin;
        *b = b_cos + a_sin;
    }
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static float rounded_to(clfd_type type, float value)
{
    unsigned char bytes[sizeof(float)];
    float rounded;

    clfd_convert_from_float(type, &value, bytes, 1);
    clfd_convert_to_float(type, bytes, &rounded, 1);
    return rounded;
}

static void store_code(clfd_type type, unsigned char *codes, uint32_t d, int code)
{
    if (type == CLFD_TYPE_INT8)
        codes[d] = (unsigned char)code;
    else if (d % 2 == 0)
        codes[d / 2] = (unsigned char)((codes[d / 2] & 0xf0) | (code & 15));
    else
        codes[d / 2] = (unsigned char)((codes[d / 2] & 15) | (code & 15) << 4);
}

/* Scales that have been rounded to f16, and the zeros and codes that suit them. */
static void round_scales(clfd_type type, const clfd_quant *quant, uint32_t dim, const float *row, unsigned char *codes,
                         float *scales, float *zeros)
{
    const float most = type == CLFD_TYPE_INT8 ? 127.0f : 7.0f, least = zeros != NULL ? -most - 1.0f : -most;

    for (uint32_t g = 0; g < dim / quant->group; g++) {
        const float scale = scales[g] = rounded_to(CLFD_TYPE_F16, scales[g]);
        float low = 0.0f, zero = 0.0f;
        for (uint32_t d = g * quant->group; d < (g + 1) * quant->group; d++)
            low = fminf(low, row[d]);
        const bool usable = scale > 0.0f && isfinite(scale);
        if (zeros != NULL)
            zero = zeros[g] = usable ? fminf(fmaxf(least - rintf(low / scale), least), most) : 0.0f;
        for (uint32_t d = g * quant->group; d < (g + 1) * quant->group; d++)
            store_code(type, codes, d, usable ? (int)fminf(fmaxf(rintf(row[d] / scale) + zero, least), most) : 0);
    }
}

/* Writes row (page, within, head) of K or V, with its scales. */
static void write_row(append_call *call, append_tensor tensor, uint32_t page, uint32_t within, uint32_t head,
                      const float *row)
{
    const clfd_attention *const a = &call->attention;
    const bool is_k = tensor == APPEND_K;
    const clfd_type type = is_k ? a->k_type : a->v_type;
    const clfd_quant *const quant = is_k ? &a->k_quant : &a->v_quant;
    const uint32_t dim = is_k ? a->head_dim : a->head_dim_v;
    const append_tensor scale = is_k ? APPEND_K_SCALE : APPEND_V_SCALE, zero = is_k ? APPEND_K_ZERO : APPEND_V_ZERO;
    unsigned char *const codes = call->images[tensor].expected + append_row_at(call, tensor, page, within, head);
    float scales[MAX_DIM], zeros[MAX_DIM];

    if (clfd_type_has_scales(type) && !clfd_type_is_grouped(type))
        clfd_convert_to_float(quant->scale_type,
                              call->images[scale].data + append_scale_at(call, scale, page, within, head, 0), scales,
                              1);
    clfd_quantise_row(type, dim, quant->group, row, codes, scales, quant->zeros ? zeros : NULL);
    if (!clfd_type_is_grouped(type))
        return;
    if (quant->scale_type == CLFD_TYPE_F16)
        round_scales(type, quant, dim, row, codes, scales, quant->zeros ? zeros : NULL);
    for (uint32_t g = 0; g < dim / quant->group; g++) {
        clfd_convert_from_float(quant->scale_type, &scales[g],
                                call->images[scale].expected + append_scale_at(call, scale, page, within, head, g), 1);
        if (quant->zeros)
            clfd_convert_from_float(quant->scale_type, &zeros[g],
                                    call->images[zero].expected + append_scale_at(call, zero, page, within, head, g),
                                    1);
    }
}

static void append_token(append_call *call, uint32_t b, uint32_t t, int64_t position, uint32_t page, uint32_t within)
{
    const clfd_attention *const a = &call->attention;
    const clfd_type type = call->append.new_type;
    float row[MAX_DIM];

    for (uint32_t g = 0; g < a->num_kv_heads; g++) {
        clfd_convert_to_float(type, call->images[APPEND_NEW_K].data + append_row_at(call, APPEND_NEW_K, b, t, g), row,
                              a->head_dim);
        if (call->append.rope != CLFD_ROPE_NONE)
            rotate(call, row, position);
        write_row(call, APPEND_K, page, within, g, row);
        if (a->v_from_k)
            continue;
        clfd_convert_to_float(type, call->images[APPEND_NEW_V].data + append_row_at(call, APPEND_NEW_V, b, t, g), row,
                              a->head_dim_v);
        write_row(call, APPEND_V, page, within, g, row);
    }
}

static void rotate_queries(append_call *call, uint32_t b, uint32_t t, int64_t position)
{
    const clfd_attention *const a = &call->attention;
    float row[MAX_DIM];

    for (uint32_t h = 0; h < a->num_q_heads; h++) {
        const size_t at = append_row_at(call, APPEND_Q, b, t, h);
        clfd_convert_to_float(a->q_type, call->images[APPEND_Q].data + at, row, a->head_dim);
        rotate(call, row, position);
        clfd_convert_from_float(a->q_type, row, call->images[APPEND_Q].expected + at, a->head_dim);
    }
}

void append_loop(append_call *call)
{
    uint32_t status = call->problem.status, page, within;

    for (uint32_t b = 0; b < call->batch; b++) {
        const int64_t kv_len = append_kv_len(call, b), count = append_count(call, b);
        for (uint32_t t = 0; t < count; t++) {
            const int64_t position =
                call->append.positions ? call->problem.positions[b * call->append.num_tokens + t] : kv_len + t;
            const uint32_t flag = append_find_token(call, b, kv_len + t, &page, &within);
            if (call->append.rope_q)
                rotate_queries(call, b, t, position);
            if (flag == 0)
                append_token(call, b, t, position, page, within);
            status |= flag;
        }
        const int64_t sum = kv_len + count, most = call->attention.max_kv_len;
        const int32_t length = (int32_t)(sum < most ? sum : most);
        const append_image *const lengths = &call->images[APPEND_KV_LENS_OUT];
        memcpy(lengths->expected + lengths->offset + b * sizeof length, &length, sizeof length);
    }
    memcpy(call->images[APPEND_STATUS].expected + call->images[APPEND_STATUS].offset, &status, sizeof status);
}
