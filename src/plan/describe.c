#include "plan/describe.h"
#include "plan/words.h"
#include <stdio.h>

/* Whether every row of K and of V starts on a 16-byte boundary: the base by promise, the strides by arithmetic. */
static bool rows_aligned(const clfd_attention *a)
{
    const int64_t size = (int64_t)clfd_type_size(a->k_type);
    const clfd_strides *const strides[2] = {&a->k_strides, &a->v_strides};

    if (a->k_alignment < 16 || (!a->v_from_k && a->v_alignment < 16))
        return false;
    for (int i = 0; i < 2; i++)
        if (strides[i]->batch * size % 16 != 0 || strides[i]->token * size % 16 != 0 ||
            strides[i]->head * size % 16 != 0)
            return false;
    return true;
}

int clfd_describe(const clfd_attention *attention, const clfd_tuning *tuning, const clfd_schedule *schedule, char *text,
                  size_t bytes)
{
    const clfd_attention *a = attention;
    char row[256], types[64], dims[32], splits[48];

    clfd_tuning_print(tuning, row, sizeof row);
    if (a->q_type == a->k_type && a->out_type == a->q_type)
        snprintf(types, sizeof types, "%s", clfd_type_name(a->q_type));
    else
        snprintf(types, sizeof types, "%s kv%s out%s", clfd_type_name(a->q_type), clfd_type_name(a->k_type),
                 clfd_type_name(a->out_type));
    if (a->head_dim == a->head_dim_v)
        snprintf(dims, sizeof dims, "d%u", a->head_dim);
    else
        snprintf(dims, sizeof dims, "d%u dv%u", a->head_dim, a->head_dim_v);
    if (schedule->split_tokens > 0)
        snprintf(splits, sizeof splits, "tokens%u splits%u", schedule->split_tokens, schedule->grid_splits);
    else
        snprintf(splits, sizeof splits, "splits%u", schedule->grid_splits);
    return snprintf(text, bytes, "%s %s %s g%u q%u r%u passes%u %s %s%s%s%s %s", clfd_family_name(tuning->family),
                    types, dims, schedule->ratio, a->q_len, schedule->rows, schedule->passes, splits,
                    a->partial == CLFD_PARTIAL_MLO ? "mlo" : "lse", a->causal ? " causal" : "",
                    a->v_from_k ? " v_from_k" : "", rows_aligned(a) ? "" : " unaligned", row);
}

int clfd_decode_options(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                        const clfd_schedule *schedule, char *text, size_t bytes)
{
    const clfd_attention *a = attention;
    const bool ptx = caps->ptx && tuning->family == CLFD_FAMILY_LANES && tuning->exchange == CLFD_EXCHANGE_PTX;
    char family[160];

    if (tuning->family == CLFD_FAMILY_LANES)
        snprintf(family, sizeof family,
                 "-DLANES_WG=%u -DLANES=%u -DLANES_UNROLL=%u -DLANES_PARTS=%u -DLANES_EXCHANGE=%u", tuning->work_group,
                 tuning->lanes, tuning->unroll, tuning->parts, tuning->exchange);
    else
        snprintf(family, sizeof family, "-DDECODE_HEADS=%u -DVECTOR_WIDTH=%u -DVECTOR_TILE=%u -DVECTOR_PREFETCH=%u",
                 schedule->heads_limit, tuning->width, tuning->tile, tuning->prefetch);
    return snprintf(
        text, bytes,
        "-DQ_TYPE=%d -DKV_TYPE=%d -DOUT_TYPE=%d -DHEAD_DIM=%u -DHEAD_DIM_V=%u -DDECODE_ROWS=%u -DV_FROM_K=%u "
        "-DKV_ALIGNED=%d -DSCORE_CAUSAL=%u -DSTATE_MLO=%d -DCLFD_PTX=%d %s%s%s",
        (int)a->q_type, (int)a->k_type, (int)a->out_type, a->head_dim, a->head_dim_v, schedule->rows, a->v_from_k,
        rows_aligned(a), a->causal, a->partial == CLFD_PARTIAL_MLO, ptx, family,
        caps->build_options[0] != '\0' ? " " : "", caps->build_options);
}

int clfd_merge_options(const clfd_caps *caps, clfd_partial partial, uint32_t head_dim_v, clfd_type out_type,
                       uint32_t merge_work_group, char *text, size_t bytes)
{
    return snprintf(text, bytes, "-DOUT_TYPE=%d -DHEAD_DIM_V=%u -DSTATE_MLO=%d -DMERGE_WG=%u%s%s", (int)out_type,
                    head_dim_v, partial == CLFD_PARTIAL_MLO, merge_work_group,
                    caps->build_options[0] != '\0' ? " " : "", caps->build_options);
}
