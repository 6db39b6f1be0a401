#include "os.h"
#include "system.h"
#include "tune.h"
#include <stdlib.h>
#include <string.h>

#define FORMAT 1

/* Whether the text is a tuning file; what single rows break, it tells as warnings. */
static bool check_format(const char *text, size_t bytes, const char *path, tool_fault *fault)
{
    const clfd_logger logger = fault_logger(fault);
    clfd_file_rows rows;
    clfd_status status;

    fault_clear(fault);
    status = clfd_tuning_file_read(text, bytes, path, &rows, &logger);
    free(rows.rows);
    return status == CLFD_SUCCESS || fault_status(fault, status, "reading the tuning file");
}

bool tune_file_open(tune_file *file, const char *path, tool_fault *fault)
{
    size_t bytes = 0;
    char *const text = clfd_read_file(path, &bytes);

    *file = (tune_file){.path = malloc(strlen(path) + 1)};
    if (file->path != NULL)
        strcpy(file->path, path);
    if (text == NULL && system_exists(path))
        return fault_failed(fault, "%s cannot be read, and is not written over", path);
    if (text != NULL && !check_format(text, bytes, path, fault)) {
        free(text);
        return false;
    }
    file->whole = text != NULL ? cJSON_Parse(text) : cJSON_CreateObject();
    free(text);
    if (cJSON_GetObjectItemCaseSensitive(file->whole, "rows") == NULL) {
        cJSON_AddNumberToObject(file->whole, "clfd_tuning", FORMAT);
        cJSON_AddArrayToObject(file->whole, "rows");
    }
    return (file->path != NULL && cJSON_GetObjectItemCaseSensitive(file->whole, "rows") != NULL) ||
           fault_failed(fault, "no memory for the tuning file %s", path);
}

void tune_file_close(tune_file *file)
{
    free(file->path);
    cJSON_Delete(file->whole);
    *file = (tune_file){NULL, NULL};
}

/* What a row is found by, as its first keys; NULL without memory. */
static cJSON *create_key(const tune_owner *owner, const clfd_tuning_class *shared)
{
    cJSON *row = cJSON_CreateObject();
    const bool complete = cJSON_AddStringToObject(row, clfd_scope_names[owner->scope], owner->name) != NULL &&
                          cJSON_AddStringToObject(row, "k_type", clfd_type_name(shared->k_type)) != NULL &&
                          cJSON_AddStringToObject(row, "v_type", clfd_type_name(shared->v_type)) != NULL &&
                          cJSON_AddNumberToObject(row, "head_dim", shared->head_dim) != NULL &&
                          cJSON_AddNumberToObject(row, "head_dim_v", shared->head_dim_v) != NULL &&
                          cJSON_AddNumberToObject(row, "ratio", shared->ratio) != NULL;

    if (complete)
        return row;
    cJSON_Delete(row);
    return NULL;
}

/* The row of the file for a class; NULL where it has none. */
static cJSON *find_row(const tune_file *file, const tune_owner *owner, const clfd_tuning_class *shared)
{
    cJSON *const key = create_key(owner, shared), *found = NULL;

    for (cJSON *row = cJSON_GetObjectItemCaseSensitive(file->whole, "rows")->child;
         row != NULL && key != NULL && found == NULL; row = row->next) {
        bool same = true;
        for (const cJSON *item = key->child; item != NULL && same; item = item->next)
            same = cJSON_Compare(cJSON_GetObjectItemCaseSensitive(row, item->string), item, true);
        found = same ? row : NULL;
    }
    cJSON_Delete(key);
    return found;
}

static const char *print_version(char text[32])
{
    const uint32_t version = clfd_version();

    snprintf(text, 32, "%u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000);
    return text;
}

static bool is_text(const cJSON *object, const char *key, const char *text)
{
    const char *const value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

    return value != NULL && strcmp(value, text) == 0;
}

bool tune_file_has(const tune_file *file, const tune_owner *owner, const clfd_tuning_class *shared)
{
    const cJSON *const row = find_row(file, owner, shared);
    const cJSON *const measured = cJSON_GetObjectItemCaseSensitive(row, "measured");
    char version[32];

    return is_text(measured, "driver", owner->driver) && is_text(measured, "clfd", print_version(version)) &&
           (owner->quick || cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(measured, "quick")));
}

static void add_problems(cJSON *measured, const tune_result *result)
{
    cJSON *const problems = cJSON_AddArrayToObject(measured, "problems");
    char text[PROBLEM_BYTES];

    for (size_t p = 0; p < result->class->num_problems; p++) {
        cJSON *const problem = cJSON_CreateObject();
        cJSON_AddStringToObject(problem, "problem", problem_print(&result->class->problems[p], text));
        json_add_number(problem, "shipped_us", 1e6 * result->seconds[0][p]);
        json_add_number(problem, "best_us", 1e6 * result->seconds[1][p]);
        cJSON_AddItemToArray(problems, problem);
    }
}

cJSON *tune_file_row(const tune_owner *owner, const tune_result *result)
{
    cJSON *const row = create_key(owner, &result->class->shared);
    char version[32];

    if (row == NULL)
        return NULL;
    cJSON_AddStringToObject(row, "tuning", result->is_tuned ? result->words : "");
    cJSON *const measured = cJSON_AddObjectToObject(row, "measured");
    cJSON_AddStringToObject(measured, "clfd", print_version(version));
    cJSON_AddStringToObject(measured, "driver", owner->driver);
    cJSON_AddBoolToObject(measured, "quick", owner->quick);
    cJSON_AddNumberToObject(measured, "rows_tried", result->tried);
    cJSON_AddNumberToObject(measured, "rows_refused", result->refused);
    cJSON_AddNumberToObject(measured, "rows_wrong", result->wrong);
    cJSON_AddStringToObject(measured, "shipped", result->shipped);
    cJSON_AddStringToObject(measured, "best", result->words);
    json_add_number(measured, "speedup", result->speedup);
    add_problems(measured, result);
    return row;
}

static bool write_whole(const tune_file *file, tool_fault *fault)
{
    output_file output = {.stream = NULL};
    const bool good = system_make_folders(file->path, fault) && output_open(&output, file->path, fault) &&
                      json_print(file->whole, output.stream, fault) && output_close(&output, fault) &&
                      output_commit(&output, fault);

    output_discard(&output);
    return good;
}

bool tune_file_put(tune_file *file, const tune_owner *owner, const tune_result *result, tool_fault *fault)
{
    cJSON *const rows = cJSON_GetObjectItemCaseSensitive(file->whole, "rows");
    cJSON *const old = find_row(file, owner, &result->class->shared);
    cJSON *const row = tune_file_row(owner, result);

    if (row == NULL)
        return fault_failed(fault, "no memory for a row of %s", file->path);
    if (old != NULL)
        cJSON_ReplaceItemViaPointer(rows, old, row);
    else
        cJSON_AddItemToArray(rows, row);
    return write_whole(file, fault);
}
