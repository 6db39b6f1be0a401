#include "plan/tuning_file.h"
#include "plan/check.h"
#include "plan/words.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1
#define MAX_RATIO 64u /* beyond half of it warps share tiles: src/plan/tuning.c */

const char *const clfd_scope_names[CLFD_NUM_SCOPES] = {
    [CLFD_SCOPE_DEVICE] = "device",
    [CLFD_SCOPE_ARCHITECTURE] = "architecture",
    [CLFD_SCOPE_VENDOR] = "vendor",
};

clfd_tuning_class clfd_tuning_class_of(const clfd_attention *attention)
{
    const uint64_t rows = attention->shared_kv
                              ? MAX_RATIO
                              : (uint64_t)attention->num_q_heads / attention->num_kv_heads * attention->q_len;
    clfd_tuning_class found = {attention->k_type, attention->v_type, attention->head_dim, attention->head_dim_v, 1};

    while (found.ratio < rows && found.ratio < MAX_RATIO)
        found.ratio *= 2;
    return found;
}

bool clfd_tuning_class_equal(const clfd_tuning_class *a, const clfd_tuning_class *b)
{
    return a->k_type == b->k_type && a->v_type == b->v_type && a->head_dim == b->head_dim &&
           a->head_dim_v == b->head_dim_v && a->ratio == b->ratio;
}

/* A row under construction, and whom its faults are told. */
typedef struct reader {
    const char *file;
    size_t number; /* of the row, from 1 */
    const clfd_logger *logger;
} reader;

/* Says why a row is skipped. Returns false, so that a caller can return it. */
#define SKIP(reader, format, ...)                                                                                      \
    (clfd_note((reader)->logger, CLFD_LOG_WARNING, "%s: row %zu is skipped: " format, (reader)->file,                  \
               (reader)->number, __VA_ARGS__),                                                                         \
     false)

static bool is_known(const char *key)
{
    static const char *const keys[] = {"k_type", "v_type", "head_dim", "head_dim_v", "ratio", "tuning", "measured"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    for (int scope = 0; scope < CLFD_NUM_SCOPES; scope++)
        if (strcmp(key, clfd_scope_names[scope]) == 0)
            return true;
    return false;
}

/* A key that is misspelt must not be taken for one that is absent. */
static bool check_keys(const reader *r, const cJSON *object)
{
    for (const cJSON *item = object->child; item != NULL; item = item->next)
        if (!is_known(item->string))
            return SKIP(r, "\"%.80s\" is no key of a row", item->string);
    return true;
}

/* Copies a text that must be there and fit. */
static bool read_text(const reader *r, const cJSON *object, const char *key, char *text, size_t bytes)
{
    const char *const value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

    if (value == NULL)
        return SKIP(r, "%s is no string; a row needs one", key);
    if (strlen(value) >= bytes)
        return SKIP(r, "%s has %zu characters; it must have less than %zu", key, strlen(value), bytes);
    memcpy(text, value, strlen(value) + 1);
    return true;
}

static bool read_name(const reader *r, const cJSON *object, clfd_file_row *row)
{
    int found = 0;

    for (int scope = 0; scope < CLFD_NUM_SCOPES; scope++)
        if (cJSON_HasObjectItem(object, clfd_scope_names[scope])) {
            row->scope = (clfd_tuning_scope)scope;
            found++;
        }
    if (found != 1)
        return SKIP(r, "it has %d of device, architecture and vendor; it must have one", found);
    if (!read_text(r, object, clfd_scope_names[row->scope], row->name, sizeof row->name))
        return false;
    return row->name[strspn(row->name, " ")] != '\0' || SKIP(r, "%s is blank", clfd_scope_names[row->scope]);
}

static bool read_type(const reader *r, const cJSON *object, const char *key, clfd_type *type)
{
    char name[32];

    if (!read_text(r, object, key, name, sizeof name))
        return false;
    for (*type = CLFD_TYPE_F32; clfd_type_name(*type) != NULL; (*type)++)
        if (strcmp(clfd_type_name(*type), name) == 0)
            return true;
    return SKIP(r, "%s is \"%s\"; it must be the name of a type, such as f16 or int8", key, name);
}

/* A whole number from 1 to `most`. */
static bool read_number(const reader *r, const cJSON *object, const char *key, uint32_t most, uint32_t *value)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, key);
    const double number = cJSON_GetNumberValue(item);

    if (!cJSON_IsNumber(item))
        return SKIP(r, "%s is no number; a row needs one", key);
    if (!(number >= 1 && number <= most) || number != floor(number))
        return SKIP(r, "%s is %g; it must be a whole number from 1 to %u", key, number, most);
    *value = (uint32_t)number;
    return true;
}

static bool read_class(const reader *r, const cJSON *object, clfd_tuning_class *problems)
{
    if (!read_type(r, object, "k_type", &problems->k_type) || !read_type(r, object, "v_type", &problems->v_type) ||
        !read_number(r, object, "head_dim", CLFD_MAX_HEAD_DIM, &problems->head_dim) ||
        !read_number(r, object, "head_dim_v", CLFD_MAX_HEAD_DIM, &problems->head_dim_v) ||
        !read_number(r, object, "ratio", MAX_RATIO, &problems->ratio))
        return false;
    if (problems->head_dim % 8 != 0 || problems->head_dim_v % 8 != 0)
        return SKIP(r, "head_dim is %u and head_dim_v %u; they must be multiples of 8", problems->head_dim,
                    problems->head_dim_v);
    return (problems->ratio & (problems->ratio - 1)) == 0 ||
           SKIP(r, "ratio is %u; it must be a power of two", problems->ratio);
}

/* Names and ranges are checked here; what a device or a problem makes of them, at the look-up. */
static bool read_words(const reader *r, const cJSON *object, clfd_file_row *row)
{
    clfd_sentence sentence;
    const clfd_logger keeper = clfd_keep_sentence(&sentence);
    clfd_tuning probe = {.work_group = 0};
    clfd_wish wish;

    if (!read_text(r, object, "tuning", row->words, sizeof row->words))
        return false;
    if (row->words[strspn(row->words, " ")] == '\0')
        return true;
    if (clfd_words_read_wish(row->words, &wish, &keeper) != CLFD_SUCCESS)
        return SKIP(r, "%s", sentence.text);
    if (wish.family < 0)
        return SKIP(r, "its tuning names no family: \"%.80s\"", row->words);
    probe.family = (clfd_family)wish.family;
    return clfd_words_apply(row->words, &probe, &keeper) == CLFD_SUCCESS || SKIP(r, "%s", sentence.text);
}

static bool read_row(const reader *r, const cJSON *object, const clfd_file_rows *before, clfd_file_row *row)
{
    *row = (clfd_file_row){.scope = CLFD_SCOPE_DEVICE};
    if (!cJSON_IsObject(object))
        return SKIP(r, "it is no %s", "object");
    if (!check_keys(r, object) || !read_name(r, object, row) || !read_class(r, object, &row->problems) ||
        !read_words(r, object, row))
        return false;
    for (size_t i = 0; i < before->count; i++)
        if (before->rows[i].scope == row->scope && strcmp(before->rows[i].name, row->name) == 0 &&
            clfd_tuning_class_equal(&before->rows[i].problems, &row->problems))
            return SKIP(r, "an earlier row is for the same %s and problems", clfd_scope_names[row->scope]);
    return true;
}

static size_t line_of(const char *text, const char *at)
{
    size_t line = 1;

    for (const char *c = text; c < at; c++)
        line += *c == '\n';
    return line;
}

/* The array of rows; NULL with a sentence where the text has none. */
static const cJSON *find_rows(const cJSON *file, const char *text, const char *stopped, const char *name,
                              const clfd_logger *logger)
{
    const cJSON *const format = cJSON_GetObjectItemCaseSensitive(file, "clfd_tuning");
    const cJSON *const rows = cJSON_GetObjectItemCaseSensitive(file, "rows");

    if (file == NULL)
        clfd_fail(logger, CLFD_ERROR_TUNING_FILE, "%s is no tuning file: line %zu is no JSON", name,
                  line_of(text, stopped));
    else if (!cJSON_IsNumber(format) || format->valuedouble != FORMAT)
        clfd_fail(logger, CLFD_ERROR_TUNING_FILE, "%s is no tuning file: \"clfd_tuning\" must be %d", name, FORMAT);
    else if (!cJSON_IsArray(rows))
        clfd_fail(logger, CLFD_ERROR_TUNING_FILE, "%s is no tuning file: \"rows\" must be an array", name);
    else
        return rows;
    return NULL;
}

clfd_status clfd_tuning_file_read(const char *text, size_t bytes, const char *file, clfd_file_rows *rows,
                                  const clfd_logger *logger)
{
    reader r = {.file = file, .number = 0, .logger = logger};
    const char *stopped = text;
    cJSON *const whole = cJSON_ParseWithLengthOpts(text, bytes + 1, &stopped, true);
    const cJSON *const array = find_rows(whole, text, stopped, file, logger);
    const size_t count = array != NULL ? (size_t)cJSON_GetArraySize(array) : 0;
    clfd_status status = array != NULL ? CLFD_SUCCESS : CLFD_ERROR_TUNING_FILE;

    *rows = (clfd_file_rows){NULL, 0};
    if (count > 0 && (rows->rows = malloc(count * sizeof rows->rows[0])) == NULL)
        status = clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no memory for the %zu rows of %s", count, file);
    if (status == CLFD_SUCCESS)
        for (const cJSON *item = array->child; item != NULL; item = item->next) {
            r.number++;
            rows->count += read_row(&r, item, rows, &rows->rows[rows->count]);
        }
    cJSON_Delete(whole);
    return status;
}
