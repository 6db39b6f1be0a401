/* decode_store.cl - where a row's result goes: to out and lse, or as a partial state to the workspace.
 *
 * Tunables: those of decode.cl.
 */
#ifndef CLFD_DECODE_STORE_CL
#define CLFD_DECODE_STORE_CL

#include "decode.cl"

/* The place of a row's partial state. */
static inline long decode_state(const decode_args *args, const decode_item *item, const decode_row *row)
{
    return row->state + (DECODE_BALANCED ? (long)item->slot * (decode_heads(args) * DECODE_ROWS) : item->slot);
}

/* What a directly written row's o is multiplied by for the sake of its sink. m in natural units. */
static inline float decode_sink_share_natural(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                              const decode_row *row, float m, float l)
{
#if DECODE_SINKS
    if (item->direct)
        return state_sink(state_lse(m, l), in->sinks[args->sinks_offset + row->head]).y;
#endif
    return 1.0f;
}

/* The same of m in log2 units. */
static inline float decode_sink_share(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                      const decode_row *row, float m, float l)
{
    return decode_sink_share_natural(args, in, item, row, state_natural(m), l);
}

/* Where a row's o lies in out, and in the workspace. */
static inline __global out_element *decode_out_row(const decode_args *args, const decode_row *row,
                                                   __global out_element *out)
{
    return out + (args->out_offset + row->batch * args->out_batch + row->query * args->out_token +
                  row->head * args->out_head);
}

static inline __global float *decode_state_row(const decode_args *args, const decode_item *item, const decode_row *row,
                                               __global float *workspace)
{
    return workspace + (args->partial_o_offset + decode_state(args, item, row) * HEAD_DIM_V);
}

/* Writes element d of a row's o, normalised and without sink, to out under a direct write, else to the workspace. */
static inline void decode_store_o(const decode_args *args, const decode_item *item, const decode_row *row,
                                  __global out_element *out, __global float *workspace, int d, float value,
                                  float sink_share)
{
#if V_SCALE == SCALE_TENSOR
    value *= item->v_scale;
#endif
    if (!item->direct) {
        decode_state_row(args, item, row, workspace)[d] = value;
        return;
    }
#if DECODE_SINKS
    value *= sink_share;
#endif
    out_store(decode_out_row(args, row, out), d, value);
}

/* The same of `count` quads of elements, the first from d on, a multiple of 4, and each `step` from the one before, as
 * far as the row has them. The row's place is found once, and from there on by constants. */
static inline __attribute__((always_inline)) void decode_store_quads(const decode_args *args, const decode_item *item,
                                                                     const decode_row *row, __global out_element *out,
                                                                     __global float *workspace, int d, int step,
                                                                     const float4 *values, int count, float sink_share)
{
#if V_SCALE == SCALE_TENSOR
    const float scale = item->v_scale;
#else
    const float scale = 1.0f;
#endif
    if (item->direct) {
        __global out_element *const to = decode_out_row(args, row, out) + d;
#pragma unroll
        for (int q = 0; q < count; q++)
            if (d + q * step < HEAD_DIM_V) {
                const float4 value = values[q] * scale * (DECODE_SINKS ? sink_share : 1.0f);
                out_store(to, q * step, value.x);
                out_store(to, q * step + 1, value.y);
                out_store(to, q * step + 2, value.z);
                out_store(to, q * step + 3, value.w);
            }
        return;
    }
    __global float *const to = decode_state_row(args, item, row, workspace) + d;
#pragma unroll
    for (int q = 0; q < count; q++)
        if (d + q * step < HEAD_DIM_V)
            STATE_WRITE4(to + q * step, values[q] * scale);
}

/* Writes a row's statistics (m in natural units): to lse under a direct write, else to the workspace. */
static inline void decode_store_natural_stats(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                              const decode_row *row, __global float *lse, __global float *workspace,
                                              float m, float l)
{
    if (!item->direct) {
        state_store(workspace, args->stats_offset + decode_state(args, item, row), args->stats_stride, m, l);
        return;
    }
    if (!args->has_lse)
        return;
    float natural = state_lse(m, l);
#if DECODE_SINKS
    natural = state_sink(natural, in->sinks[args->sinks_offset + row->head]).x;
#endif
    lse[args->lse_offset + row->index] = natural;
}

/* The same of m in log2 units. */
static inline void decode_store_stats(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                      const decode_row *row, __global float *lse, __global float *workspace, float m,
                                      float l)
{
    decode_store_natural_stats(args, in, item, row, lse, workspace, state_natural(m), l);
}

#endif
