#include "system.h"
#include "os.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <io.h>
#include <windows.h>

double system_seconds(void)
{
    LARGE_INTEGER ticks, rate;

    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return (double)ticks.QuadPart / (double)rate.QuadPart;
}

bool system_is_terminal(FILE *stream) { return _isatty(_fileno(stream)) != 0; }

bool system_is_special(const char *path)
{
    const DWORD attributes = GetFileAttributesA(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DEVICE) != 0;
}

bool system_exists(const char *path) { return GetFileAttributesA(path) != INVALID_FILE_ATTRIBUTES; }

bool system_is_folder(const char *path)
{
    const DWORD attributes = GetFileAttributesA(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

bool system_same_place(const char *a, const char *b)
{
    char full_a[MAX_PATH], full_b[MAX_PATH];
    return GetFullPathNameA(a, MAX_PATH, full_a, NULL) != 0 && GetFullPathNameA(b, MAX_PATH, full_b, NULL) != 0 &&
           _stricmp(full_a, full_b) == 0;
}

bool system_replace(const char *from, const char *to)
{
    if (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING))
        return true;
    errno = EACCES;
    return false;
}

void system_set_variable(const char *name, const char *value) { _putenv_s(name, value); }

static bool make_folder(const char *path)
{
    return CreateDirectoryA(path, NULL) || GetLastError() == ERROR_ALREADY_EXISTS;
}
#else
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double system_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool system_is_terminal(FILE *stream) { return isatty(fileno(stream)) == 1; }

bool system_is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

bool system_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool system_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The folder that a path names something in, and that name. */
static bool split(const char *path, struct stat *folder, const char **name)
{
    char text[PATH_MAX];
    const char *const slash = strrchr(path, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;

    if (length >= sizeof text)
        return false;
    memcpy(text, path, length);
    text[length] = '\0';
    *name = path + length;
    return stat(length > 0 ? text : ".", folder) == 0;
}

bool system_same_place(const char *a, const char *b)
{
    struct stat folder_a, folder_b;
    const char *name_a, *name_b;

    return split(a, &folder_a, &name_a) && split(b, &folder_b, &name_b) && strcmp(name_a, name_b) == 0 &&
           folder_a.st_dev == folder_b.st_dev && folder_a.st_ino == folder_b.st_ino;
}

bool system_replace(const char *from, const char *to) { return rename(from, to) == 0; }

void system_set_variable(const char *name, const char *value) { setenv(name, value, 1); }

static bool make_folder(const char *path) { return mkdir(path, 0777) == 0 || errno == EEXIST; }
#endif

bool system_make_folders(const char *path, tool_fault *fault)
{
    const size_t length = strlen(path);
    char *const folder = malloc(length + 1);
    bool good = folder != NULL || fault_failed(fault, "no memory for the path %s", path);

    for (size_t i = 1; i < length && good; i++) {
        if (path[i] != '/' && path[i] != CLFD_PATH_SEPARATOR)
            continue;
        memcpy(folder, path, i);
        folder[i] = '\0';
        if (!make_folder(folder) && !system_is_folder(folder))
            good = fault_failed(fault, "cannot create the folder %s: %s", folder, strerror(errno));
    }
    free(folder);
    return good;
}
