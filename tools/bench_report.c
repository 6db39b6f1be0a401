#include "bench.h"
#include "json.h"
#include <errno.h>
#include <string.h>

#define NUM_NUMBERS 20
/* The first of the numbers below that a plain read alone does not have. */
#define FIRST_DECODED 7

typedef struct number {
    const char *name;
    double value;
} number;

static double gigabytes(size_t bytes, double seconds) { return 1e-9 * (double)bytes / seconds; }

/* The numbers of a result as machines read them: one list for JSON and CSV. */
static void list_numbers(const bench_result *r, number numbers[NUM_NUMBERS])
{
    const number all[NUM_NUMBERS] = {
        {"read_bytes", (double)r->read_bytes},
        {"copies", r->num_copies},
        {"cached", r->cached},
        {"read_single_us", 1e6 * r->read_single},
        {"read_steady_us", 1e6 * r->read_steady},
        {"read_single_gbs", gigabytes(r->read_bytes, r->read_single)},
        {"read_steady_gbs", gigabytes(r->read_bytes, r->read_steady)},
        {"single_us", 1e6 * r->times.single},
        {"steady_us", 1e6 * r->steady},
        {"single_gbs", gigabytes(r->read_bytes, r->times.single)},
        {"steady_gbs", gigabytes(r->read_bytes, r->steady)},
        {"single_percent", 100 * r->read_single / r->times.single},
        {"steady_percent", 100 * r->read_steady / r->steady},
        {"split_us", 1e6 * r->times.split},
        {"merge_us", 1e6 * r->times.merge},
        {"prefix_us", r->num_parts > 1 ? 1e6 * r->times.parts[0] : 0},
        {"suffix_us", r->num_parts > 1 ? 1e6 * r->times.parts[1] : 0},
        {"combine_us", 1e6 * r->times.combine},
        {"host_us", 1e6 * r->host},
        {"workspace_bytes", (double)r->workspace_bytes},
    };
    memcpy(numbers, all, sizeof all);
}

static size_t num_numbers(const bench_result *result) { return result->plan[0] != '\0' ? NUM_NUMBERS : FIRST_DECODED; }

void bench_print(const bench_result *r)
{
    printf("%s\n", r->problem);
    if (r->plan[0] != '\0')
        printf("  plan    %s\n", r->plan);
    printf("  bytes   %.2f MiB to read, %u copies in turn%s\n", (double)r->read_bytes / (1 << 20), r->num_copies,
           r->cached ? "; HOT: caches may hold much of them" : "");
    printf("  read    single %10.1f us %8.1f GB/s            steady %10.1f us %8.1f GB/s\n", 1e6 * r->read_single,
           gigabytes(r->read_bytes, r->read_single), 1e6 * r->read_steady, gigabytes(r->read_bytes, r->read_steady));
    if (r->plan[0] == '\0')
        return;
    printf("  decode  single %10.1f us %8.1f GB/s  %5.1f %%   steady %10.1f us %8.1f GB/s  %5.1f %%\n",
           1e6 * r->times.single, gigabytes(r->read_bytes, r->times.single), 100 * r->read_single / r->times.single,
           1e6 * r->steady, gigabytes(r->read_bytes, r->steady), 100 * r->read_steady / r->steady);
    printf("          split  %10.1f us  merge %8.1f us            host   %10.1f us per enqueue\n", 1e6 * r->times.split,
           1e6 * r->times.merge, 1e6 * r->host);
    if (r->num_parts > 1)
        printf("          prefix %10.1f us  suffix %7.1f us            merge of both %6.1f us\n",
               1e6 * r->times.parts[0], 1e6 * r->times.parts[1], 1e6 * r->times.combine);
    printf("          workspace %zu bytes\n", r->workspace_bytes);
}

static cJSON *result_json(const bench_result *result)
{
    cJSON *object = cJSON_CreateObject();
    number numbers[NUM_NUMBERS];

    cJSON_AddStringToObject(object, "problem", result->problem);
    if (result->plan[0] != '\0')
        cJSON_AddStringToObject(object, "plan", result->plan);
    list_numbers(result, numbers);
    for (size_t i = 0; i < num_numbers(result); i++)
        json_add_number(object, numbers[i].name, numbers[i].value);
    return object;
}

bool bench_write_json(output_file *output, const clfd_device_info *device, const bench_result *results, size_t count,
                      tool_fault *fault)
{
    cJSON *object = cJSON_CreateObject(), *array = cJSON_CreateArray();
    bool written;

    cJSON_AddItemToObject(object, "device", json_device(device));
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(array, result_json(&results[i]));
    cJSON_AddItemToObject(object, "results", array);
    written = json_print(object, output->stream, fault);
    cJSON_Delete(object);
    return written;
}

bool bench_write_csv(output_file *output, const bench_result *results, size_t count, tool_fault *fault)
{
    number numbers[NUM_NUMBERS];

    errno = 0;
    for (size_t r = 0; r < count; r++) {
        list_numbers(&results[r], numbers);
        if (r == 0) {
            fprintf(output->stream, "problem,plan");
            for (size_t i = 0; i < NUM_NUMBERS; i++)
                fprintf(output->stream, ",%s", numbers[i].name);
            fprintf(output->stream, "\n");
        }
        /* Neither text holds a quote or a comma. */
        fprintf(output->stream, "%s,%s", results[r].problem, results[r].plan);
        for (size_t i = 0; i < NUM_NUMBERS; i++) {
            if (i < num_numbers(&results[r]))
                fprintf(output->stream, ",%.10g", numbers[i].value);
            else
                fprintf(output->stream, ",");
        }
        fprintf(output->stream, "\n");
    }
    return ferror(output->stream) == 0 ? true : fault_failed(fault, "cannot write CSV: %s", strerror(errno));
}
