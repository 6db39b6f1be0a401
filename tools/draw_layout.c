#include "verify_draw.h"

clfd_strides draw_strides(rng_state *rng, const draw_shape *shape, clfd_strides *given, verify_feature mark,
                          verify_trial *trial)
{
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const uint32_t kind = shape->explicit_strides ? 15 : rng_below(rng, 20);
    /* Dimensions 0 batch, 1 token, 2 head, slowest first. */
    const uint8_t *order = kind < 15 ? orders[shape->head_first ? 1 : 0] : PICK(rng, orders);
    int64_t strides[3], next = shape->inner;

    for (int i = 2; i >= 0; i--) {
        if (kind >= 15)
            next += (int64_t)shape->unit * rng_below(rng, 4);
        strides[order[i]] = next;
        next *= (int64_t)shape->counts[order[i]];
    }
    *given = (clfd_strides){0};
    if (kind >= 15) {
        *given = (clfd_strides){strides[0], strides[1], strides[2]};
        feature_add(&trial->features, mark);
    } else if (kind == 14) {
        /* One stride alone, the others by default. */
        strides[0] += shape->unit;
        given->batch = strides[0];
        feature_add(&trial->features, mark);
    }
    if (shape->may_broadcast && rng_chance(rng, 10)) {
        int64_t *const axes[] = {&given->batch, &given->token, &given->head};
        const uint32_t axis = rng_below(rng, 3);
        *axes[axis] = CLFD_STRIDE_BROADCAST;
        strides[axis] = 0;
        feature_add(&trial->features, mark == FEATURE_STRIDES ? FEATURE_BROADCAST : mark);
    }
    return (clfd_strides){strides[0], strides[1], strides[2]};
}

size_t draw_extent(const draw_shape *shape, const clfd_strides *strides)
{
    return (size_t)((int64_t)(shape->counts[0] - 1) * strides->batch +
                    (int64_t)(shape->counts[1] - 1) * strides->token +
                    (int64_t)(shape->counts[2] - 1) * strides->head) +
           shape->inner;
}

verify_placement draw_placement(rng_state *rng, size_t bytes, size_t element, size_t alignment)
{
    return (verify_placement){
        .present = true,
        .before = rng_chance(rng, 70) ? alignment * rng_between(rng, 1, 20) : 0,
        .bytes = bytes,
        .after = rng_chance(rng, 70) ? element * rng_between(rng, 1, 100) : 0,
    };
}

verify_placement draw_array(rng_state *rng, size_t count, size_t element)
{
    return draw_placement(rng, count * element, element, element);
}

draw_shape draw_cache_shape(const verify_trial *trial, uint32_t inner)
{
    const clfd_attention *a = &trial->attention;
    const bool paged = a->paging != CLFD_PAGING_NONE;
    const uint32_t rows = a->cache_batch_idx ? trial->num_cache_rows : a->shared_kv ? 1 : a->max_batch;

    return (draw_shape){
        .counts = {paged ? a->num_pages : rows, paged ? a->page_size : a->max_kv_len, a->num_kv_heads},
        .inner = inner,
        .unit = 1,
        .head_first = a->kv_layout == CLFD_LAYOUT_BHSD,
        .may_broadcast = true,
    };
}

/* Bytes that the base of a tensor is a multiple of where nothing more is promised. */
static uint32_t least_alignment(clfd_type type)
{
    return clfd_type_elements(type) == 32 ? 2 : (uint32_t)clfd_type_size(type);
}

static size_t greatest_divisor(size_t a, size_t b) { return b == 0 ? a : greatest_divisor(b, a % b); }

static size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

/* Units whose bytes are a multiple of 16. */
static uint32_t aligned_unit(clfd_type type) { return 16 / (uint32_t)greatest_divisor(16, clfd_type_size(type)); }

static draw_shape kv_shape(const verify_trial *trial, clfd_type type, uint32_t dim, bool aligned)
{
    draw_shape shape = draw_cache_shape(trial, dim / clfd_type_elements(type));

    shape.unit = aligned ? aligned_unit(type) : 1;
    return shape;
}

static verify_placement place_tensor(rng_state *rng, const draw_shape *shape, const clfd_strides *strides,
                                     clfd_type type, bool aligned)
{
    const size_t element = clfd_type_size(type);

    return draw_placement(rng, draw_extent(shape, strides) * element, element, aligned ? 16 : least_alignment(type));
}

/* Dense strides of which one, and those above it, take a stretch of `bytes` where the tensor alone takes less. */
static clfd_strides stretch(const draw_shape *shape, bool per_token, size_t bytes, clfd_type type)
{
    const int64_t units = (int64_t)(bytes / clfd_type_size(type)), inner = shape->inner;

    if (per_token)
        return (clfd_strides){units * (int64_t)shape->counts[1], units, inner};
    return shape->head_first ? (clfd_strides){units, inner, inner * (int64_t)shape->counts[1]}
                             : (clfd_strides){units, inner * (int64_t)shape->counts[2], inner};
}

/* K and V in one buffer: of each token, or of each cache row or page, first K and then V. */
static void draw_one_buffer(rng_state *rng, const draw_shape *k, const draw_shape *v, bool aligned, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    const size_t k_size = clfd_type_size(a->k_type), v_size = clfd_type_size(a->v_type), align = aligned ? 16 : 1;
    const size_t least = least_alignment(a->v_type), common = k_size / greatest_divisor(k_size, v_size) * v_size;
    const bool per_token = !k->head_first && rng_chance(rng, 50);
    const size_t rows = k->counts[2] * (per_token ? 1 : k->counts[1]);
    const size_t v_start = round_up(rows * k->inner * k_size, align > least ? align : least);
    const size_t bytes = round_up(v_start + rows * v->inner * v_size, common / greatest_divisor(common, align) * align);
    verify_placement *place = trial->placements;

    trial->one_buffer = true;
    trial->k = a->k_strides = stretch(k, per_token, bytes, a->k_type);
    trial->v = a->v_strides = stretch(v, per_token, bytes, a->v_type);
    if (rng_chance(rng, 15)) {
        /* One head for all of them. */
        a->k_strides.head = a->v_strides.head = CLFD_STRIDE_BROADCAST;
        trial->k.head = trial->v.head = 0;
        feature_add(&trial->features, FEATURE_BROADCAST);
    }
    const size_t v_bytes = draw_extent(v, &trial->v) * v_size;
    place[OPERAND_K] =
        draw_placement(rng, v_start + v_bytes, k_size, aligned ? 16 : least_alignment(a->k_type) * least);
    place[OPERAND_V] = place[OPERAND_K];
    place[OPERAND_V].before += v_start;
    place[OPERAND_V].bytes = v_bytes;
}

static void draw_kv(rng_state *rng, bool aligned, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;

    a->kv_layout = rng_chance(rng, 30) ? CLFD_LAYOUT_BHSD : CLFD_LAYOUT_BSHD;
    const draw_shape k = kv_shape(trial, a->k_type, a->head_dim, aligned);
    const draw_shape v = kv_shape(trial, a->v_type, a->head_dim_v, aligned);
    if (!a->v_from_k && rng_chance(rng, 20)) {
        draw_one_buffer(rng, &k, &v, aligned, trial);
        return;
    }
    trial->k = draw_strides(rng, &k, &a->k_strides, FEATURE_STRIDES, trial);
    trial->placements[OPERAND_K] = place_tensor(rng, &k, &trial->k, a->k_type, aligned);
    if (a->v_from_k)
        return;
    trial->v = draw_strides(rng, &v, &a->v_strides, FEATURE_STRIDES, trial);
    trial->placements[OPERAND_V] = place_tensor(rng, &v, &trial->v, a->v_type, aligned);
}

void draw_layout(rng_state *rng, bool aligned, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    const draw_shape q = {.counts = {a->max_batch, a->q_len, a->num_q_heads},
                          .inner = a->head_dim,
                          .unit = aligned ? aligned_unit(a->q_type) : 1};
    const draw_shape out = {.counts = {a->max_batch, a->q_len, a->num_q_heads},
                            .inner = a->head_dim_v,
                            .unit = aligned ? aligned_unit(a->out_type) : 1};
    verify_placement *place = trial->placements;

    trial->q = draw_strides(rng, &q, &a->q_strides, FEATURE_STRIDES, trial);
    trial->out = draw_strides(rng, &out, &a->out_strides, FEATURE_STRIDES, trial);
    place[OPERAND_Q] = place_tensor(rng, &q, &trial->q, a->q_type, aligned);
    place[OPERAND_OUT] = place_tensor(rng, &out, &trial->out, a->out_type, aligned);
    draw_kv(rng, aligned, trial);
    if (rng_chance(rng, 85))
        place[OPERAND_LSE] = draw_array(rng, (size_t)a->max_batch * a->q_len * a->num_q_heads, sizeof(float));
    place[OPERAND_WORKSPACE] = draw_placement(rng, 0, 1, 64);
    if (!aligned) {
        a->q_alignment = least_alignment(a->q_type);
        a->k_alignment = least_alignment(a->k_type);
        a->v_alignment = a->v_from_k ? 0 : least_alignment(a->v_type);
        a->out_alignment = least_alignment(a->out_type);
    }
}
