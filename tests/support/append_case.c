#include "support/append_case.h"
#include "plan/extent.h"
#include "run/append.h"
#include "support/random.h"
#include "support/suite.h"
#include "type.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 192, MAX_DIM = 576 };

static void *allocate(size_t bytes)
{
    void *memory = calloc(bytes + 1, 1);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* ---- Where things are -------------------------------------------------------------------------------------------- */

static const clfd_strides *strides_of(const append_call *call, append_tensor tensor)
{
    const clfd_strides *const strides[APPEND_TENSORS] = {
        [APPEND_NEW_K] = &call->append.new_k_strides,
        [APPEND_NEW_V] = &call->append.new_v_strides,
        [APPEND_K] = &call->attention.k_strides,
        [APPEND_V] = &call->attention.v_strides,
        [APPEND_K_SCALE] = &call->attention.k_quant.strides,
        [APPEND_V_SCALE] = &call->attention.v_quant.strides,
        [APPEND_K_ZERO] = &call->attention.k_quant.strides,
        [APPEND_V_ZERO] = &call->attention.v_quant.strides,
        [APPEND_Q] = &call->attention.q_strides,
    };

    return strides[tensor];
}

static clfd_type type_of(const append_call *call, append_tensor tensor)
{
    const clfd_type types[APPEND_TENSORS] = {
        [APPEND_NEW_K] = call->append.new_type,
        [APPEND_NEW_V] = call->append.new_type,
        [APPEND_K] = call->attention.k_type,
        [APPEND_V] = call->attention.v_type,
        [APPEND_K_SCALE] = call->attention.k_quant.scale_type,
        [APPEND_V_SCALE] = call->attention.v_quant.scale_type,
        [APPEND_K_ZERO] = call->attention.k_quant.scale_type,
        [APPEND_V_ZERO] = call->attention.v_quant.scale_type,
        [APPEND_Q] = call->attention.q_type,
    };

    return types[tensor];
}

size_t append_row_at(const append_call *call, append_tensor tensor, uint32_t batch, uint32_t token, uint32_t head)
{
    const clfd_strides *const s = strides_of(call, tensor);
    const int64_t unit = batch * s->batch + token * s->token + head * s->head;
    const size_t at = call->images[tensor].offset + (size_t)unit * clfd_type_size(type_of(call, tensor));

    EXPECT(at < call->images[tensor].bytes, "a test reaches past a tensor of %zu bytes", call->images[tensor].bytes);
    return at;
}

size_t append_scale_at(const append_call *call, append_tensor tensor, uint32_t batch, uint32_t token, uint32_t head,
                       uint32_t group)
{
    const bool is_k = tensor == APPEND_K_SCALE || tensor == APPEND_K_ZERO;
    const clfd_quant *const quant = is_k ? &call->attention.k_quant : &call->attention.v_quant;

    return append_row_at(call, tensor, batch, token, head) +
           group * (size_t)quant->group_stride * clfd_type_size(quant->scale_type);
}

/* ---- Images ------------------------------------------------------------------------------------------------------ */

static void create_image(append_call *call, append_tensor tensor, uint64_t bytes)
{
    append_image *const image = &call->images[tensor];

    image->offset = GUARD;
    image->bytes = (size_t)bytes + 2 * GUARD;
    image->data = allocate(image->bytes);
    image->expected = allocate(image->bytes);
    memset(image->data, APPEND_GARBAGE, image->bytes);
}

static void create_rows(append_call *call, append_tensor tensor, clfd_footprint footprint)
{
    create_image(call, tensor, clfd_footprint_bytes(&footprint));
}

void append_put(append_call *call, append_tensor tensor, size_t index, float value)
{
    const clfd_type type = type_of(call, tensor);
    const append_image *const image = &call->images[tensor];

    clfd_convert_from_float(type, &value, image->data + image->offset + index * clfd_type_size(type), 1);
}

/* Rows of random values, in groups of very different magnitude. */
static void draw_rows(append_call *call, append_tensor tensor, uint32_t tokens, uint32_t heads, uint32_t dim,
                      random_source *source)
{
    const clfd_type type = type_of(call, tensor);
    float row[MAX_DIM];

    for (uint32_t b = 0; b < call->batch; b++)
        for (uint32_t t = 0; t < tokens; t++)
            for (uint32_t h = 0; h < heads; h++) {
                for (uint32_t d = 0; d < dim; d += 8)
                    random_fill_normal(source, row + d, 8, d % 32 == 0 ? 0.1f : 1.0f);
                clfd_convert_from_float(type, row, call->images[tensor].data + append_row_at(call, tensor, b, t, h),
                                        dim);
            }
}

/* The scales of fp8 are given; those of other types stay garbage. */
static void draw_scales(append_call *call, append_tensor tensor, clfd_type type, random_source *source)
{
    const clfd_type scale_type = type_of(call, tensor);

    if (!clfd_type_has_scales(type) || clfd_type_is_grouped(type))
        return;
    for (uint32_t h = 0; h < call->attention.num_kv_heads; h++) {
        const float scale = random_uniform(source, 0.01f, 0.1f);
        clfd_convert_from_float(scale_type, &scale, call->images[tensor].data + append_row_at(call, tensor, 0, 0, h),
                                1);
    }
}

static void create_images(append_call *call)
{
    const clfd_attention *const a = &call->attention;
    const clfd_append *const p = &call->append;
    const uint64_t batch = call->batch;

    create_rows(call, APPEND_NEW_K, clfd_append_new_k_footprint(p, batch));
    create_rows(call, APPEND_K, clfd_append_k_footprint(p, batch));
    if (clfd_type_has_scales(a->k_type))
        create_rows(call, APPEND_K_SCALE, clfd_append_scale_footprint(p, &a->k_quant, a->head_dim, batch));
    if (a->k_quant.zeros)
        create_rows(call, APPEND_K_ZERO, clfd_append_scale_footprint(p, &a->k_quant, a->head_dim, batch));
    if (!a->v_from_k) {
        create_rows(call, APPEND_NEW_V, clfd_append_new_v_footprint(p, batch));
        create_rows(call, APPEND_V, clfd_append_v_footprint(p, batch));
        if (clfd_type_has_scales(a->v_type))
            create_rows(call, APPEND_V_SCALE, clfd_append_scale_footprint(p, &a->v_quant, a->head_dim_v, batch));
        if (a->v_quant.zeros)
            create_rows(call, APPEND_V_ZERO, clfd_append_scale_footprint(p, &a->v_quant, a->head_dim_v, batch));
    }
    if (p->rope_q)
        create_rows(call, APPEND_Q, clfd_append_q_footprint(p, batch));
    create_image(call, APPEND_KV_LENS_OUT, batch * sizeof(int32_t));
    create_image(call, APPEND_STATUS, sizeof(uint32_t));
    memcpy(call->images[APPEND_STATUS].data + GUARD, &call->problem.status, sizeof(uint32_t));
}

static void draw_images(append_call *call)
{
    const clfd_attention *const a = &call->attention;
    const clfd_append *const p = &call->append;
    random_source source = {call->problem.seed + 1};

    draw_rows(call, APPEND_NEW_K, p->num_tokens, a->num_kv_heads, a->head_dim, &source);
    draw_scales(call, APPEND_K_SCALE, a->k_type, &source);
    if (!a->v_from_k) {
        draw_rows(call, APPEND_NEW_V, p->num_tokens, a->num_kv_heads, a->head_dim_v, &source);
        draw_scales(call, APPEND_V_SCALE, a->v_type, &source);
    }
    if (p->rope_q)
        draw_rows(call, APPEND_Q, p->num_tokens, a->num_q_heads, a->head_dim, &source);
    if (p->rope == CLFD_ROPE_NONE)
        return;
    const uint32_t half = p->rotary_dim / 2;
    call->cos = allocate((size_t)p->max_positions * half * sizeof(float));
    call->sin = allocate((size_t)p->max_positions * half * sizeof(float));
    for (uint32_t r = 0; r < p->max_positions; r++)
        for (uint32_t i = 0; i < half; i++) {
            const double angle = r * pow(10000.0, -(double)i / half);
            call->cos[r * half + i] = (float)cos(angle);
            call->sin[r * half + i] = (float)sin(angle);
        }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* The context whose device passes for a GPU, where the other form is wanted. */
static clfd_context *context_of(bool gpu)
{
    static clfd_context *as_gpu;
    test_session *const session = test_session_get();
    const clfd_context_options options = {.struct_size = sizeof options, .logger = test_logger(&session->heard)};

    if (gpu && as_gpu == NULL) {
        ck_assert_int_eq(clfd_context_create(session->cl, session->device, &options, &as_gpu), CLFD_SUCCESS);
        as_gpu->caps.type = CL_DEVICE_TYPE_GPU;
    }
    return gpu ? as_gpu : session->context;
}

append_call *append_open(const append_problem *problem)
{
    append_call *const call = allocate(sizeof *call);
    clfd_context *const context = context_of(problem->gpu);
    append_problem *const p = &call->problem;
    clfd_status status;

    *p = *problem;
    p->attention.struct_size = sizeof p->attention;
    p->append.struct_size = sizeof p->append;
    p->append.attention = &p->attention;
    status = clfd_append_plan_create(context, &p->append, &call->plan);
    ck_assert_msg(status == CLFD_SUCCESS, "%s: %s", clfd_status_string(status),
                  test_session_get()->heard.last[CLFD_LOG_ERROR]);
    ck_assert_int_eq(clfd_complete_append(&p->append, &call->append, &call->attention, NULL), CLFD_SUCCESS);
    call->batch = p->batch != 0 ? p->batch : call->attention.max_batch;
    create_images(call);
    draw_images(call);
    return call;
}

static void release_buffers(append_call *call)
{
    clfd_append_buffers *const b = &call->buffers;
    const clfd_buffer *const all[] = {&b->new_k,           &b->new_v,       &b->k,       &b->v,
                                      &b->k_scale,         &b->v_scale,     &b->k_zero,  &b->v_zero,
                                      &b->block_table,     &b->page_indptr, &b->kv_lens, &b->kv_lens_out,
                                      &b->new_lens,        &b->cos,         &b->sin,     &b->positions,
                                      &b->cache_batch_idx, &b->q,           &b->status};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->mem != NULL)
            clReleaseMemObject(all[i]->mem);
    memset(b, 0, sizeof *b);
}

void append_close(append_call *call)
{
    release_buffers(call);
    clfd_append_plan_release(call->plan);
    for (int i = 0; i < APPEND_TENSORS; i++) {
        free(call->images[i].data);
        free(call->images[i].expected);
    }
    free(call->cos);
    free(call->sin);
    free(call);
}

static clfd_buffer upload(const append_call *call, append_tensor tensor)
{
    const append_image *const image = &call->images[tensor];

    if (image->bytes == 0)
        return (clfd_buffer){.kind = CLFD_BUFFER_NONE};
    return test_buffer(test_buffer_create_from(CL_MEM_READ_WRITE, image->data, image->bytes), image->offset);
}

/* 4-byte values behind one that must not be read; NONE where there are none. */
static clfd_buffer upload_list(const void *values, size_t count)
{
    int32_t *list;
    clfd_buffer buffer;

    if (values == NULL)
        return (clfd_buffer){.kind = CLFD_BUFFER_NONE};
    list = allocate((count + 1) * sizeof *list);
    list[0] = INT32_MAX;
    memcpy(list + 1, values, count * sizeof *list);
    buffer = test_buffer(test_buffer_create_from(CL_MEM_READ_ONLY, list, (count + 1) * sizeof *list), sizeof *list);
    free(list);
    return buffer;
}

void append_upload(append_call *call)
{
    const clfd_attention *const a = &call->attention;
    const append_problem *const p = &call->problem;
    clfd_append_buffers *const b = &call->buffers;
    const uint64_t rows = clfd_cache_rows(a, call->batch);
    const size_t table = (size_t)call->append.max_positions * (call->append.rotary_dim / 2);
    uint64_t table_bytes;

    for (int i = 0; i < APPEND_TENSORS; i++)
        if (call->images[i].bytes != 0)
            memcpy(call->images[i].expected, call->images[i].data, call->images[i].bytes);
    append_loop(call);
    release_buffers(call);
    clfd_block_table_extent(a, call->batch, a->max_kv_len, &table_bytes);
    *b = (clfd_append_buffers){
        .struct_size = sizeof *b,
        .batch = call->batch,
        .num_page_indices = p->num_page_indices,
        .new_k = upload(call, APPEND_NEW_K),
        .new_v = upload(call, APPEND_NEW_V),
        .k = upload(call, APPEND_K),
        .v = upload(call, APPEND_V),
        .k_scale = upload(call, APPEND_K_SCALE),
        .v_scale = upload(call, APPEND_V_SCALE),
        .k_zero = upload(call, APPEND_K_ZERO),
        .v_zero = upload(call, APPEND_V_ZERO),
        .block_table = upload_list(
            p->block_table, a->paging == CLFD_PAGING_CSR ? p->num_page_indices : (size_t)table_bytes / sizeof(int32_t)),
        .page_indptr = upload_list(p->page_indptr, rows + 1),
        .cache_batch_idx = upload_list(p->cache_batch_idx, call->batch),
        .kv_lens = upload_list(p->kv_lens, call->batch),
        .kv_lens_out = upload(call, APPEND_KV_LENS_OUT),
        .new_lens = upload_list(p->new_lens, call->batch),
        .cos = upload_list(call->cos, table),
        .sin = upload_list(call->sin, table),
        .positions = upload_list(p->positions, (size_t)call->batch * call->append.num_tokens),
        .q = upload(call, APPEND_Q),
        .status = upload(call, APPEND_STATUS),
    };
}

void append_run(append_call *call)
{
    test_session *const session = test_session_get();
    const clfd_buffer *const of[APPEND_TENSORS] = {
        &call->buffers.new_k,   &call->buffers.new_v,       &call->buffers.k,      &call->buffers.v,
        &call->buffers.k_scale, &call->buffers.v_scale,     &call->buffers.k_zero, &call->buffers.v_zero,
        &call->buffers.q,       &call->buffers.kv_lens_out, &call->buffers.status};
    clfd_status status;

    append_upload(call);
    status = clfd_enqueue_append(call->plan, session->queue, &call->buffers, 0, NULL, NULL);
    ck_assert_msg(status == CLFD_SUCCESS, "%s: %s", clfd_status_string(status), session->heard.last[CLFD_LOG_ERROR]);
    for (int i = 0; i < APPEND_TENSORS; i++)
        if (call->images[i].bytes != 0)
            test_buffer_read(of[i]->mem, 0, call->images[i].data, call->images[i].bytes);
}

uint32_t append_status(const append_call *call)
{
    uint32_t status;

    memcpy(&status, call->images[APPEND_STATUS].data + GUARD, sizeof status);
    return status;
}

int32_t append_length(const append_call *call, uint32_t batch)
{
    int32_t length;

    memcpy(&length, call->images[APPEND_KV_LENS_OUT].data + GUARD + batch * sizeof length, sizeof length);
    return length;
}

void append_verify(const append_problem *problem)
{
    for (int gpu = 0; gpu <= 1; gpu++) {
        append_problem p = *problem;
        p.gpu = gpu;
        append_call *const call = append_open(&p);
        append_run(call);
        append_expect_loop(call);
        append_close(call);
    }
}
