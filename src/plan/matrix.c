#include "plan/matrix.h"
#include "plan/alignment.h"
#include "type.h"

#define TILE 16u
#define MIN_SLOTS 2u
#define MAX_HEAD_DIM 256u
#define MAX_ROWS 16u        /* of a warp that has tiles of its own */
#define MAX_OPERANDS 200u   /* registers of a warp that shares tiles: those of q and o, so that others remain */
#define BALANCED_BYTES 128u /* cl/schedule.cl: decode_work without its list */
#define EXCHANGE_BYTES 24u  /* per work-item, of the emulation */

static uint32_t row_bytes(clfd_type type, uint32_t dim)
{
    return clfd_row_units(type, dim) * (uint32_t)clfd_type_size(type);
}

/* PITCH of cl/matrix.cl. */
static uint32_t pitch(uint32_t bytes) { return bytes % 128 == 0 ? bytes : ((bytes + 15) / 16 | 1u) * 16; }

/* Scales that follow a tile in its slot, of each token: SLOT_SCALES of cl/matrix.cl. */
static uint32_t slot_scales(clfd_type type, const clfd_quant *quant, uint32_t dim)
{
    return !clfd_type_is_grouped(type) ? 0 : quant->group >= dim ? 1 : dim / 32;
}

/* SLOT_BYTES of cl/matrix.cl. */
static uint64_t round_up(uint64_t bytes) { return (bytes + 127) / 128 * 128; }

/* Blocks of 16 rows that a warp has where warps share tiles: ROW_BLOCKS of cl/matrix_rows.cl. */
static uint32_t row_blocks(const clfd_tuning *tuning)
{
    const uint32_t sets = tuning->work_group / 32 / tuning->parts;

    return (tuning->rows + 16 * sets - 1) / (16 * sets);
}

/* Local memory of a work-group whose warps share tiles: BLOCK_BYTES of cl/matrix_block.cl. */
static uint64_t block_bytes(const clfd_attention *a, const clfd_tuning *tuning, uint32_t slots)
{
    const uint32_t warps = tuning->work_group / 32;
    const uint32_t tiles = tuning->parts == 1 && a->head_dim <= 128 && a->head_dim_v <= 128 ? 2 : 1;
    const uint32_t k = pitch(row_bytes(a->k_type, a->head_dim));
    const uint32_t v = a->v_from_k ? 0 : pitch(row_bytes(a->v_type, a->head_dim_v));
    const uint64_t stages = (uint64_t)slots * tiles * TILE * (k + v);
    const uint64_t parts = tuning->parts > 1 ? (uint64_t)warps * 2 * row_blocks(tuning) * 32 * 16 : 0;
    const uint64_t written = (uint64_t)warps * 4 * (a->head_dim_v / tuning->parts + 4) * sizeof(float);

    return stages + parts > written ? stages + parts : written;
}

/* Local memory of one whose warps have rings of their own. */
static uint64_t ring_bytes(const clfd_attention *attention, const clfd_tuning *tuning, uint32_t slots)
{
    const uint32_t k = pitch(row_bytes(attention->k_type, attention->head_dim));
    const uint32_t v = pitch(row_bytes(attention->v_type, attention->head_dim_v));
    const uint32_t k_scales = slot_scales(attention->k_type, &attention->k_quant, attention->head_dim);
    const uint32_t v_scales = slot_scales(attention->v_type, &attention->v_quant, attention->head_dim_v);
    const uint32_t tile = TILE * ((k > v ? k : v) + (k_scales > v_scales ? k_scales : v_scales) * 4);
    const uint64_t ring = (uint64_t)slots * round_up(tile);
    const uint64_t fold = (8u * (attention->head_dim_v + 4u) + 8u * 4u) * sizeof(float);

    return tuning->work_group / 32 * (ring > fold ? ring : fold);
}

bool clfd_matrix_rounds_weights(const clfd_attention *attention, const clfd_tuning *tuning)
{
    return tuning->family == CLFD_FAMILY_MATRIX && tuning->parts == 1 && attention->shared_kv &&
           attention->q_type == CLFD_TYPE_F16;
}

uint32_t clfd_matrix_balanced_batch(const clfd_tuning *tuning) { return tuning->parts > 1 ? 512 : 1024; }

static uint64_t local_bytes(const clfd_attention *attention, const clfd_tuning *tuning, uint32_t slots, bool balanced)
{
    const uint64_t emulation = tuning->exchange == CLFD_EXCHANGE_PTX ? 0 : EXCHANGE_BYTES * tuning->work_group;

    return (tuning->parts > 0 ? block_bytes(attention, tuning, slots) : ring_bytes(attention, tuning, slots)) +
           emulation + (balanced ? BALANCED_BYTES + clfd_matrix_balanced_batch(tuning) * (uint64_t)sizeof(int32_t) : 0);
}

uint32_t clfd_matrix_slots(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                           uint32_t slots, bool balanced)
{
    while (slots >= MIN_SLOTS && local_bytes(attention, tuning, slots, balanced) > caps->local_mem_bytes)
        slots--;
    return slots < MIN_SLOTS ? 0 : slots;
}

bool clfd_matrix_has_page_tiles(const clfd_attention *attention)
{
    return attention->paging != CLFD_PAGING_NONE && attention->page_size % TILE == 0 && attention->window == 0 &&
           !attention->kv_start && (attention->split_policy != CLFD_SPLIT_TOKENS || attention->split_size % TILE == 0);
}

/* Whether the rows of a tensor lie as copies need them: COPY_BYTES of cl/matrix.cl. */
static bool aligned(const clfd_strides *strides, clfd_type type, uint32_t dim, uint32_t promise)
{
    const uint32_t bytes = row_bytes(type, dim), copy = bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : 4;

    return clfd_row_alignment(strides, type, promise) >= copy;
}

/* Why a tensor's type cannot be an operand, or NULL. */
static const char *type_refusal(const clfd_attention *attention, clfd_type type, const clfd_quant *quant, uint32_t dim)
{
    if (clfd_type_is_plain(type))
        return type == attention->q_type ? NULL : "K or V is plain and not of q's type";
    if (attention->q_type != CLFD_TYPE_F16)
        return "K or V is quantised and q is not f16";
    if (dim % (clfd_type_is_grouped(type) ? 32 : 64) != 0 || (type == CLFD_TYPE_INT4 && dim % 64 != 0))
        return "a quantised head dim is no multiple of what its units have";
    if (clfd_type_is_grouped(type) && quant->zeros)
        return "quantised K or V has zeros";
    if (clfd_type_is_grouped(type) && quant->group % 32 != 0)
        return "the dims of a scale are no multiple of 32";
    return NULL;
}

/* Why warps cannot share tiles, or have tiles of their own, as `parts` says; or NULL. */
static const char *parts_refusal(const clfd_attention *a, const clfd_tuning *tuning)
{
    if (tuning->parts == 0) {
        if (tuning->rows > MAX_ROWS)
            return "more than 16 rows, and parts=0";
        return a->head_dim > MAX_HEAD_DIM || a->head_dim_v > MAX_HEAD_DIM ? "a head dim is above 256" : NULL;
    }
    if (!clfd_type_is_plain(a->k_type) || !clfd_type_is_plain(a->v_type))
        return "K or V is quantised, and parts is not 0";
    if (tuning->work_group % (32 * tuning->parts) != 0)
        return "wg is no multiple of 32 times parts";
    if (a->head_dim % (16 * tuning->parts) != 0 || a->head_dim_v % (16 * tuning->parts) != 0)
        return "a head dim is no multiple of 16 times parts";
    if ((a->head_dim / 4 + a->head_dim_v / 2) / tuning->parts * row_blocks(tuning) > MAX_OPERANDS)
        return "q and o of a warp's rows need too many registers";
    return NULL;
}

const char *clfd_matrix_refusal(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning)
{
    const clfd_attention *const a = attention;
    const char *reason;

    if (tuning->exchange == CLFD_EXCHANGE_SUB_GROUP)
        return "decode_matrix has no exchange=sub_group";
    if (tuning->exchange == CLFD_EXCHANGE_PTX && !caps->matrix)
        return "matrix units are not available on the device, or disabled";
    if (tuning->work_group % 32 != 0)
        return "wg of decode_matrix is no multiple of 32";
    if (tuning->split_tile < (tuning->parts > 0 ? 2 * TILE : tuning->work_group / 2))
        return "split_tile is less than the tokens of a step: wg / 2, or 32 where parts is not 0";
    if (a->q_type == CLFD_TYPE_F32)
        return "q is f32";
    if (a->head_dim % 16 != 0 || a->head_dim_v % 16 != 0)
        return "a head dim is no multiple of 16";
    if ((reason = parts_refusal(a, tuning)) != NULL)
        return reason;
    if ((reason = type_refusal(a, a->k_type, &a->k_quant, a->head_dim)) != NULL ||
        (reason = type_refusal(a, a->v_type, &a->v_quant, a->head_dim_v)) != NULL)
        return reason;
    if (!aligned(&a->k_strides, a->k_type, a->head_dim, a->k_alignment) ||
        !aligned(a->v_from_k ? &a->k_strides : &a->v_strides, a->v_type, a->head_dim_v,
                 a->v_from_k ? a->k_alignment : a->v_alignment))
        return "rows of K or V do not start on boundaries of 16 bytes, or of 8 or 4 that divide them";
    if (local_bytes(a, tuning, MIN_SLOTS, false) > caps->local_mem_bytes)
        return "local memory is too small";
    return NULL;
}
