/* tuning.h - which kernel family a device gets, and with which numbers. Pure functions. */
#ifndef CLFD_TUNING_H
#define CLFD_TUNING_H

#include "device/caps.h"
#include <clfd/attention.h>

typedef enum clfd_family {
    CLFD_FAMILY_VECTOR = 0,
    CLFD_FAMILY_LANES = 1,
    CLFD_FAMILY_MATRIX = 2,
    CLFD_NUM_FAMILIES
} clfd_family;

/* How work-items work together: through local memory and barriers, by sub-group shuffles, by inline PTX. */
typedef enum clfd_exchange {
    CLFD_EXCHANGE_LOCAL = 0,
    CLFD_EXCHANGE_SUB_GROUP = 1,
    CLFD_EXCHANGE_PTX = 2
} clfd_exchange;

/* One row of the tuning table: everything about a kernel that the mathematics leaves open. */
typedef struct clfd_tuning {
    clfd_family family;
    uint32_t work_group;      /* wg: work-items per work-group; a power of two, of the matrix family a multiple of 32 */
    uint32_t rows;            /* rows: query rows per block at most, 1..8, of the matrix family 1..256 */
    uint32_t lanes;           /* lanes: work-items per KV row; a power of two (lanes family) */
    uint32_t unroll;          /* unroll: keys per lane group and step; a power of two (lanes family) */
    uint32_t ahead;           /* ahead: 1: loads are a step ahead of their use; 2: half a step (lanes family) */
    uint32_t parts;           /* parts: sets of lane groups that share a block's rows; a power of two (lanes family).
                               * 0: warps have tiles of their own, and all rows, 16 at most; 1, 2, 4: warps share tiles,
                               * and so many share the dims of rows of their own (matrix family) */
    uint32_t slots;           /* slots: of a warp's ring, each of 16 keys or values (matrix family) */
    uint32_t width;           /* width: floats per vector, 8 or 16 (vector family) */
    uint32_t tile;            /* tile: keys per tile (vector family) */
    uint32_t prefetch;        /* prefetch: tokens ahead; 0: none (vector family) */
    uint32_t heads;           /* heads: KV heads per work-item at most (vector family) */
    uint32_t exchange;        /* exchange: a clfd_exchange (lanes and matrix families) */
    uint32_t groups_per_unit; /* groups: AUTO aims at this many work-groups per compute unit, at two at least where the
                                 matrix family reads pages and parts is 0 */
    uint32_t min_split;       /* min_split: AUTO makes no split of fewer tokens */
    uint32_t split_tile;      /* split_tile: cuts of COUNT and AUTO fall on multiples of this */
} clfd_tuning;

#define CLFD_MAX_CANDIDATES 40

/* The rows to try for an attention (complete: clfd_complete_attention) on a device, best first; the last is the
 * reference row, which every supported device runs. They depend on the device, types, dims and head ratio only: not
 * on batch, lengths or policy, which must not change a row's bits. attention->tuning replaces fields of the first
 * row and makes it the only one; the first of a family or an exchange that it names, or that alone has a key that it
 * names. Returns their number in *count. CLFD_ERROR_TUNING for a malformed or impossible override. */
clfd_status clfd_tuning_candidates(const clfd_caps *caps, const clfd_attention *attention,
                                   clfd_tuning rows[CLFD_MAX_CANDIDATES], size_t *count, const clfd_logger *logger);

/* Whether a row is among others. Rows for several dims may agree; what a compiler refused once is not built again. */
bool clfd_tuning_listed(const clfd_tuning *rows, size_t count, const clfd_tuning *row);

/* "decode_vector", "decode_lanes", "decode_matrix": name of the family, of its file in cl/ and of its kernel. */
const char *clfd_family_name(clfd_family family);

#endif
