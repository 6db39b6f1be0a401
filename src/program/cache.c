/* cache.c - the programs of one context. A list is enough: a process holds tens of programs, and a look-up happens when
 * a plan is created. */
#include "program/program.h"
#include <string.h>

struct clfd_cached_program {
    struct clfd_cached_program *next;
    cl_program program;
    const char *name, *options; /* the key; both point into `key` */
    char key[];
};

/* An entry that holds copies of its key and no program yet; NULL without memory. */
static struct clfd_cached_program *create_entry(const char *name, const char *options)
{
    const size_t name_bytes = strlen(name) + 1, options_bytes = strlen(options) + 1;
    struct clfd_cached_program *entry = malloc(sizeof *entry + name_bytes + options_bytes);

    if (entry == NULL)
        return NULL;
    entry->next = NULL;
    entry->program = NULL;
    entry->name = memcpy(entry->key, name, name_bytes);
    entry->options = memcpy(entry->key + name_bytes, options, options_bytes);
    return entry;
}

static struct clfd_cached_program *find_entry(const clfd_program_cache *cache, const char *name, const char *options)
{
    for (struct clfd_cached_program *entry = cache->first; entry != NULL; entry = entry->next)
        if (strcmp(entry->name, name) == 0 && strcmp(entry->options, options) == 0)
            return entry;
    return NULL;
}

/* Loads "<name>.cl" and builds it. */
static clfd_status build_program(cl_context context, cl_device_id device, const char *name, const char *options,
                                 const char *folder, clfd_log_level level, cl_program *program,
                                 const clfd_logger *logger)
{
    char file[64], *source = NULL;
    clfd_status status;

    if (snprintf(file, sizeof file, "%s.cl", name) >= (int)sizeof file)
        return clfd_fail(logger, CLFD_ERROR_KERNEL_SOURCE, "kernel name %s is longer than %zu bytes", name,
                         sizeof file - sizeof ".cl");
    status = clfd_source_load(file, folder, &source, logger);
    if (status == CLFD_SUCCESS)
        status = clfd_program_build(context, device, name, source, options, level, program, logger);
    free(source);
    return status;
}

clfd_status clfd_cache_init(clfd_program_cache *cache)
{
    cache->first = NULL;
    return clfd_mutex_init(&cache->mutex) == 0 ? CLFD_SUCCESS : CLFD_ERROR_HOST_MEMORY;
}

void clfd_cache_clear(clfd_program_cache *cache)
{
    struct clfd_cached_program *entry = cache->first, *next;

    for (; entry != NULL; entry = next) {
        next = entry->next;
        clReleaseProgram(entry->program);
        free(entry);
    }
    cache->first = NULL;
    clfd_mutex_destroy(&cache->mutex);
}

clfd_status clfd_cache_get(clfd_program_cache *cache, cl_context context, cl_device_id device, const char *name,
                           const char *options, const char *folder, clfd_log_level level, cl_program *program,
                           const clfd_logger *logger)
{
    clfd_status status = CLFD_SUCCESS;
    struct clfd_cached_program *entry, *created = NULL;

    clfd_mutex_lock(&cache->mutex);
    entry = find_entry(cache, name, options);
    if (entry == NULL) {
        entry = created = create_entry(name, options);
        if (created == NULL) {
            status = clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no memory for a cache entry of %s", name);
            goto done;
        }
        status = build_program(context, device, name, options, folder, level, &created->program, logger);
        if (status != CLFD_SUCCESS)
            goto done;
        created->next = cache->first;
        cache->first = created;
        created = NULL;
    }
    CLFD_TRY_CL(logger, clRetainProgram(entry->program), "clRetainProgram");
    *program = entry->program;
done:
    clfd_mutex_unlock(&cache->mutex);
    free(created);
    return status;
}
