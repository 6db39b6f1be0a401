#include "system.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <errno.h>
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

bool system_replace(const char *from, const char *to)
{
    if (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING))
        return true;
    errno = EACCES;
    return false;
}
#else
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

bool system_replace(const char *from, const char *to) { return rename(from, to) == 0; }
#endif
