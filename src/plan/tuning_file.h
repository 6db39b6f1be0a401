/* tuning_file.h - tuning rows as JSON text: the shipped ones (tuning_shipped.json) and those that `clfd tune` writes for a
 * user. Pure functions.
 *
 *     {"clfd_tuning": 1,
 *      "rows": [{"device": "NVIDIA H200", "k_type": "f16", "v_type": "f16", "head_dim": 128, "head_dim_v": 128, "ratio": 4,
 *                "tuning": "family=decode_lanes wg=128 lanes=16 ..."}]}
 *
 * A row serves the device of that name (CL_DEVICE_NAME); with "architecture" in place of "device" all devices of that
 * architecture ("sm_90", "pocl-x86_64-v16"), with "vendor" those whose CL_DEVICE_VENDOR contains the text, in any case.
 * "ratio" is a class of ratios. "tuning" is what clfd_attention.tuning takes, with a family; blank: nothing is better than
 * what stands after the row. A row may have an object "measured", which is for people and for `clfd tune`.
 */
#ifndef CLFD_TUNING_FILE_H
#define CLFD_TUNING_FILE_H

#include "plan/tuning.h"

/* What a row's name is of, in the order in which rows are looked up. */
typedef enum clfd_tuning_scope {
    CLFD_SCOPE_DEVICE,
    CLFD_SCOPE_ARCHITECTURE,
    CLFD_SCOPE_VENDOR,
    CLFD_NUM_SCOPES
} clfd_tuning_scope;

/* "device", "architecture", "vendor": the keys of the JSON. */
extern const char *const clfd_scope_names[CLFD_NUM_SCOPES];

/* Which problems share a row. */
typedef struct clfd_tuning_class {
    clfd_type k_type, v_type;
    uint32_t head_dim, head_dim_v;
    /* 1, 2, 4 ... 32: up to so many query rows share a KV head, and more than half as many; 64: over 32, or those of a
     * batch that shares a sequence. */
    uint32_t ratio;
} clfd_tuning_class;

typedef struct clfd_file_row {
    clfd_tuning_scope scope;
    char name[256];
    clfd_tuning_class problems;
    char words[512];
} clfd_file_row;

typedef struct clfd_file_rows {
    clfd_file_row *rows; /* malloc'ed; NULL where there are none */
    size_t count;
} clfd_file_rows;

/* The class of an attention (complete): query rows are num_q_heads / num_kv_heads * q_len, with shared_kv over 8. */
clfd_tuning_class clfd_tuning_class_of(const clfd_attention *attention);

bool clfd_tuning_class_equal(const clfd_tuning_class *a, const clfd_tuning_class *b);

/* Reads the rows of a terminated text of `bytes` bytes. `file` names it in sentences. A row that breaks a rule is skipped
 * with a warning that names file, row and rule, and so is one for the same name and class as an earlier one. *rows is for
 * the caller to free, and empty unless the call succeeds. CLFD_ERROR_TUNING_FILE: no JSON, or no tuning file of this
 * format. */
clfd_status clfd_tuning_file_read(const char *text, size_t bytes, const char *file, clfd_file_rows *rows,
                                  const clfd_logger *logger);

#endif
