/* os.h - the only home of what differs between operating systems: locks, environment, files. */
#ifndef CLFD_OS_H
#define CLFD_OS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef SRWLOCK clfd_mutex;
static inline int clfd_mutex_init(clfd_mutex *mutex)
{
    InitializeSRWLock(mutex);
    return 0;
}
static inline void clfd_mutex_lock(clfd_mutex *mutex) { AcquireSRWLockExclusive(mutex); }
static inline void clfd_mutex_unlock(clfd_mutex *mutex) { ReleaseSRWLockExclusive(mutex); }
static inline void clfd_mutex_destroy(clfd_mutex *mutex) { (void)mutex; }
#define CLFD_PATH_SEPARATOR '\\'
#else
#include <pthread.h>
typedef pthread_mutex_t clfd_mutex;
/* 0, or an errno value. */
static inline int clfd_mutex_init(clfd_mutex *mutex) { return pthread_mutex_init(mutex, NULL); }
static inline void clfd_mutex_lock(clfd_mutex *mutex) { pthread_mutex_lock(mutex); }
static inline void clfd_mutex_unlock(clfd_mutex *mutex) { pthread_mutex_unlock(mutex); }
static inline void clfd_mutex_destroy(clfd_mutex *mutex) { pthread_mutex_destroy(mutex); }
#define CLFD_PATH_SEPARATOR '/'
#endif

/* The value of an environment variable, or NULL where it is unset or empty. */
static inline const char *clfd_environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Where the user's own file `name` of clfd lies: in the folder of XDG's specification, %APPDATA% on Windows. False where
 * the environment names no such folder, or the path has not less than `bytes` characters. */
static inline bool clfd_config_path(const char *name, char *path, size_t bytes)
{
#if defined(_WIN32)
    const char *const folder = clfd_environment("APPDATA"), *const between = "\\clfd\\";
#else
    const char *const config = clfd_environment("XDG_CONFIG_HOME");
    const bool given = config != NULL && config[0] == '/'; /* a relative one is to be ignored */
    const char *const folder = given ? config : clfd_environment("HOME");
    const char *const between = given ? "/clfd/" : "/.config/clfd/";
#endif
    return folder != NULL && (size_t)snprintf(path, bytes, "%s%s%s", folder, between, name) < bytes;
}

/* No file that clfd reads is larger; what claims to be is none (a folder opens, too, and has any size). */
#define CLFD_MAX_FILE_BYTES (64l << 20)

/* A whole file as a malloc'ed, terminated string; NULL where it cannot be read. *bytes excludes the terminator. */
static inline char *clfd_read_file(const char *path, size_t *bytes)
{
    char *text = NULL;
    long end;
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0 && end <= CLFD_MAX_FILE_BYTES &&
        fseek(file, 0, SEEK_SET) == 0 && (text = malloc((size_t)end + 1)) != NULL) {
        *bytes = fread(text, 1, (size_t)end, file);
        text[*bytes] = '\0';
        if (*bytes != (size_t)end) {
            free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}

#endif
