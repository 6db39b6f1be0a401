/* verify.h - one random problem: drawn (draw.c), filled with numbers (fill.c), computed (trial.c), judged (judge.c). */
#ifndef TOOLS_VERIFY_H
#define TOOLS_VERIFY_H

#include "rng.h"
#include "session.h"
#include "verify_features.h"

#define TRIAL_MAX_BATCH 32

/* Where problems come from: problem `number` depends on these fields and its number, and on nothing else. */
typedef struct draw_space {
    uint64_t seed;
    uint32_t max_programs; /* distinct specialisations, at least 1 */
    const char *tuning;    /* clfd_attention.tuning of every problem; may be NULL */
} draw_space;

typedef enum verify_operand {
    OPERAND_Q,
    OPERAND_K,
    OPERAND_V,
    OPERAND_KV_LENS,
    OPERAND_OUT,
    OPERAND_LSE,
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

typedef struct verify_trial {
    uint64_t number;
    clfd_attention attention;
    clfd_strides q, k, v, out; /* as numbers, where the descriptor may say 0 */
    uint32_t batch, kv_len_bound;
    int32_t kv_lens[TRIAL_MAX_BATCH];  /* as given to the device */
    uint32_t lengths[TRIAL_MAX_BATCH]; /* keys that count, after clamping */
    verify_placement placements[NUM_OPERANDS];
    verify_contents contents;
    verify_poison poison;
    bool repeat; /* run twice and compare the bits */
    uint64_t features;
    rng_state data; /* the generator of the numbers */
} verify_trial;

/* Draws strides, layout and placements of the operands (draw_layout.c): the part of draw_trial that decides where
 * everything lies. aligned: every row starts on 16 bytes, and the descriptor promises so. */
void draw_layout(rng_state *rng, bool aligned, verify_trial *trial);

/* Draws problem `number`. The workspace's placement gets its size later, from the plan. */
void draw_trial(const draw_space *space, uint64_t number, verify_trial *trial);

/* Host images of the operands, as the device gets them. */
typedef struct verify_images {
    unsigned char *data[NUM_OPERANDS]; /* before + bytes + after; NULL where absent */
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

/* Computes the trial on the device into the images of out and lse, checks that nothing outside the operands was written,
 * and judges the result. FAILED and REFUSED come with a sentence in the fault; REFUSED is a tuning override that the
 * problem does not allow. */
trial_result trial_run(tool_session *session, verify_trial *trial, trial_errors *errors, tool_fault *fault);

/* Compares the images of out and lse with clfd_reference_attention. False with a sentence that names the first element
 * that differs. */
bool judge_trial(const verify_trial *trial, const verify_images *images, trial_errors *errors, tool_fault *fault);

/* One line that describes the trial, for a failure. */
#define TRIAL_BYTES 512
const char *trial_print(const verify_trial *trial, char text[TRIAL_BYTES]);

#endif
