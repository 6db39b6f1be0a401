#include "program/program.h"
#include "support/device.h"
#include "support/folder.h"
#include "support/log.h"
#include "support/suite.h"
#include <string.h>

/* A context with a cache of its own. */
typedef struct cached_context {
    cl_context cl;
    clfd_program_cache cache;
} cached_context;

static const char probe[] = "__kernel void probe(__global int *a) { *a = HEAD_DIM; }\n";

static cl_device_id device;
static char folder[64];
static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    device = test_device();
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
    test_folder_create(folder);
    test_folder_write(folder, "probe.cl", probe);
}

static void tear_down(void) { test_folder_remove(folder); }

static void open_context(cached_context *opened)
{
    opened->cl = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(opened->cl);
    ck_assert_int_eq(clfd_cache_init(&opened->cache), CLFD_SUCCESS);
}

static cl_uint context_references(cl_context context)
{
    cl_uint references = 0;

    ck_assert_int_eq(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references, NULL),
                     CL_SUCCESS);
    return references;
}

static void close_context(cached_context *opened)
{
    clfd_cache_clear(&opened->cache);
    ck_assert_uint_eq(context_references(opened->cl), 1);
    ck_assert_int_eq(clReleaseContext(opened->cl), CL_SUCCESS);
}

static clfd_status get(cached_context *from, const char *options, cl_program *program)
{
    return clfd_cache_get(&from->cache, from->cl, device, "probe", options, folder, CLFD_LOG_ERROR, program, &logger);
}

/* The program for the options, which must be one of its context; the reference is given back. */
static cl_program get_and_release(cached_context *from, const char *options)
{
    cl_program program = NULL;
    cl_context owner = NULL;

    ck_assert_int_eq(get(from, options, &program), CLFD_SUCCESS);
    ck_assert_int_eq(clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof owner, &owner, NULL), CL_SUCCESS);
    ck_assert_ptr_eq(owner, from->cl);
    ck_assert_int_eq(clReleaseProgram(program), CL_SUCCESS);
    return program;
}

START_TEST(same_key_gives_the_same_program_and_another_key_another)
{
    cached_context opened;
    cl_program d64, d128;

    open_context(&opened);
    d64 = get_and_release(&opened, "-DHEAD_DIM=64");
    d128 = get_and_release(&opened, "-DHEAD_DIM=128");
    ck_assert_ptr_ne(d64, d128);
    ck_assert_ptr_eq(get_and_release(&opened, "-DHEAD_DIM=64"), d64);
    ck_assert_ptr_eq(get_and_release(&opened, "-DHEAD_DIM=128"), d128);
    close_context(&opened);
}
END_TEST

START_TEST(two_alternating_contexts_get_programs_of_their_own)
{
    cached_context a, b;
    cl_program of_a, of_b;

    open_context(&a);
    open_context(&b);
    of_a = get_and_release(&a, "-DHEAD_DIM=64");
    of_b = get_and_release(&b, "-DHEAD_DIM=64");
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_eq(get_and_release(&a, "-DHEAD_DIM=64"), of_a);
        ck_assert_ptr_eq(get_and_release(&b, "-DHEAD_DIM=64"), of_b);
    }
    close_context(&a);
    ck_assert_ptr_eq(get_and_release(&b, "-DHEAD_DIM=64"), of_b);
    close_context(&b);
}
END_TEST

START_TEST(program_outlives_the_cache_until_its_owner_releases_it)
{
    cached_context opened;
    cl_program program = NULL;
    cl_uint references = 0;

    open_context(&opened);
    ck_assert_int_eq(get(&opened, "-DHEAD_DIM=64", &program), CLFD_SUCCESS);
    clfd_cache_clear(&opened.cache);
    ck_assert_int_eq(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof references, &references, NULL),
                     CL_SUCCESS);
    ck_assert_uint_eq(references, 1);
    ck_assert_int_eq(clReleaseProgram(program), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(opened.cl), CL_SUCCESS);
}
END_TEST

START_TEST(failed_build_is_not_cached)
{
    cached_context opened;
    cl_program program = NULL;

    open_context(&opened);
    test_folder_write(folder, "probe.cl", "__kernel void probe(void) { no_such_name; }\n");
    for (int i = 1; i <= 2; i++) {
        ck_assert_int_eq(get(&opened, "", &program), CL_BUILD_PROGRAM_FAILURE);
        ck_assert_ptr_null(program);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], i);
        ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "no_such_name"));
    }
    test_folder_write(folder, "probe.cl", probe);
    get_and_release(&opened, "-DHEAD_DIM=64");
    close_context(&opened);
}
END_TEST

START_TEST(missing_source_is_a_status_and_is_not_cached)
{
    cached_context opened;
    cl_program program = NULL;
    char long_name[100];

    open_context(&opened);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            clfd_cache_get(&opened.cache, opened.cl, device, "absent", "", NULL, CLFD_LOG_ERROR, &program, &logger),
            CLFD_ERROR_KERNEL_SOURCE);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 2);
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    ck_assert_int_eq(
        clfd_cache_get(&opened.cache, opened.cl, device, long_name, "", NULL, CLFD_LOG_ERROR, &program, &logger),
        CLFD_ERROR_KERNEL_SOURCE);
    ck_assert_ptr_null(program);
    close_context(&opened);
}
END_TEST

/* One of several threads that ask for the same program at the same time. */
typedef struct asking_thread {
    pthread_t thread;
    pthread_barrier_t *start;
    cached_context *from;
    cl_program program;
    clfd_status status;
} asking_thread;

static void *ask(void *argument)
{
    asking_thread *asking = argument;

    pthread_barrier_wait(asking->start);
    asking->status = get(asking->from, "-DHEAD_DIM=64", &asking->program);
    return NULL;
}

/* The log counts builds: the cache's lock, under which builds are logged, also keeps the counter whole. */
START_TEST(threads_that_ask_for_one_key_build_it_once)
{
    enum { NUM_THREADS = 4 };
    asking_thread threads[NUM_THREADS];
    pthread_barrier_t start;
    cached_context opened;

    open_context(&opened);
    ck_assert_int_eq(pthread_barrier_init(&start, NULL, NUM_THREADS), 0);
    for (int i = 0; i < NUM_THREADS; i++) {
        threads[i] = (asking_thread){.start = &start, .from = &opened};
        ck_assert_int_eq(pthread_create(&threads[i].thread, NULL, ask, &threads[i]), 0);
    }
    for (int i = 0; i < NUM_THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i].thread, NULL), 0);
    for (int i = 0; i < NUM_THREADS; i++) {
        ck_assert_int_eq(threads[i].status, CLFD_SUCCESS);
        ck_assert_ptr_eq(threads[i].program, threads[0].program);
        ck_assert_int_eq(clReleaseProgram(threads[i].program), CL_SUCCESS);
    }
    ck_assert_int_eq(heard.count[CLFD_LOG_INFO], 1);
    pthread_barrier_destroy(&start);
    close_context(&opened);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        same_key_gives_the_same_program_and_another_key_another,
        two_alternating_contexts_get_programs_of_their_own,
        program_outlives_the_cache_until_its_owner_releases_it,
        failed_build_is_not_cached,
        missing_source_is_a_status_and_is_not_cached,
        threads_that_ask_for_one_key_build_it_once,
    };

    return run_suite_around("cache", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}
