/* source.c - the text of a kernel with its #include "..." lines replaced by the files they name.
 *
 * OpenCL 1.2 compiles a program from strings alone: an include path would need files on the user's machine. A file is
 * inserted where it is named first and left out after that, so an #include line must not stand under a condition other
 * than its file's own include guard. #line directives keep the compiler's messages in terms of the files.
 */
#include "program/embedded.h"
#include "program/program.h"
#include <stdbool.h>
#include <string.h>

/* A file's name inside the text that mentions it. */
typedef struct file_name {
    const char *start;
    int bytes;
} file_name;

/* The expanded text under construction. After a failure, every further step does nothing. */
typedef struct expansion {
    const char *folder; /* NULL: the embedded kernels */
    const clfd_logger *logger;
    clfd_status status;
    char *text; /* terminated once something was appended; NULL before */
    size_t bytes, capacity;
} expansion;

static void append(expansion *to, const char *text, size_t bytes)
{
    if (to->status != CLFD_SUCCESS)
        return;
    if (to->capacity - to->bytes <= bytes) {
        const size_t capacity = 2 * to->capacity + bytes + 1;
        char *grown = realloc(to->text, capacity);
        if (grown == NULL) {
            to->status = clfd_fail(to->logger, CLFD_ERROR_HOST_MEMORY, "no memory for %zu bytes of source", capacity);
            return;
        }
        to->text = grown;
        to->capacity = capacity;
    }
    memcpy(to->text + to->bytes, text, bytes);
    to->bytes += bytes;
    to->text[to->bytes] = '\0';
}

/* Says that what follows is `name` from line `number` on. */
static void append_marker(expansion *to, int number, file_name name)
{
    char start[32];
    const int bytes = snprintf(start, sizeof start, "#line %d \"", number);

    append(to, start, (size_t)bytes);
    append(to, name.start, (size_t)name.bytes);
    append(to, "\"\n", 2);
}

/* Whether a file stands in the text already: whether its marker of line 1 does. */
static bool contains(const expansion *to, file_name name)
{
    static const char first_line[] = "#line 1 \"";

    for (const char *at = to->text; at != NULL && (at = strstr(at, first_line)) != NULL;) {
        at += sizeof first_line - 1;
        if (strncmp(at, name.start, (size_t)name.bytes) == 0 && at[name.bytes] == '"')
            return true;
    }
    return false;
}

/* The text of a file of the folder, malloc'ed; NULL where it cannot be read. */
static char *read_from_folder(const char *folder, file_name name)
{
    const size_t path_bytes = strlen(folder) + (size_t)name.bytes + 2;
    char *path = malloc(path_bytes), *text = NULL;
    size_t bytes;

    if (path != NULL) {
        snprintf(path, path_bytes, "%s%c%.*s", folder, CLFD_PATH_SEPARATOR, name.bytes, name.start);
        text = clfd_read_file(path, &bytes);
    }
    free(path);
    return text;
}

static const char *find_embedded(file_name name)
{
    for (const struct clfd_embedded *kernel = clfd_kernels; kernel->name != NULL; kernel++)
        if (strlen(kernel->name) == (size_t)name.bytes && memcmp(kernel->name, name.start, (size_t)name.bytes) == 0)
            return kernel->text;
    return NULL;
}

/* Whether a line is `#include "name"`, with blanks where C allows them. */
static bool read_include(const char *line, file_name *name)
{
    static const char blanks[] = " \t", word[] = "include";
    size_t bytes;

    line += strspn(line, blanks);
    if (*line != '#')
        return false;
    line++;
    line += strspn(line, blanks);
    if (strncmp(line, word, sizeof word - 1) != 0)
        return false;
    line += sizeof word - 1;
    line += strspn(line, blanks);
    if (*line != '"')
        return false;
    bytes = strcspn(line + 1, "\"\n");
    if (bytes == 0 || line[1 + bytes] != '"')
        return false;
    name->start = line + 1;
    name->bytes = (int)bytes;
    return true;
}

/* Appends a file with everything it includes, unless it stands there already. */
static void append_file(expansion *to, file_name name)
{
    char *read = NULL;
    const char *line, *next;
    file_name included;

    if (contains(to, name))
        return;
    line = to->folder != NULL ? (read = read_from_folder(to->folder, name)) : find_embedded(name);
    if (line == NULL) {
        to->status = clfd_fail(to->logger, CLFD_ERROR_KERNEL_SOURCE, "kernel file \"%.*s\" cannot be read from %s%s",
                               name.bytes, name.start, to->folder != NULL ? "the folder " : "the embedded kernels",
                               to->folder != NULL ? to->folder : "");
        return;
    }
    append_marker(to, 1, name);
    for (int number = 1; to->status == CLFD_SUCCESS && *line != '\0'; line = next, number++) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (read_include(line, &included)) {
            append_file(to, included);
            append_marker(to, number + 1, name);
        } else {
            append(to, line, (size_t)(next - line));
        }
    }
    if (to->status == CLFD_SUCCESS && to->text[to->bytes - 1] != '\n')
        append(to, "\n", 1);
    free(read);
}

clfd_status clfd_source_load(const char *name, const char *folder, char **text, const clfd_logger *logger)
{
    expansion to = {.folder = folder, .logger = logger, .status = CLFD_SUCCESS};

    append_file(&to, (file_name){name, (int)strlen(name)});
    if (to.status == CLFD_SUCCESS)
        *text = to.text;
    else
        free(to.text);
    return to.status;
}
