#include "npy.h"
#include "npy_header.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6u
#define HEADER_ALIGNMENT 64u
/* NumPy itself refuses to parse headers above 10,000 bytes. */
#define MAX_HEADER_BYTES 65536u
#define FIRST_READ_BYTES ((size_t)1 << 20)

/* Reads the magic, the version and the header text into a malloc'ed, terminated string; the caller frees it even on
 * failure. */
static bool read_header(FILE *file, const char *path, char **header, tool_fault *fault)
{
    unsigned char start[MAGIC_BYTES + 2], length[4] = {0};
    size_t length_bytes, bytes;

    if (fread(start, 1, sizeof start, file) != sizeof start && ferror(file) != 0)
        return fault_failed(fault, "cannot read %s: %s", path, strerror(errno));
    if (feof(file) != 0 || memcmp(start, MAGIC, MAGIC_BYTES) != 0)
        return fault_failed(fault, "%s is no .npy file: it does not start with \\x93NUMPY and a version", path);
    if (start[MAGIC_BYTES] < 1 || start[MAGIC_BYTES] > 3 || start[MAGIC_BYTES + 1] != 0)
        return fault_failed(fault, "%s has .npy version %u.%u; it must be 1.0, 2.0 or 3.0", path, start[MAGIC_BYTES],
                            start[MAGIC_BYTES + 1]);
    length_bytes = start[MAGIC_BYTES] == 1 ? 2 : 4;
    if (fread(length, 1, length_bytes, file) != length_bytes)
        return fault_failed(fault, "%s ends within the length of its header", path);
    bytes = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
    if (bytes > MAX_HEADER_BYTES)
        return fault_failed(fault, "%s has a header of %zu bytes; it must be at most %u", path, bytes,
                            MAX_HEADER_BYTES);
    if ((*header = malloc(bytes + 1)) == NULL)
        return fault_failed(fault, "no memory for the header of %s", path);
    if (fread(*header, 1, bytes, file) != bytes)
        return fault_failed(fault, "%s ends within its header of %zu bytes", path, bytes);
    (*header)[bytes] = '\0';
    if (strlen(*header) != bytes)
        return fault_failed(fault, "%s has a zero byte in its header", path);
    return true;
}

static bool count_elements(npy_array *array, const char *path, tool_fault *fault)
{
    char shape[NPY_SHAPE_BYTES];
    uint64_t count = 1;
    bool empty = false;

    for (uint32_t i = 0; i < array->num_dims; i++)
        empty = empty || array->shape[i] == 0;
    for (uint32_t i = 0; i < array->num_dims && !empty; i++) {
        if (array->shape[i] > SIZE_MAX / array->item_bytes / count)
            return fault_failed(fault, "%s has shape %s; its bytes do not fit in memory", path,
                                npy_shape(array, shape));
        count *= array->shape[i];
    }
    array->count = empty ? 0 : (size_t)count;
    return true;
}

/* Reads exactly array->count elements. Memory grows with what the file really holds, whatever its header says. */
static bool read_data(FILE *file, const char *path, npy_array *array, tool_fault *fault)
{
    const size_t bytes = array->count * array->item_bytes;
    size_t capacity = bytes < FIRST_READ_BYTES ? bytes : FIRST_READ_BYTES, filled = 0;
    char *data = malloc(capacity + 1);

    while (data != NULL) {
        filled += fread(data + filled, 1, capacity - filled, file);
        if (filled < capacity || capacity == bytes)
            break;
        capacity = bytes / 2 < capacity ? bytes : capacity * 2;
        char *larger = realloc(data, capacity);
        if (larger == NULL)
            free(data);
        data = larger;
    }
    array->data = data;
    if (data == NULL)
        return fault_failed(fault, "no memory for the %zu bytes of %s", bytes, path);
    if (ferror(file) != 0)
        return fault_failed(fault, "cannot read %s: %s", path, strerror(errno));
    if (filled < bytes)
        return fault_failed(fault, "%s is truncated: it holds %zu of the %zu bytes that its shape needs", path, filled,
                            bytes);
    if (fgetc(file) != EOF)
        return fault_failed(fault, "%s has bytes after the %zu that its shape needs", path, bytes);
    return true;
}

bool npy_read(const char *path, npy_array *array, tool_fault *fault)
{
    FILE *file = fopen(path, "rb");
    npy_array read = {0};
    char *header = NULL;
    bool good = false;

    if (file == NULL)
        return fault_failed(fault, "cannot read %s: %s", path, strerror(errno));
    if (!read_header(file, path, &header, fault) || !npy_parse_header(header, path, &read, fault) ||
        !count_elements(&read, path, fault) || !read_data(file, path, &read, fault))
        goto done;
    *array = read;
    good = true;

done:
    if (!good)
        npy_free(&read);
    free(header);
    fclose(file);
    return good;
}

void npy_free(npy_array *array)
{
    free(array->data);
    *array = (npy_array){0};
}

bool npy_write(output_file *output, const npy_array *array, tool_fault *fault)
{
    char shape[NPY_SHAPE_BYTES], header[NPY_SHAPE_BYTES + 128];
    const int text = snprintf(header, sizeof header, "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }",
                              array->item_bytes == 1 ? '|' : '<', npy_type(array).text, npy_shape(array, shape));
    /* Magic, version, length, text, blanks and a line break end on a multiple of 64. */
    const size_t used = MAGIC_BYTES + 4 + (size_t)text + 1, blanks = (0 - used) % HEADER_ALIGNMENT;
    const size_t length = (size_t)text + blanks + 1;
    const unsigned char start[] = {1, 0, (unsigned char)(length & 255), (unsigned char)(length >> 8)};

    errno = 0;
    fwrite(MAGIC, 1, MAGIC_BYTES, output->stream);
    fwrite(start, 1, sizeof start, output->stream);
    fprintf(output->stream, "%s%*s\n", header, (int)blanks, "");
    fwrite(array->data, array->item_bytes, array->count, output->stream);
    if (fflush(output->stream) != 0 || ferror(output->stream) != 0)
        return fault_failed(fault, "cannot write %s: %s", output->path, strerror(errno));
    return true;
}

npy_type_name npy_type(const npy_array *array)
{
    npy_type_name name;

    snprintf(name.text, sizeof name.text, "%c%u", array->kind, array->item_bytes & 15u);
    return name;
}

const char *npy_shape(const npy_array *array, char text[NPY_SHAPE_BYTES])
{
    size_t used = 1;

    strcpy(text, "(");
    for (uint32_t i = 0; i < array->num_dims; i++)
        used += (size_t)snprintf(text + used, NPY_SHAPE_BYTES - used, "%s%" PRIu64, i > 0 ? ", " : "", array->shape[i]);
    snprintf(text + used, NPY_SHAPE_BYTES - used, "%s", array->num_dims == 1 ? ",)" : ")");
    return text;
}
