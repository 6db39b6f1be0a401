/* reference_cache.c - where a row of the cache is, and the numbers that it holds. */
#include "host/dequantise.h"
#include "host/reference_parts.h"
#include "type.h"

/* A token's place: cache row and token, or page and token within it. */
typedef struct place {
    int64_t batch, token;
} place;

/* K or V: all that it takes to read a row. */
typedef struct tensor {
    clfd_type type;
    uint32_t dim;
    const void *data, *scales, *zeros;
    const clfd_strides *strides;
    const clfd_quant *quant;
} tensor;

int64_t clfd_sequence_length(const clfd_reference *r, uint32_t batch)
{
    const int64_t max_kv_len = r->attention.max_kv_len, given = r->tensors.kv_len_bound;
    const int64_t bound = given > 0 && given < max_kv_len ? given : max_kv_len;
    const int64_t length = r->tensors.kv_lens != NULL ? r->tensors.kv_lens[r->attention.shared_kv ? 0 : batch] : bound;

    return length < 0 ? 0 : length > bound ? bound : length;
}

clfd_sequence clfd_find_sequence(clfd_reference *r, uint32_t batch)
{
    const clfd_attention *a = &r->attention;
    const uint32_t index = a->shared_kv ? 0 : batch;
    clfd_sequence s = {.batch = batch, .cache_row = index, .kv_len = clfd_sequence_length(r, batch)};

    if (a->kv_start && r->tensors.kv_start[index] > 0)
        s.first = r->tensors.kv_start[index];
    if (a->cache_batch_idx)
        s.cache_row = r->tensors.cache_batch_idx[index];
    if (s.cache_row < 0 || s.cache_row >= a->num_cache_rows) {
        r->flags |= CLFD_FLAG_CACHE_ROW;
        s.first = s.kv_len;
    }
    return s;
}

static bool find_place(clfd_reference *r, const clfd_sequence *s, int64_t j, place *found)
{
    const clfd_attention *a = &r->attention;
    const clfd_host_tensors *t = &r->tensors;

    *found = (place){s->cache_row, j};
    if (a->paging == CLFD_PAGING_NONE)
        return true;
    int64_t entry = j / a->page_size;
    bool exists = true;
    if (a->paging == CLFD_PAGING_CSR) {
        entry += t->page_indptr[s->cache_row];
        exists = entry >= 0 && entry < t->page_indptr[s->cache_row + 1] && entry < t->num_page_indices;
    } else {
        entry += s->cache_row * a->block_table_stride;
    }
    *found = (place){exists ? t->block_table[entry] : -1, j % a->page_size};
    if (found->batch >= 0 && found->batch < a->num_pages)
        return true;
    r->flags |= CLFD_FLAG_PAGE;
    return false;
}

double clfd_load_number(clfd_type type, const void *array, int64_t i)
{
    float number;

    clfd_decode_row(type, 1, (const char *)array + (size_t)i * clfd_type_size(type), &number);
    return (double)number;
}

static int64_t offset_of(const clfd_strides *strides, const place *where, int64_t head)
{
    return where->batch * strides->batch + where->token * strides->token + head * strides->head;
}

static void load_row(const clfd_reference *r, const tensor *t, const place *where, uint32_t kv_head)
{
    const int64_t offset = offset_of(t->strides, where, kv_head);

    clfd_decode_row(t->type, t->dim, (const char *)t->data + (size_t)offset * clfd_type_size(t->type), r->loaded);
    if (!clfd_type_has_scales(t->type)) {
        for (uint32_t d = 0; d < t->dim; d++)
            r->kv_row[d] = (double)r->loaded[d];
        return;
    }
    const clfd_quant *quant = t->quant;
    int64_t index = offset_of(&quant->strides, where, kv_head);
    for (uint32_t d = 0; d < t->dim; index += quant->group_stride) {
        const double scale = clfd_load_number(quant->scale_type, t->scales, index);
        const double zero = quant->zeros ? clfd_load_number(quant->scale_type, t->zeros, index) : 0.0;
        for (const uint32_t end = d + quant->group; d < end; d++)
            r->kv_row[d] = ((double)r->loaded[d] - zero) * scale;
    }
}

bool clfd_load_key(clfd_reference *r, const clfd_sequence *s, int64_t j, uint32_t kv_head)
{
    const clfd_attention *a = &r->attention;
    const clfd_host_tensors *t = &r->tensors;
    const tensor k = {a->k_type, a->head_dim, t->k, t->k_scale, t->k_zero, &a->k_strides, &a->k_quant};
    place where;

    if (!find_place(r, s, j, &where))
        return false;
    load_row(r, &k, &where, kv_head);
    return true;
}

bool clfd_load_value(clfd_reference *r, const clfd_sequence *s, int64_t j, uint32_t kv_head)
{
    const clfd_attention *a = &r->attention;
    const clfd_host_tensors *t = &r->tensors;
    const tensor v = {.type = a->v_type,
                      .dim = a->head_dim_v,
                      .data = a->v_from_k ? t->k : t->v,
                      .scales = a->v_from_k ? t->k_scale : t->v_scale,
                      .zeros = a->v_from_k ? t->k_zero : t->v_zero,
                      .strides = &a->v_strides,
                      .quant = &a->v_quant};
    place where;

    if (!find_place(r, s, j, &where))
        return false;
    load_row(r, &v, &where, kv_head);
    return true;
}

void clfd_load_query(const clfd_reference *r, int64_t offset, double *row)
{
    const clfd_attention *a = &r->attention;

    clfd_decode_row(a->q_type, a->head_dim, (const char *)r->tensors.q + (size_t)offset * clfd_type_size(a->q_type),
                    r->loaded);
    for (uint32_t d = 0; d < a->head_dim; d++)
        row[d] = (double)r->loaded[d];
}
