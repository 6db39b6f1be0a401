/* verify.h - one random problem: drawn (draw.c), filled with numbers (fill.c), computed (trial.c), judged (judge.c). */
#ifndef TOOLS_VERIFY_H
#define TOOLS_VERIFY_H

#include "rng.h"
#include "session.h"
#include "verify_features.h"

#define TRIAL_MAX_BATCH 32
#define TRIAL_MAX_Q_LEN 16
#define TRIAL_MAX_ROWS 64 /* of the cache */
#define TRIAL_MAX_DIM 576

/* Enough for every pair of options in 5,000 problems. */
#define DRAW_DEFAULT_PROGRAMS 150

/* What is compiled into a decode kernel. Problems share these, since each costs a build. */
typedef struct draw_specialisation {
    clfd_attention attention; /* with ratio query heads on one KV head; a window or softcap of 1 stands for any */
    bool balanced;            /* AUTO, whose kernel schedules on the device */
    bool aligned;             /* every base is a multiple of 16 bytes, and the descriptor promises so */
} draw_specialisation;

/* Where problems come from: problem `number` depends on seed, max_programs, tuning and its number, on nothing else. */
typedef struct draw_space {
    uint64_t seed;
    uint32_t max_programs;                /* distinct specialisations, at least 1 */
    const char *tuning;                   /* clfd_attention.tuning of every problem; may be NULL */
    draw_specialisation *specialisations; /* [max_programs] */
} draw_space;

/* Draws the specialisations, each such that it adds many pairs of options to those before it. *space needs
 * draw_space_close whatever happens; false without memory. */
bool draw_space_open(draw_space *space, uint64_t seed, uint32_t max_programs, const char *tuning);
void draw_space_close(draw_space *space);

/* The operands in the order of clfd_buffers; what the device may write comes last. */
typedef enum verify_operand {
    OPERAND_Q,
    OPERAND_K,
    OPERAND_V,
    OPERAND_KV_LENS,
    OPERAND_ALIBI,
    OPERAND_BIAS,
    OPERAND_MASK,
    OPERAND_SINKS,
    OPERAND_QUERY_POSITIONS,
    OPERAND_KV_START,
    OPERAND_CACHE_BATCH_IDX,
    OPERAND_BLOCK_TABLE,
    OPERAND_PAGE_INDPTR,
    OPERAND_K_SCALE,
    OPERAND_V_SCALE,
    OPERAND_K_ZERO,
    OPERAND_V_ZERO,
    OPERAND_OUT,
    NUM_INPUTS = OPERAND_OUT,
    OPERAND_LSE,
    OPERAND_STATUS,
    OPERAND_WORKSPACE,
    NUM_OPERANDS
} verify_operand;

/* The buffer of one operand: `before` bytes of poison, the operand's own `bytes`, `after` bytes of poison. */
typedef struct verify_placement {
    bool present;
    size_t before, bytes, after;
} verify_placement;

typedef enum verify_contents {
    CONTENTS_PLAIN,  /* normal numbers */
    CONTENTS_HOT,    /* scores in the hundreds and thousands */
    CONTENTS_SPECIAL /* some visible NaN and infinities */
} verify_contents;

/* What lies wherever no row may look: NaN, infinities, or any bits. */
typedef enum verify_poison { POISON_NAN, POISON_INFINITY, POISON_GARBAGE, NUM_POISONS } verify_poison;

/* Pages that a row of the block table lacks although keys need them. */
typedef enum verify_bad_pages {
    BAD_PAGES_NONE,
    BAD_PAGES_ENTRY, /* one entry lies outside [0, num_pages) */
    BAD_PAGES_SHORT, /* CSR: the row ends there */
    BAD_PAGES_CUT,   /* CSR: the whole table ends there, whatever page_indptr says */
    BAD_PAGES_BEFORE /* CSR: the first row starts before the table, and up to there it has none */
} verify_bad_pages;

typedef struct verify_trial {
    uint64_t number;
    clfd_attention attention;
    /* As numbers, where the descriptor may say 0. The strides of scales are those of zeros. */
    clfd_strides q, k, v, out, k_scale, v_scale;
    clfd_score_strides bias, mask;
    uint32_t mask_percent;                      /* of keys that the mask hides */
    bool infinite_bias, masking_bias, no_sinks; /* some entries are -inf; some are finite and hide their keys */
    uint32_t num_cache_rows;
    uint32_t batch, kv_len_bound;
    uint32_t num_sequences; /* of K and V: batch, or 1 with shared_kv */
    /* Per sequence of K and V, as given to the device, and as they count. */
    int32_t kv_lens[TRIAL_MAX_BATCH], kv_start[TRIAL_MAX_BATCH], cache_batch_idx[TRIAL_MAX_BATCH];
    uint32_t lengths[TRIAL_MAX_BATCH];
    int32_t query_positions[TRIAL_MAX_BATCH * TRIAL_MAX_Q_LEN]; /* [batch][q_len] */
    /* Pages: the rows of the block table start at row_starts and end at row_ends. */
    int64_t row_starts[TRIAL_MAX_ROWS], row_ends[TRIAL_MAX_ROWS];
    uint32_t num_table_entries, block_table_stride;
    int32_t page_indptr[TRIAL_MAX_ROWS + 1]; /* as given to the device */
    bool shared_pages;
    verify_bad_pages bad_pages;
    uint32_t bad_row, bad_page; /* which row of the table, and which page of the sequence */
    verify_placement placements[NUM_OPERANDS];
    bool one_buffer; /* V lies in K's buffer */
    verify_contents contents;
    verify_poison poison;
    uint32_t status_before, flags; /* the status word as given, and the bits that the call must set */
    bool repeat;                   /* run twice and compare the bits */
    bool permute;                  /* likewise, with the pages in another order */
    bool alone;                    /* likewise, of one sequence in a batch of its own */
    uint32_t alone_sequence;
    bool inputs;      /* check that no input changed */
    bool f16_weights; /* the plan says that weights are rounded to f16 */
    feature_set features;
    rng_state data; /* the generator of the numbers */
} verify_trial;

/* Draws problem `number`. The workspace's placement gets its size later, from the plan. */
void draw_trial(const draw_space *space, uint64_t number, verify_trial *trial);

/* Host images of the operands, as the device gets them. */
typedef struct verify_images {
    unsigned char *data[NUM_OPERANDS]; /* before + bytes + after; NULL where absent */
    bool one_buffer;                   /* data of V is that of K */
} verify_images;

/* Allocates and fills the images of all operands but the workspace: poison everywhere, then the numbers that some row
 * sees. out and lse are all 0xFF. *images needs images_free whatever happens. */
bool fill_images(verify_trial *trial, verify_images *images, tool_fault *fault);
void images_free(verify_images *images);

/* The address of operand element [0][0][0][0] in its image; NULL where absent. */
void *image_base(const verify_trial *trial, const verify_images *images, verify_operand operand);

/* Bytes of a whole image. */
size_t placement_bytes(const verify_placement *placement);

typedef enum trial_result { TRIAL_PASSED, TRIAL_FAILED, TRIAL_REFUSED } trial_result;

/* Errors of out and of lse, as a part of their tolerances and by themselves (out: relative to the largest visible |V|). */
typedef struct trial_errors {
    double out, lse;
    double of_tolerance; /* the larger of both parts; above 1 is a failure */
} trial_errors;

/* Computes the trial on the device into the images of out, lse and status, checks that nothing outside the operands was
 * written, and judges the result. FAILED and REFUSED come with a sentence in the fault; REFUSED is a tuning override
 * that the problem does not allow. */
trial_result trial_run(tool_session *session, verify_trial *trial, trial_errors *errors, tool_fault *fault);

/* Compares the images of out, lse and status with clfd_reference_attention. False with a sentence that names the first
 * element that differs. */
bool judge_trial(const verify_trial *trial, const verify_images *images, trial_errors *errors, tool_fault *fault);

/* One line that describes the trial, for a failure. */
#define TRIAL_BYTES 1024
const char *trial_print(const verify_trial *trial, char text[TRIAL_BYTES]);

#endif
