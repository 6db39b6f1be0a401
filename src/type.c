#include <clfd/attention.h>

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [CLFD_TYPE_F32] = {"f32", 4},
    [CLFD_TYPE_F16] = {"f16", 2},
    [CLFD_TYPE_BF16] = {"bf16", 2},
};

/* CLFD_TYPE_DEFAULT has an empty row; what is no clfd_type has none. */
static int is_row(clfd_type type) { return (size_t)type < sizeof types / sizeof types[0]; }

size_t clfd_type_size(clfd_type type) { return is_row(type) ? types[type].bytes : 0; }

const char *clfd_type_name(clfd_type type) { return is_row(type) ? types[type].name : NULL; }
