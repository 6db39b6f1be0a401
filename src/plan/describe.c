#include "plan/describe.h"
#include "plan/alignment.h"
#include "plan/matrix.h"
#include "plan/words.h"
#include "type.h"
#include <stdarg.h>
#include <stdio.h>

/* Text that grows; what snprintf would return is `used`. */
typedef struct line {
    char *text;
    size_t bytes, used;
} line;

static void append(line *to, const char *format, ...)
{
    const size_t at = to->used < to->bytes ? to->used : to->bytes;
    va_list arguments;

    va_start(arguments, format);
    const int added = vsnprintf(to->text + at, to->bytes - at, format, arguments);
    va_end(arguments);
    to->used += added > 0 ? (size_t)added : 0;
}

/* ---- The line ---------------------------------------------------------------------------------------------------- */

static void describe_types(const clfd_attention *a, line *to)
{
    append(to, " %s", clfd_type_name(a->q_type));
    if (a->k_type != a->q_type || a->v_type != a->q_type || a->out_type != a->q_type)
        append(to, " kv%s", clfd_type_name(a->k_type));
    if (a->v_type != a->k_type)
        append(to, " v%s", clfd_type_name(a->v_type));
    if (a->k_type != a->q_type || a->v_type != a->q_type || a->out_type != a->q_type)
        append(to, " out%s", clfd_type_name(a->out_type));
    append(to, " d%u", a->head_dim);
    if (a->head_dim != a->head_dim_v)
        append(to, " dv%u", a->head_dim_v);
}

/* A word for each option that is set, with its number where it has one. */
static void describe_options(const clfd_attention *a, line *to)
{
    const struct {
        bool set;
        const char *word;
    } words[] = {
        {a->causal != 0, "causal"},
        {a->v_from_k != 0, "v_from_k"},
        {a->alibi != 0, "alibi"},
        {a->bias_type != CLFD_TYPE_DEFAULT, "bias"},
        {a->mask == CLFD_MASK_BOOL, "mask"},
        {a->mask == CLFD_MASK_TREE, "tree"},
        {a->sinks != 0, "sinks"},
        {a->query_positions != 0, "positions"},
        {a->kv_start != 0, "kv_start"},
        {a->cache_batch_idx != 0, "cache_rows"},
        {a->shared_kv != 0, "shared_kv"},
        {a->paging == CLFD_PAGING_CSR, "csr"},
        {clfd_kv_aligned(a) == 0, "unaligned"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].set)
            append(to, " %s", words[i].word);
    if (a->window > 0)
        append(to, " window%u", a->window);
    if (a->softcap > 0.0f)
        append(to, " softcap%g", (double)a->softcap);
    if (a->page_size > 0)
        append(to, " page%u", a->page_size);
    if (clfd_type_is_grouped(a->k_type))
        append(to, " kgroup%u%s", a->k_quant.group, a->k_quant.zeros ? " kzeros" : "");
    if (clfd_type_is_grouped(a->v_type) && !a->v_from_k)
        append(to, " vgroup%u%s", a->v_quant.group, a->v_quant.zeros ? " vzeros" : "");
}

int clfd_describe(const clfd_attention *attention, const clfd_tuning *tuning, const clfd_schedule *schedule, char *text,
                  size_t bytes)
{
    line to = {text, bytes, 0};
    char row[256];

    clfd_tuning_print(tuning, row, sizeof row);
    append(&to, "%s", clfd_family_name(tuning->family));
    describe_types(attention, &to);
    append(&to, " g%u q%u r%u passes%u", schedule->ratio, attention->q_len, schedule->rows, schedule->passes);
    if (schedule->split_tokens > 0)
        append(&to, " tokens%u", schedule->split_tokens);
    append(&to, " splits%u", schedule->grid_splits);
    if (schedule->num_groups > 0)
        append(&to, " balanced%u", schedule->num_groups);
    if (schedule->fused != 0)
        append(&to, " fused");
    append(&to, " %s", attention->partial == CLFD_PARTIAL_MLO ? "mlo" : "lse");
    describe_options(attention, &to);
    if (clfd_matrix_rounds_weights(attention, tuning))
        append(&to, " f16_weights");
    append(&to, " %s", row);
    return (int)to.used;
}

/* ---- Build options ----------------------------------------------------------------------------------------------- */

uint32_t clfd_page_class(const clfd_attention *a)
{
    return a->paging == CLFD_PAGING_NONE ? 0 : (a->page_size & (a->page_size - 1)) == 0 ? 1 : 2;
}

/* Options at their default, 0, are left out: cl/ has the same default. */
static void append_features(const clfd_attention *a, bool balanced, line *to)
{
    const bool k_groups = clfd_type_is_grouped(a->k_type), v_groups = clfd_type_is_grouped(a->v_type);
    const bool k_scales = clfd_type_has_scales(a->k_type), v_scales = clfd_type_has_scales(a->v_type);
    const struct {
        const char *name;
        uint32_t value;
    } features[] = {
        {"V_FROM_K", a->v_from_k},
        {"SCORE_CAUSAL", a->causal},
        {"SCORE_WINDOW", a->window > 0},
        {"SCORE_START", a->kv_start},
        {"SCORE_POSITIONS", a->query_positions},
        {"SCORE_MASK", (uint32_t)a->mask},
        {"SCORE_SOFTCAP", a->softcap > 0.0f},
        {"SCORE_ALIBI", a->alibi},
        {"SCORE_BIAS", (uint32_t)a->bias_type},
        {"DECODE_SINKS", a->sinks},
        {"DECODE_SHARED", a->shared_kv},
        {"DECODE_BALANCED", balanced},
        {"CACHE_ROWS", a->cache_batch_idx},
        {"KV_PAGED", clfd_page_class(a)},
        {"KV_CSR", a->paging == CLFD_PAGING_CSR},
        {"K_GROUP", k_groups ? a->k_quant.group : 0},
        {"V_GROUP", v_groups ? a->v_quant.group : 0},
        {"K_ZEROS", k_groups && a->k_quant.zeros},
        {"V_ZEROS", v_groups && a->v_quant.zeros},
        {"K_SCALE_TYPE", k_scales ? (uint32_t)a->k_quant.scale_type : 0},
        {"V_SCALE_TYPE", v_scales ? (uint32_t)a->v_quant.scale_type : 0},
        {"STATE_MLO", a->partial == CLFD_PARTIAL_MLO},
    };

    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        if (features[i].value != 0)
            append(to, " -D%s=%u", features[i].name, features[i].value);
}

/* Registers of a work-item with which so many work-groups live on a compute unit together. Left alone the
 * compiler takes more, and half of them wait: 153 instead of 128 cost the balanced schedule a third of its speed. */
static uint32_t max_registers(const clfd_tuning *tuning, uint32_t groups)
{
    const uint32_t registers = 65536 / (tuning->work_group * groups) / 8 * 8;
    const uint32_t most = tuning->family == CLFD_FAMILY_MATRIX && tuning->parts > 1 ? 255 : 248;

    return registers < 32 ? 32 : registers > most ? most : registers;
}

int clfd_decode_options(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                        const clfd_schedule *schedule, bool balanced, char *text, size_t bytes)
{
    const clfd_attention *a = attention;
    const bool ptx = tuning->family != CLFD_FAMILY_VECTOR && tuning->exchange == CLFD_EXCHANGE_PTX;
    const bool pairs = tuning->family == CLFD_FAMILY_LANES && clfd_kv_pairs(a);
    line to = {text, bytes, 0};

    append(&to,
           "-DQ_TYPE=%d -DK_TYPE=%d -DV_TYPE=%d -DOUT_TYPE=%d -DHEAD_DIM=%u -DHEAD_DIM_V=%u -DDECODE_ROWS=%u "
           "-DDECODE_ONE_PASS=%d -DKV_ALIGNED=%u -DCLFD_PTX=%d",
           (int)a->q_type, (int)a->k_type, (int)a->v_type, (int)a->out_type, a->head_dim, a->head_dim_v, schedule->rows,
           schedule->passes == 1, clfd_kv_aligned(a), ptx);
    append_features(a, balanced, &to);
    if (pairs)
        append(&to, " -DKV_PAIRS=1");
    if (ptx && caps->ptx_fp8)
        append(&to, " -DCLFD_PTX_FP8=1");
    if (tuning->family == CLFD_FAMILY_LANES)
        append(&to, " -DLANES_WG=%u -DLANES=%u -DLANES_UNROLL=%u -DLANES_AHEAD=%u -DLANES_PARTS=%u -DLANES_EXCHANGE=%u",
               tuning->work_group, tuning->lanes, tuning->unroll, tuning->ahead, tuning->parts, tuning->exchange);
    else if (tuning->family == CLFD_FAMILY_MATRIX)
        append(&to,
               " -DMATRIX_WARPS=%u -DMATRIX_PARTS=%u -DMATRIX_SLOTS=%u -DMATRIX_BF16=%d -DQ_ALIGNED=%d "
               "-DDECODE_INTERLEAVED=%d -DDECODE_DIRECT=%d -DDECODE_LOOPS=%d -DDECODE_FUSED=%d -DMATRIX_ONCE=%d "
               "-DMATRIX_PAGE_TILES=%d -DWEIGHT_REST=%d",
               tuning->work_group / 32, tuning->parts, balanced ? schedule->balanced_slots : schedule->slots,
               a->q_type == CLFD_TYPE_BF16, clfd_q_aligned(a), !balanced && schedule->split_tokens == 0,
               !balanced && schedule->grid_splits == 1, !balanced && schedule->max_groups > 0,
               (int)(balanced ? schedule->balanced_fused : schedule->fused),
               ptx && caps->cache_hints && !a->shared_kv && !a->v_from_k && schedule->passes == 1,
               clfd_matrix_has_page_tiles(a), !clfd_matrix_rounds_weights(a, tuning));
    else
        append(&to, " -DDECODE_HEADS=%u -DVECTOR_WIDTH=%u -DVECTOR_TILE=%u -DVECTOR_PREFETCH=%u", schedule->heads_limit,
               tuning->width, tuning->tile, tuning->prefetch);
    if (ptx)
        append(&to, " -cl-nv-maxrregcount=%u -cl-nv-verbose",
               max_registers(tuning, balanced ? tuning->groups_per_unit : schedule->unit_groups));
    if (caps->build_options[0] != '\0')
        append(&to, " %s", caps->build_options);
    return (int)to.used;
}

int clfd_merge_options(const clfd_caps *caps, clfd_partial partial, uint32_t head_dim_v, clfd_type out_type,
                       uint32_t merge_work_group, char *text, size_t bytes)
{
    return snprintf(text, bytes, "-DOUT_TYPE=%d -DHEAD_DIM_V=%u -DSTATE_MLO=%d -DMERGE_WG=%u%s%s", (int)out_type,
                    head_dim_v, partial == CLFD_PARTIAL_MLO, merge_work_group,
                    caps->build_options[0] != '\0' ? " " : "", caps->build_options);
}
