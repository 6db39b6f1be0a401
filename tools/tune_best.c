#include "plan/check.h"
#include "tune.h"
#include <string.h>

/* The rows that a plan of the class would try without a user's file. */
static bool find_starts(const tune_class *class, const clfd_caps *caps, const clfd_tuning_files *shipped,
                        clfd_tuning rows[CLFD_MAX_LOOKUP], size_t *count, tool_fault *fault)
{
    const clfd_logger logger = fault_logger(fault);
    const bench_problem *problem = &class->problems[0];
    clfd_attention attention = problem_attention(problem), complete;
    clfd_status status;

    /* Rows do not depend on how many pages there are. */
    attention.num_pages = attention.paging != CLFD_PAGING_NONE ? 1 : 0;
    fault_clear(fault);
    status = clfd_complete_attention(&attention, &complete, &logger);
    if (status == CLFD_SUCCESS)
        status = clfd_tuning_lookup(caps, &complete, shipped, rows, count, &logger);
    return status == CLFD_SUCCESS || fault_status(fault, status, "looking up the shipped rows");
}

/* The first start that computes right results takes the lead; usually it is the first of all. */
static bool begin(tune_contest *contest, const clfd_tuning *starts, size_t count, size_t *first, tool_fault *fault)
{
    bool right = false;

    for (*first = 0; *first < count; (*first)++) {
        if (!tune_contest_begin(contest, &starts[*first], &right, fault))
            return false;
        if (right)
            return true;
    }
    return fault_failed(fault, "none of the %zu rows that %s could run gives right results", count,
                        contest->device->session.device.name);
}

bool tune_find_best(tune_contest *contest, const clfd_caps *caps, const clfd_tuning_files *shipped,
                    const tune_limits *limits, tune_result *result, tool_fault *fault)
{
    const tune_judge judge = {tune_contest_challenge, contest};
    clfd_tuning starts[CLFD_MAX_LOOKUP], best;
    size_t count = 0, first;

    *result = (tune_result){.class = contest->class};
    if (!find_starts(contest->class, caps, shipped, starts, &count, fault) ||
        !begin(contest, starts, count, &first, fault) ||
        !tune_search(starts + first, count - first, limits, &judge, &best, fault) ||
        !tune_contest_compare(contest, &starts[first], result->seconds, &result->speedup, fault))
        return false;
    /* What is gained by accident is lost in the last comparison; a shipped row that is wrong is replaced in any case. */
    tune_words(&starts[first], result->shipped);
    tune_words(&best, result->words);
    result->is_tuned = first > 0 || (strcmp(result->words, result->shipped) != 0 && result->speedup >= 1 + TUNE_MARGIN);
    result->tried = contest->tried;
    result->refused = contest->refused;
    result->wrong = contest->wrong;
    return true;
}
