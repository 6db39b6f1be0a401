#include "support/attention.h"
#include "support/random.h"
#include "support/suite.h"
#include "type.h"
#include <math.h>
#include <string.h>

enum { MAX_HEAD_DIM = 576 };

/* What is drawn from a source of its own, so that an option adds its values and changes no others. */
typedef enum drawn { DRAWN_HEADS, DRAWN_INDICES, DRAWN_MASK, DRAWN_BIAS, DRAWN_QUERIES, DRAWN_CACHE, NUM_DRAWN } drawn;

static random_source source_of(const attention_call *call, uint64_t identity)
{
    random_source source = {call->problem.seed * UINT64_C(0x9e3779b97f4a7c15) + identity};
    source.state = random_bits(&source);
    return source;
}

static random_source sequence_source(const attention_call *call, uint32_t batch, drawn what)
{
    const uint64_t identity = call->problem.identities != NULL ? call->problem.identities[batch] : batch;
    return source_of(call, identity * NUM_DRAWN + what);
}

/* Starts, positions and cache rows that the problem does not give: what decides which keys are seen. */
static void draw_indices(attention_call *call)
{
    const attention_problem *const p = &call->problem;
    const uint32_t q_len = call->complete.q_len, rows = call->complete.num_cache_rows;
    index_array *const indices = call->indices;

    for (uint32_t b = 0; b < call->batch; b++) {
        random_source source = sequence_source(call, b, DRAWN_INDICES);
        const int32_t length = (int32_t)attention_kv_len(call, b);
        if (b < call->sequences && call->complete.kv_start && p->kv_start == NULL)
            indices[ATTENTION_START].values[b] = (int32_t)random_below(&source, (uint32_t)length / 2 + 2) - 1;
        for (uint32_t i = 0; call->complete.query_positions && p->query_positions == NULL && i < q_len; i++)
            indices[ATTENTION_POSITIONS].values[b * q_len + i] =
                length - (int32_t)(q_len - i) + (int32_t)random_below(&source, 9) - 4;
        if (b < call->sequences && call->complete.cache_batch_idx && p->cache_batch_idx == NULL)
            indices[ATTENTION_CACHE_ROWS].values[b] = (int32_t)(rows - 1 - b % rows);
    }
}

static void draw_heads(attention_call *call)
{
    random_source source = source_of(call, DRAWN_HEADS);
    tensor_image *const images = call->images;

    for (uint32_t h = 0; h < call->complete.num_q_heads; h++) {
        const float slope = random_uniform(&source, -0.02f, 0.1f), sink = 2.0f * random_normal(&source);
        if (call->complete.alibi)
            image_put(&images[ATTENTION_ALIBI], 0, 0, 0, h, slope);
        if (call->complete.sinks)
            image_put(&images[ATTENTION_SINKS], 0, 0, 0, h, sink);
    }
    for (uint32_t h = 0; h < call->complete.num_kv_heads; h++)
        for (int tensor = ATTENTION_K_SCALE; tensor <= ATTENTION_V_SCALE; tensor++) {
            const float scale = random_uniform(&source, 0.25f, 2.0f);
            if (images[tensor].data != NULL &&
                !clfd_type_is_grouped(images[tensor - ATTENTION_K_SCALE + ATTENTION_K].type))
                image_put(&images[tensor], 0, 0, h, 0, scale);
        }
}

/* Bytes of 0 and others, about one in three 0; words of any bits. */
static void draw_mask(attention_call *call, uint32_t batch)
{
    random_source source = sequence_source(call, batch, DRAWN_MASK);
    tensor_image *const mask = &call->images[ATTENTION_MASK];

    for (uint32_t i = 0; i < call->complete.q_len; i++) {
        const uint32_t word = (uint32_t)random_bits(&source) | 1u << i;
        if (call->complete.mask == CLFD_MASK_TREE)
            memcpy(image_at(mask, batch, i, 0, 0), &word, sizeof word);
        for (uint32_t j = 0; call->complete.mask == CLFD_MASK_BOOL && j < attention_kv_len(call, batch); j++)
            *image_at(mask, batch, i, 0, j) = (unsigned char)(random_below(&source, 3) * 127);
    }
}

/* For the keys that the row sees; one in 16 is -inf. */
static void draw_bias(attention_call *call, uint32_t batch)
{
    random_source source = sequence_source(call, batch, DRAWN_BIAS);
    tensor_image *const bias = &call->images[ATTENTION_BIAS];

    for (uint32_t i = 0; i < bias->tokens; i++)
        for (uint32_t h = 0; h < bias->heads; h++)
            for (uint32_t j = 0; j < attention_kv_len(call, batch); j++) {
                const float value = random_normal(&source);
                const bool hides = random_below(&source, 16) == 0;
                if (attention_sees(call, batch, i, j))
                    image_put(bias, batch, i, h, j, hides ? -INFINITY : value);
            }
}

static bool seen_by_any(const attention_call *call, uint32_t sequence, uint32_t key)
{
    const uint32_t end = call->complete.shared_kv ? call->batch : sequence + 1;

    for (uint32_t b = sequence; b < end; b++)
        for (uint32_t i = 0; i < call->complete.q_len; i++)
            if (attention_sees(call, b, i, key))
                return true;
    return false;
}

static void draw_cache(attention_call *call, uint32_t sequence)
{
    random_source source = sequence_source(call, sequence, DRAWN_CACHE);
    float row[MAX_HEAD_DIM];
    key_place place;

    for (uint32_t j = 0; j < attention_kv_len(call, sequence); j++) {
        const bool seen = seen_by_any(call, sequence, j) && attention_find_key(call, sequence, j, &place);
        for (int tensor = ATTENTION_K; tensor <= (call->complete.v_from_k ? ATTENTION_K : ATTENTION_V); tensor++)
            for (uint32_t h = 0; h < call->complete.num_kv_heads; h++) {
                random_fill_normal(&source, row, call->images[tensor].dim, 1.0f);
                if (seen)
                    attention_put_row(call, (attention_tensor)tensor, &place, h, row);
            }
    }
}

static void draw_queries(attention_call *call, uint32_t batch)
{
    random_source source = sequence_source(call, batch, DRAWN_QUERIES);
    tensor_image *const q = &call->images[ATTENTION_Q];

    for (uint32_t i = 0; i < q->tokens; i++)
        for (uint32_t h = 0; h < q->heads; h++)
            for (uint32_t d = 0; d < q->dim; d++)
                image_put(q, batch, i, h, d, random_normal(&source));
}

void attention_draw_values(attention_call *call)
{
    draw_indices(call);
    for (uint32_t b = 0; b < call->batch && call->complete.mask != CLFD_MASK_NONE; b++)
        draw_mask(call, b);
    if (call->complete.paging != CLFD_PAGING_NONE)
        attention_make_block_table(call);
    draw_heads(call);
    for (uint32_t b = 0; b < call->batch; b++) {
        draw_queries(call, b);
        if (b < call->sequences)
            draw_cache(call, b);
        if (call->complete.bias_type != CLFD_TYPE_DEFAULT)
            draw_bias(call, b);
    }
}
