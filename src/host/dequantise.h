/* dequantise.h - the numbers that storage units hold. */
#ifndef CLFD_DEQUANTISE_H
#define CLFD_DEQUANTISE_H

#include <clfd/attention.h>

/* to[d] = the number that element d of a row of dim elements (whole storage units) holds before any clfd_quant: the
 * value of a plain type, of fp8 and of a GGML block, the code of int8 and int4. All of these are exact in a float.
 * `from` is aligned as clfd_type_alignment says. The type is a valid one. */
void clfd_decode_row(clfd_type type, uint32_t dim, const void *from, float *to);

#endif
