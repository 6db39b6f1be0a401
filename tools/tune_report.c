#include "tune.h"
#include <stdio.h>

void tune_report_print(const tune_result *result)
{
    char name[TUNE_CLASS_BYTES];

    printf("%-26s ", tune_class_print(&result->class->shared, name));
    if (!result->is_tuned) {
        printf("shipped row stays (%u rows tried)\n", result->tried);
        return;
    }
    printf("%5.2fx ", result->speedup);
    for (size_t p = 0; p < result->class->num_problems; p++)
        printf(" %.1f -> %.1f us", 1e6 * result->seconds[0][p], 1e6 * result->seconds[1][p]);
    printf("\n    was %s\n    now %s\n", result->shipped, result->words);
    if (result->wrong > 0)
        printf("    %u of %u rows gave wrong results\n", result->wrong, result->tried);
}
