/* matrix.h - what cl/decode_matrix.cl can compute, and its local memory. Pure functions. */
#ifndef CLFD_MATRIX_H
#define CLFD_MATRIX_H

#include "plan/tuning.h"

/* Why a row of decode_matrix cannot serve an attention on a device, or NULL. */
const char *clfd_matrix_refusal(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning);

/* The slots of a warp's ring, as many of `slots` as local memory has room for, but 2 at least. They change no bit.
 * `balanced`: beside what the balanced schedule keeps there. */
uint32_t clfd_matrix_slots(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                           uint32_t slots, bool balanced);

/* Whether every tile lies within one page: pages are whole tiles, and all splits begin at a multiple of a tile. */
bool clfd_matrix_has_page_tiles(const clfd_attention *attention);

#endif
