#include "plan/tuning.h"
#include "plan/matrix.h"
#include "plan/words.h"
#include "type.h"
#include <string.h>

#define LANES CLFD_FAMILY_LANES
#define VECTOR CLFD_FAMILY_VECTOR
#define MATRIX CLFD_FAMILY_MATRIX

/* Sets of types that K or V may have: how many elements lie in 16 bytes decides the shape of a kernel. */
#define TYPE_BIT(name) (1u << CLFD_TYPE_##name)
#define BYTES (TYPE_BIT(INT8) | TYPE_BIT(FP8_E4M3) | TYPE_BIT(FP8_E5M2))
#define NIBBLES TYPE_BIT(INT4)
#define GGML_4 TYPE_BIT(Q4_0)
#define BLOCKS (TYPE_BIT(Q8_0) | TYPE_BIT(Q4_0))
#define HALVES (TYPE_BIT(F16) | TYPE_BIT(BF16))
#define SHORT (HALVES | BYTES | NIBBLES)
#define ANY (~0u)

static const struct shipped_row {
    cl_device_type type;
    clfd_exchange exchange;
    uint32_t types; /* both K and V must be one of these */
    uint32_t max_head_dim, max_rows;
    clfd_tuning tuning;
} table[] = {
#include "plan/tuning_table.inc"
};
#define MANY_ROWS 32u /* two passes of warps that have tiles of their own were as fast on an H200 */
#define NUM_SHIPPED (sizeof table / sizeof table[0])
_Static_assert(NUM_SHIPPED <= CLFD_MAX_CANDIDATES, "a device may run every row of the table");

static bool exchange_available(const clfd_caps *caps, uint32_t exchange)
{
    switch (exchange) {
    case CLFD_EXCHANGE_PTX:
        return caps->ptx;
    case CLFD_EXCHANGE_SUB_GROUP:
        return caps->sub_groups && caps->shuffle;
    default:
        return true;
    }
}

/* Query rows that share a KV head, as far as blocks go. Of a shared sequence the batch decides their number, which must
 * not change a row's bits. */
static uint32_t block_rows(const clfd_attention *attention)
{
    if (attention->shared_kv)
        return 8;
    const uint64_t rows = (uint64_t)attention->num_q_heads / attention->num_kv_heads * attention->q_len;
    return rows < 8 ? (uint32_t)rows : 8;
}

/* Rows of a part of a lanes work-group, as many as cl/lanes.cl makes room for. */
static uint32_t padded_part_rows(const clfd_attention *attention, const clfd_tuning *tuning)
{
    const uint32_t rows = block_rows(attention) < tuning->rows ? block_rows(attention) : tuning->rows;
    uint32_t padded = 1;

    while (padded * tuning->parts < rows)
        padded *= 2;
    return padded;
}

/* Local memory of cl/decode_lanes.cl for the widest block, in bytes: the sums of a step or the fold, the statistics, and
 * q where it does not fit in registers; or else, where PTX multiplies codes by digits of q, these and what has none. */
static uint64_t lanes_local_bytes(const clfd_tuning *tuning, const clfd_attention *attention)
{
    const uint64_t wg = tuning->work_group, lanes = tuning->lanes;
    const uint64_t fold_stride = wg + lanes, fold_chunks = 4096 / (8 * fold_stride);
    const uint64_t fold = (fold_chunks > 1 ? fold_chunks : 1) * 8 * fold_stride;
    const uint64_t sums = tuning->exchange == CLFD_EXCHANGE_LOCAL ? 8 * tuning->unroll * wg : 0;
    const uint64_t run = clfd_type_is_plain(attention->k_type) ? 1 : 4; /* chunks that a lane takes together, at most */
    const uint64_t lane_chunks = (attention->head_dim / 8 + lanes * run - 1) / (lanes * run) * run;
    const uint64_t part_rows = (tuning->rows + tuning->parts - 1) / tuning->parts;
    const uint64_t chunks = part_rows * lane_chunks, few = chunks < 8 ? chunks : 8;
    const uint64_t digits = tuning->exchange == CLFD_EXCHANGE_PTX && run > 1 ? few * (8 + 6) : 0;
    const uint64_t in_memory = chunks > 8 ? chunks * 8 : 0;
    const uint64_t q = tuning->parts * lanes * (in_memory > digits ? in_memory : digits);

    return ((fold > sums ? fold : sums) + 2 * 8 * (wg / lanes) + 2 * 8 + q) * sizeof(float);
}

/* Why a row of decode_vector cannot be built for an attention, or NULL. */
static const char *vector_refusal(const clfd_attention *attention, const clfd_tuning *tuning)
{
    if (tuning->work_group != 1)
        return "wg of decode_vector is not 1";
    if (tuning->tile > 1 && tuning->tile < tuning->width)
        return "tile is neither 1 nor at least width";
    if (tuning->tile > 1 && (attention->head_dim % tuning->width != 0 || attention->head_dim_v % tuning->width != 0))
        return "a head dim is no multiple of width";
    return NULL;
}

/* Why a row cannot run on a device, or NULL. */
static const char *refusal(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning)
{
    if (tuning->work_group > caps->max_work_group)
        return "wg exceeds the device's work-group limit";
    if (tuning->prefetch > 0 && !caps->prefetch)
        return "prefetch is not available on the device, or disabled";
    if (tuning->family == CLFD_FAMILY_VECTOR)
        return vector_refusal(attention, tuning);
    if (tuning->family == CLFD_FAMILY_MATRIX)
        return clfd_matrix_refusal(caps, attention, tuning);
    if (tuning->lanes * tuning->parts > tuning->work_group)
        return "lanes times parts exceeds wg";
    if (tuning->lanes < padded_part_rows(attention, tuning))
        return "lanes are fewer than the rows of a part";
    if (tuning->exchange == CLFD_EXCHANGE_PTX && tuning->work_group < 32)
        return "exchange=ptx needs wg of at least 32";
    if (!exchange_available(caps, tuning->exchange))
        return "exchange is not available on the device, or disabled";
    if (lanes_local_bytes(tuning, attention) > caps->local_mem_bytes)
        return "local memory is too small";
    return NULL;
}

/* Whether warps share tiles best: those that have tiles of their own hold 16 rows of 256 dims at most. */
static bool has_many_rows(const clfd_attention *attention)
{
    const uint64_t rows = (uint64_t)attention->num_q_heads / attention->num_kv_heads * attention->q_len;

    return attention->shared_kv || rows > (attention->head_dim > 256 ? 8 : MANY_ROWS);
}

static bool row_serves(const struct shipped_row *row, const clfd_attention *attention, uint32_t rows)
{
    const uint32_t types = 1u << attention->k_type | 1u << attention->v_type;

    if (row->tuning.family == CLFD_FAMILY_MATRIX && row->tuning.parts > 0 && !has_many_rows(attention))
        return false;
    return (types & ~row->types) == 0 && attention->head_dim <= row->max_head_dim &&
           attention->head_dim_v <= row->max_head_dim && rows <= row->max_rows;
}

/* A shipped row as the device runs it for an attention: with vectors of the device's width, without what it cannot do,
 * and without parts that would have no rows. */
static clfd_tuning fit_row(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *shipped)
{
    clfd_tuning row = *shipped;

    if (row.family == CLFD_FAMILY_VECTOR && caps->float_width >= 16 && attention->head_dim % 16 == 0 &&
        attention->head_dim_v % 16 == 0) {
        row.width = 16;
        if (row.tile > 1 && row.tile < 16)
            row.tile = row.prefetch = 16;
    }
    if (!caps->blocking && row.family == CLFD_FAMILY_VECTOR)
        row.tile = 1;
    if (!caps->prefetch || row.tile == 1)
        row.prefetch = 0;
    while (row.family == CLFD_FAMILY_LANES && row.parts > block_rows(attention))
        row.parts /= 2;
    return row;
}

/* Whether a row is one of those that an override asks for: without a wish, of the device's own. */
static bool answers(const clfd_caps *caps, const clfd_attention *attention, const clfd_wish *wanted,
                    const struct shipped_row *row)
{
    const bool asked = wanted->family >= 0 || wanted->exchange >= 0;

    if (wanted->family >= 0 && wanted->family != (int64_t)row->tuning.family)
        return false;
    if (wanted->exchange >= 0 &&
        (wanted->exchange != (int64_t)row->tuning.exchange || row->tuning.family == CLFD_FAMILY_VECTOR))
        return false;
    if (row->type == 0 && wanted->family < 0)
        return false; /* an emulation is for those who name it */
    return (asked || (row->type & caps->type) != 0) && exchange_available(caps, row->exchange) &&
           row_serves(row, attention, block_rows(attention));
}

/* The first row that an override asks for and the device runs as it is; else the first one, which the override may make
 * fit. False where there is none. */
static bool find_row(const clfd_caps *caps, const clfd_attention *attention, const clfd_wish *wanted,
                     clfd_tuning *found)
{
    bool any = false;

    for (size_t i = 0; i < NUM_SHIPPED; i++) {
        if (!answers(caps, attention, wanted, &table[i]))
            continue;
        const clfd_tuning fitted = fit_row(caps, attention, &table[i].tuning);
        const bool runs = refusal(caps, attention, &fitted) == NULL;
        if (runs || !any)
            *found = fitted;
        if (runs)
            return true;
        any = true;
    }
    return any;
}

static clfd_status override_row(const clfd_caps *caps, const clfd_attention *attention, clfd_tuning *tuning,
                                const clfd_logger *logger)
{
    const char *reason;
    clfd_wish wanted;
    clfd_status status = clfd_words_read_wish(attention->tuning, &wanted, logger);

    if (status != CLFD_SUCCESS)
        return status;
    if (!find_row(caps, attention, &wanted, tuning))
        return clfd_fail(logger, CLFD_ERROR_TUNING, "tuning \"%s\" matches no tuning row that this device can run",
                         attention->tuning);
    if ((status = clfd_words_apply(attention->tuning, tuning, logger)) != CLFD_SUCCESS)
        return status;
    if ((reason = refusal(caps, attention, tuning)) != NULL)
        return clfd_fail(logger, CLFD_ERROR_TUNING, "tuning \"%s\" cannot run here: %s", attention->tuning, reason);
    return CLFD_SUCCESS;
}

bool clfd_tuning_listed(const clfd_tuning *rows, size_t count, const clfd_tuning *row)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&rows[i], row, sizeof *row) == 0)
            return true;
    return false;
}

clfd_status clfd_tuning_candidates(const clfd_caps *caps, const clfd_attention *attention,
                                   clfd_tuning rows[CLFD_MAX_CANDIDATES], size_t *count, const clfd_logger *logger)
{
    *count = 0;
    if (attention->tuning != NULL && attention->tuning[strspn(attention->tuning, " ")] != '\0') {
        const clfd_status status = override_row(caps, attention, &rows[0], logger);
        *count = status == CLFD_SUCCESS;
        return status;
    }
    for (size_t i = 0; i < NUM_SHIPPED; i++) {
        const struct shipped_row *row = &table[i];
        const clfd_tuning fitted = fit_row(caps, attention, &row->tuning);
        if ((row->type & caps->type) != 0 && exchange_available(caps, row->exchange) &&
            row_serves(row, attention, block_rows(attention)) && refusal(caps, attention, &fitted) == NULL &&
            !clfd_tuning_listed(rows, *count, &fitted))
            rows[(*count)++] = fitted;
    }
    return CLFD_SUCCESS;
}
