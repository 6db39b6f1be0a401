/* verify_fill.h - the parts of fill_images, in this order. Everything is poison at first. */
#ifndef TOOLS_VERIFY_FILL_H
#define TOOLS_VERIFY_FILL_H

#include "verify_view.h"

/* Finite biases lie within FILL_BIAS_MOST, but for some that hide a key as people hide them who know no infinity. */
#define FILL_BIAS_SPAN 8.0f /* within this, where the problem is not hot */
#define FILL_BIAS_MOST 1000.0f
#define FILL_BIAS_MASKED (-1e30f)
#define FILL_BIAS_MASKED_F16 (-65504.0f) /* the least f16 */

/* Poison over a whole image, as `type` has it. */
void fill_poison(unsigned char *bytes, size_t count, clfd_type type, verify_poison poison, rng_state *rng);

/* The block table: pages in a shuffled order, or shared, where keys need them; anything where none does. */
bool fill_block_table(verify_trial *trial, verify_images *images, tool_fault *fault);

/* Mask, bias, slopes and sinks. Entries of keys that are hidden otherwise stay poison. */
void fill_scores(verify_trial *trial, verify_images *images);

/* The rows of K and V that some query sees. V stays poison where every bias is -inf. */
void fill_cache(verify_trial *trial, verify_images *images);

/* NaN and infinities where some row sees them. */
void fill_special(verify_trial *trial, verify_images *images);

#endif
