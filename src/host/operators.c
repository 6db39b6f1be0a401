/* operators.c - softmax states on the host: growing by keys, merging in pairs, in sequence, as a tree, round a ring.
 *
 * All of it is one operation, the merge of a set of (m, l, o) states: a key is the state (score, 1, v), and the LSE
 * form of a state is (S, 1, o). Each public function names its set and says where the result goes.
 */
#include <clfd/state.h>
#include <math.h>

#define CHUNK 128 /* dims accumulated at a time: 1 KiB of doubles on the stack, as nothing may be allocated */

/* A set of states: `first`, which is empty where it is left out (l is 0), and num_rest others in arrays. */
typedef struct state_set {
    float first_m, first_l;
    const float *first_o;
    size_t num_rest;
    const float *rest_m;
    const float *rest_l; /* NULL: 1 each */
    const float *rest_o; /* state i's o starts at rest_o[i * rest_stride] */
    size_t rest_stride;
} state_set;

/* m and l of one state or of a whole set: (-inf, 0) where it is empty, (NaN, NaN) where it is invalid. */
typedef struct statistics {
    double m, l;
} statistics;

/* Reads state i of a set, i <= num_rest. A state is invalid if m or l is NaN or +inf; it is empty if m is -inf or l
 * is 0. */
static statistics read_state(const state_set *set, size_t i)
{
    const float m = i == 0 ? set->first_m : set->rest_m[i - 1];
    const float l = i == 0 ? set->first_l : set->rest_l != NULL ? set->rest_l[i - 1] : 1.0f;

    if (!(m < INFINITY && l < INFINITY))
        return (statistics){NAN, NAN};
    if (m == -INFINITY || l == 0.0f)
        return (statistics){-INFINITY, 0.0};
    return (statistics){(double)m, (double)l};
}

/* What a valid state counts under the maximum of its set. The comparison keeps -inf - -inf away from exp. */
static double state_share(statistics state, double max) { return state.l == 0.0 ? 0.0 : state.l * exp(state.m - max); }

/* m and l of the whole set. */
static statistics count_set(const state_set *set)
{
    statistics total = {-INFINITY, 0.0};

    for (size_t i = 0; i <= set->num_rest; i++) {
        const statistics state = read_state(set, i);
        if (isnan(state.m))
            return state;
        if (state.m > total.m)
            total.m = state.m;
    }
    for (size_t i = 0; i <= set->num_rest; i++)
        total.l += state_share(read_state(set, i), total.m);
    return total;
}

/* o of the whole set, dims begin to begin + count. All inputs are read before out is written, which may be one. */
static void sum_set(const state_set *set, statistics total, size_t begin, size_t count, float *out)
{
    double sums[CHUNK];

    /* From -0 a single state's o is kept to the sign of its zeros. */
    for (size_t d = 0; d < count; d++)
        sums[d] = total.l == 0.0 ? 0.0 : isnan(total.l) ? NAN : -0.0;
    for (size_t i = 0; i <= set->num_rest && total.l > 0.0; i++) {
        const statistics state = read_state(set, i);
        if (state.l == 0.0)
            continue; /* the o of an empty state may hold anything */
        const float *o = (i == 0 ? set->first_o : set->rest_o + (i - 1) * set->rest_stride) + begin;
        const double weight = state_share(state, total.m) / total.l;
        for (size_t d = 0; d < count; d++)
            sums[d] += weight * (double)o[d];
    }
    for (size_t d = 0; d < count; d++)
        out[begin + d] = (float)sums[d];
}

/* The one operation: out becomes o of the set, and its m and l are returned. */
static statistics merge_set(const state_set *set, size_t dim, float *out)
{
    const statistics total = count_set(set);

    for (size_t begin = 0; begin < dim; begin += CHUNK)
        sum_set(set, total, begin, dim - begin < CHUNK ? dim - begin : CHUNK, out);
    return total;
}

/* Stores a result in either form. */
static void store_ml(statistics total, float *m, float *l)
{
    *m = (float)total.m;
    *l = (float)total.l;
}

static float lse_of(statistics total) { return (float)(total.l == 0.0 ? -INFINITY : total.m + log(total.l)); }

/* ---- One state, growing by keys ---------------------------------------------------------------------------------- */

void clfd_state_update(float *m, float *l, float *o, size_t dim, float score, const float *v)
{
    clfd_state_update_tile(m, l, o, dim, 1, &score, v, dim);
}

void clfd_state_update_tile(float *m, float *l, float *o, size_t dim, size_t num_keys, const float *scores,
                            const float *v, size_t v_stride)
{
    const state_set set = {*m, *l, o, num_keys, scores, NULL, v, v_stride};
    store_ml(merge_set(&set, dim, o), m, l);
}

void clfd_state_streams(size_t num_streams, size_t tile_len, size_t dim, size_t num_keys, const float *scores,
                        const float *v, size_t v_stride, float *stream_m, float *stream_l, float *stream_o, float *lse,
                        float *out)
{
    const state_set streams = {
        .num_rest = num_streams, .rest_m = stream_m, .rest_l = stream_l, .rest_o = stream_o, .rest_stride = dim};
    size_t stream = 0, count;

    for (size_t s = 0; s < num_streams; s++) {
        stream_m[s] = -INFINITY;
        stream_l[s] = 0.0f;
    }
    for (size_t begin = 0; begin < num_keys; begin += count) {
        count = num_keys - begin < tile_len ? num_keys - begin : tile_len;
        clfd_state_update_tile(&stream_m[stream], &stream_l[stream], dim > 0 ? stream_o + stream * dim : NULL, dim,
                               count, scores + begin, dim > 0 ? v + begin * v_stride : NULL, v_stride);
        stream = (stream + 1) % num_streams;
    }
    *lse = lse_of(merge_set(&streams, dim, out));
}

/* ---- Merging ----------------------------------------------------------------------------------------------------- */

void clfd_merge_pair_lse(const float *o1, float lse1, const float *o2, float lse2, size_t dim, float *o, float *lse)
{
    const state_set pair = {lse1, 1.0f, o1, 1, &lse2, NULL, o2, 0};
    *lse = lse_of(merge_set(&pair, dim, o));
}

void clfd_merge_pair_mlo(const float *o1, float m1, float l1, const float *o2, float m2, float l2, size_t dim, float *o,
                         float *m, float *l)
{
    const state_set pair = {m1, l1, o1, 1, &m2, &l2, o2, 0};
    store_ml(merge_set(&pair, dim, o), m, l);
}

void clfd_merge_lse(size_t num_states, const float *o, size_t o_stride, const float *lses, size_t dim, float *out,
                    float *lse)
{
    const state_set set = {.num_rest = num_states, .rest_m = lses, .rest_o = o, .rest_stride = o_stride};
    *lse = lse_of(merge_set(&set, dim, out));
}

/* Merges a state with nothing: the o of an empty one, which may hold anything, becomes 0. */
static void clear_ignored_o(float *m, float *l, float *o, size_t dim)
{
    clfd_state_update_tile(m, l, o, dim, 0, NULL, NULL, 0);
}

void clfd_merge_mlo_sequential(size_t num_states, const float *o, size_t o_stride, const float *ms, const float *ls,
                               size_t dim, float *out, float *m, float *l)
{
    *m = -INFINITY;
    *l = 0.0f;
    clear_ignored_o(m, l, out, dim);
    for (size_t i = 0; i < num_states; i++)
        clfd_merge_pair_mlo(out, *m, *l, dim > 0 ? o + i * o_stride : NULL, ms[i], ls[i], dim, out, m, l);
}

void clfd_merge_mlo_tree(size_t num_states, float *o, size_t o_stride, float *ms, float *ls, size_t dim)
{
    if (num_states > 0)
        clear_ignored_o(ms, ls, o, dim);
    for (size_t step = 1; step < num_states; step *= 2)
        for (size_t i = 0; i + step < num_states; i += 2 * step) {
            float *left = dim > 0 ? o + i * o_stride : NULL;
            const float *right = dim > 0 ? o + (i + step) * o_stride : NULL;
            clfd_merge_pair_mlo(left, ms[i], ls[i], right, ms[i + step], ls[i + step], dim, left, &ms[i], &ls[i]);
        }
}

void clfd_merge_ring_lse(size_t num_ranks, size_t rank, const float *o, size_t o_stride, const float *lses, size_t dim,
                         float *out, float *lse)
{
    clfd_merge_lse(0, NULL, 0, NULL, dim, out, lse); /* the empty state */
    for (size_t s = 0; s < num_ranks; s++) {
        const size_t shard = (rank + num_ranks - s) % num_ranks;
        clfd_merge_pair_lse(out, *lse, dim > 0 ? o + shard * o_stride : NULL, lses[shard], dim, out, lse);
    }
}

float clfd_state_lse(float m, float l)
{
    const state_set alone = {.first_m = m, .first_l = l};
    return lse_of(count_set(&alone));
}
