#include "plan/words.h"
#include "tune_measure.h"
#include <stdio.h>
#include <string.h>

const char *tune_words(const clfd_tuning *row, char words[TUNE_WORDS_BYTES])
{
    const int used = snprintf(words, TUNE_WORDS_BYTES, "family=%s ", clfd_family_name(row->family));

    clfd_tuning_print(row, words + used, TUNE_WORDS_BYTES - (size_t)used);
    return words;
}

bool tune_contest_open(tune_contest *contest, tool_fault *fault)
{
    const tune_class *class = contest->class;
    const uint32_t count = (uint32_t)contest->class->num_problems;

    for (size_t p = 0; p < count; p++) {
        bench_memory *memory = &contest->memory[p];
        if (!bench_lay_out(&class->problems[p], &contest->device->session.device, memory, fault))
            return false;
        /* The problems take turns: all copies of the others are read before one is read again. */
        memory->num_copies = (memory->num_copies + count - 1) / count;
        if (memory->num_copies == 1 && memory->copy_bytes * 2 <= contest->device->session.device.max_alloc_bytes)
            memory->num_copies = 2;
        if (!bench_allocate(contest->device, &class->problems[p], memory, fault))
            return false;
    }
    return tune_check_open(contest->device, &class->problems[0], &contest->check, fault);
}

void tune_contest_close(tune_contest *contest)
{
    tune_row_close(contest, contest->best);
    for (size_t p = 0; p < contest->class->num_problems; p++)
        bench_free(&contest->memory[p]);
    tune_check_close(&contest->check);
}

bool tune_contest_begin(tune_contest *contest, const clfd_tuning *row, bool *right, tool_fault *fault)
{
    char words[TUNE_WORDS_BYTES];

    contest->tried++;
    *right = false;
    tune_row_close(contest, contest->best);
    if (!tune_row_open(contest, tune_words(row, words), contest->best, fault)) {
        contest->refused++;
        fault_clear(fault);
        return true;
    }
    if (!tune_check_row(contest->device, &contest->check, words, right, fault))
        return false;
    contest->wrong += !*right;
    return true;
}

/* Whether a measured row takes over. */
static tune_verdict decide(tune_contest *contest, const char *words, bench_decoder *challenger, const tune_measured *m,
                           tool_fault *fault)
{
    tune_verdict verdict = TUNE_LOST;
    bool right;

    if (m->mean < 1 + TUNE_MARGIN || m->worst < 1 - TUNE_MARGIN)
        return TUNE_LOST;
    if (!tune_check_row(contest->device, &contest->check, words, &right, fault))
        return TUNE_STOPPED;
    if (right && tune_agree(contest, challenger, &verdict, fault))
        return TUNE_WON;
    contest->wrong += verdict == TUNE_LOST;
    return verdict;
}

tune_verdict tune_contest_challenge(void *user, const clfd_tuning *row, tool_fault *fault)
{
    tune_contest *contest = user;
    bench_decoder challenger[TUNE_MAX_PROBLEMS];
    char words[TUNE_WORDS_BYTES];
    tune_verdict verdict;
    tune_measured m;

    contest->tried++;
    if (contest->progress != NULL)
        contest->progress(contest->user, contest);
    if (!tune_row_open(contest, tune_words(row, words), challenger, fault)) {
        contest->refused++;
        fault_clear(fault);
        return TUNE_LOST;
    }
    verdict = tune_measure(contest, challenger, contest->repeats, true, &m, fault);
    if (verdict == TUNE_WON)
        verdict = decide(contest, words, challenger, &m, fault);
    else
        contest->refused += verdict == TUNE_LOST;
    if (verdict == TUNE_WON) {
        tune_row_close(contest, contest->best);
        memcpy(contest->best, challenger, sizeof challenger);
        return TUNE_WON;
    }
    tune_row_close(contest, challenger);
    if (verdict == TUNE_LOST)
        fault_clear(fault);
    return verdict;
}

bool tune_contest_compare(tune_contest *contest, const clfd_tuning *row, double seconds[2][TUNE_MAX_PROBLEMS],
                          double *speedup, tool_fault *fault)
{
    bench_decoder found[TUNE_MAX_PROBLEMS];
    char words[TUNE_WORDS_BYTES];
    tune_measured m;
    bool good;

    /* The shipped row is defended, so that the better one must win again. */
    memcpy(found, contest->best, sizeof found);
    good = tune_row_open(contest, tune_words(row, words), contest->best, fault) &&
           tune_measure(contest, found, 2 * contest->repeats, false, &m, fault) == TUNE_WON;
    tune_row_close(contest, found);
    if (good) {
        memcpy(seconds, m.seconds, sizeof m.seconds);
        *speedup = m.mean;
    }
    return good;
}
