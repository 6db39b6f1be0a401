/* ggml.h - the two GGML blocks of 32 elements as they lie in memory. */
#ifndef CLFD_GGML_H
#define CLFD_GGML_H

#include <stdint.h>

#define CLFD_GGML_BLOCK 32

typedef struct clfd_block_q8_0 {
    uint16_t scale; /* f16 */
    int8_t codes[CLFD_GGML_BLOCK];
} clfd_block_q8_0;

typedef struct clfd_block_q4_0 {
    uint16_t scale;                       /* f16 */
    uint8_t nibbles[CLFD_GGML_BLOCK / 2]; /* byte i: elements i (low) and i + 16 (high) */
} clfd_block_q4_0;

_Static_assert(sizeof(clfd_block_q8_0) == 34 && sizeof(clfd_block_q4_0) == 18, "blocks have no padding");

#endif
