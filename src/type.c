#include <clfd/attention.h>

static const struct {
    const char *name;
    size_t bytes;      /* of a storage unit */
    uint32_t elements; /* of one */
} types[] = {
    [CLFD_TYPE_F32] = {"f32", 4, 1},           [CLFD_TYPE_F16] = {"f16", 2, 1},
    [CLFD_TYPE_BF16] = {"bf16", 2, 1},         [CLFD_TYPE_INT8] = {"int8", 1, 1},
    [CLFD_TYPE_INT4] = {"int4", 1, 2},         [CLFD_TYPE_FP8_E4M3] = {"fp8_e4m3", 1, 1},
    [CLFD_TYPE_FP8_E5M2] = {"fp8_e5m2", 1, 1}, [CLFD_TYPE_Q8_0] = {"q8_0", 34, 32},
    [CLFD_TYPE_Q4_0] = {"q4_0", 18, 32},
};

/* CLFD_TYPE_DEFAULT has an empty row; what is no clfd_type has none. */
static int is_row(clfd_type type) { return (size_t)type < sizeof types / sizeof types[0]; }

size_t clfd_type_size(clfd_type type) { return is_row(type) ? types[type].bytes : 0; }

uint32_t clfd_type_elements(clfd_type type) { return is_row(type) ? types[type].elements : 0; }

const char *clfd_type_name(clfd_type type) { return is_row(type) ? types[type].name : NULL; }
