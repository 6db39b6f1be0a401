/* matrix.h - what cl/decode_matrix.cl can compute, and its local memory. Pure functions. */
#ifndef CLFD_MATRIX_H
#define CLFD_MATRIX_H

#include "plan/tuning.h"

/* Why a row of decode_matrix cannot serve an attention on a device, or NULL. */
const char *clfd_matrix_refusal(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning);

/* The slots of a warp's ring, as many of `slots` as local memory has room for; 0 where that is less than 2. They change no bit.
 * `balanced`: beside what the balanced schedule keeps there. */
uint32_t clfd_matrix_slots(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                           uint32_t slots, bool balanced);

/* Whether every tile lies within one page: pages are whole tiles, and all splits begin at a multiple of a tile. */
bool clfd_matrix_has_page_tiles(const clfd_attention *attention);

/* Whether weights of P V are rounded to one element of f16: over a shared sequence, where products bound the time. On an
 * H200 the second ones were a fifth of it. The other weights are two elements, as exact as fp32. */
bool clfd_matrix_rounds_weights(const clfd_attention *attention, const clfd_tuning *tuning);

/* Sequences that the balanced schedule's list has room for: SCHEDULE_BATCH of cl/decode_matrix.cl. */
uint32_t clfd_matrix_balanced_batch(const clfd_tuning *tuning);

#endif
