#include "run/tuning_files.h"
#include "os.h"
#include "program/embedded.h"
#include <string.h>

#define MAX_PATH_BYTES 4096

static void demote(void *user, clfd_log_level level, const char *message)
{
    clfd_note(user, level == CLFD_LOG_ERROR ? CLFD_LOG_WARNING : level, "%s", message);
}

static clfd_status read_file(const char *path, clfd_file_rows *rows, const clfd_logger *logger)
{
    size_t bytes = 0;
    char *const text = clfd_read_file(path, &bytes);
    clfd_status status;

    if (text == NULL)
        return clfd_fail(logger, CLFD_ERROR_TUNING_FILE, "CLFD_TUNING is \"%s\"; it must be a file that can be read",
                         path);
    status = clfd_tuning_file_read(text, bytes, path, rows, logger);
    free(text);
    return status;
}

/* The file that nobody named on purpose: that it is not there is no news, and no fault of it fails a context. */
static void read_own(clfd_file_rows *rows, const clfd_logger *logger)
{
    clfd_logger shared = *logger;
    const clfd_logger mild = {demote, &shared};
    char path[MAX_PATH_BYTES], *text;
    size_t bytes = 0;

    if (!clfd_config_path("tuning.json", path, sizeof path) || (text = clfd_read_file(path, &bytes)) == NULL)
        return;
    clfd_tuning_file_read(text, bytes, path, rows, &mild);
    free(text);
}

clfd_status clfd_tuning_files_read(clfd_tuning_files *files, const clfd_logger *logger)
{
    const char *const named = getenv("CLFD_TUNING"); /* an empty one says something here */
    clfd_status status = clfd_tuning_file_read(clfd_shipped[0].text, clfd_shipped[0].bytes, clfd_shipped[0].name,
                                               &files->sources[CLFD_SOURCE_SHIPPED], logger);

    if (status != CLFD_SUCCESS)
        return status;
    if (named == NULL)
        read_own(&files->sources[CLFD_SOURCE_USER], logger);
    else if (named[0] != '\0' && strcmp(named, "none") != 0)
        status = read_file(named, &files->sources[CLFD_SOURCE_USER], logger);
    return status;
}

void clfd_tuning_files_free(clfd_tuning_files *files)
{
    for (int source = 0; source < CLFD_NUM_SOURCES; source++)
        free(files->sources[source].rows);
    *files = (clfd_tuning_files){0};
}
