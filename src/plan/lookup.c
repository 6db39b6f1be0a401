#include "plan/lookup.h"
#include "device/text.h"
#include <string.h>

static bool is_named(const clfd_caps *caps, const clfd_file_row *row)
{
    switch (row->scope) {
    case CLFD_SCOPE_DEVICE:
        return strcmp(row->name, caps->name) == 0;
    case CLFD_SCOPE_ARCHITECTURE:
        return strcmp(row->name, caps->architecture) == 0;
    default:
        return clfd_text_contains(caps->vendor, clfd_slice_of(row->name));
    }
}

/* The first row of a file for the device and the problems; NULL where there is none. */
static const clfd_file_row *find_row(const clfd_file_rows *file, clfd_tuning_scope scope, const clfd_caps *caps,
                                     const clfd_tuning_class *problems)
{
    for (size_t i = 0; i < file->count; i++)
        if (file->rows[i].scope == scope && clfd_tuning_class_equal(&file->rows[i].problems, problems) &&
            is_named(caps, &file->rows[i]))
            return &file->rows[i];
    return NULL;
}

/* A row of a file is an override that only some problems have. */
static void add_row(const clfd_caps *caps, const clfd_attention *attention, const clfd_file_row *row,
                    clfd_log_level level, clfd_tuning *rows, size_t *count, const clfd_logger *logger)
{
    clfd_attention overridden = *attention;
    clfd_tuning found[CLFD_MAX_CANDIDATES];
    clfd_sentence sentence;
    const clfd_logger keeper = clfd_keep_sentence(&sentence);
    size_t num_found = 0;

    overridden.tuning = row->words;
    if (row->words[strspn(row->words, " ")] == '\0')
        return;
    if (clfd_tuning_candidates(caps, &overridden, found, &num_found, &keeper) != CLFD_SUCCESS)
        clfd_note(logger, level, "the tuning row of the %s %s is left out: %s", clfd_scope_names[row->scope], row->name,
                  sentence.text);
    else if (!clfd_tuning_listed(rows, *count, &found[0]))
        rows[(*count)++] = found[0];
}

clfd_status clfd_tuning_lookup(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning_files *files,
                               clfd_tuning rows[CLFD_MAX_LOOKUP], size_t *count, const clfd_logger *logger)
{
    static const clfd_log_level levels[CLFD_NUM_SOURCES] = {CLFD_LOG_WARNING, CLFD_LOG_INFO};
    const clfd_tuning_class problems = clfd_tuning_class_of(attention);
    const bool overridden = attention->tuning != NULL && attention->tuning[strspn(attention->tuning, " ")] != '\0';
    clfd_tuning table[CLFD_MAX_CANDIDATES];
    size_t num_table = 0;
    clfd_status status;

    *count = 0;
    for (int source = 0; source < CLFD_NUM_SOURCES && files != NULL && !overridden; source++)
        for (int scope = 0; scope < CLFD_NUM_SCOPES; scope++) {
            const clfd_file_row *const row =
                find_row(&files->sources[source], (clfd_tuning_scope)scope, caps, &problems);
            if (row != NULL)
                add_row(caps, attention, row, levels[source], rows, count, logger);
        }
    status = clfd_tuning_candidates(caps, attention, table, &num_table, logger);
    for (size_t i = 0; i < num_table; i++)
        if (!clfd_tuning_listed(rows, *count, &table[i]))
            rows[(*count)++] = table[i];
    return status;
}
