#include "struct_size.h"
#include <string.h>

clfd_status clfd_read_struct(const void *given, void *known, size_t known_bytes, const char *name,
                             const clfd_logger *logger)
{
    size_t given_bytes;

    if (given == NULL)
        return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "%s is NULL", name);
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (given_bytes < sizeof given_bytes)
        return clfd_fail(logger, CLFD_ERROR_STRUCT_SIZE, "%s.struct_size is %zu; it must be sizeof(%s)", name,
                         given_bytes, name);
    for (size_t i = known_bytes; i < given_bytes; i++)
        if (((const unsigned char *)given)[i] != 0)
            return clfd_fail(logger, CLFD_ERROR_STRUCT_SIZE,
                             "%s.struct_size is %zu, this library knows %zu bytes, and byte %zu is not zero: it sets "
                             "a field of a newer version",
                             name, given_bytes, known_bytes, i);
    memset(known, 0, known_bytes);
    memcpy(known, given, given_bytes < known_bytes ? given_bytes : known_bytes);
    memcpy(known, &known_bytes, sizeof known_bytes);
    return CLFD_SUCCESS;
}
