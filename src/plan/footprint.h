/* footprint.h - which bytes a strided tensor covers, and whether two tensors of one buffer keep out of each other's way.
 * Pure functions. */
#ifndef CLFD_FOOTPRINT_H
#define CLFD_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#define CLFD_FOOTPRINT_AXES 4

/* Runs of `run` bytes, repeated along each axis, the greatest stride first. All numbers in bytes. */
typedef struct clfd_footprint {
    uint64_t stride[CLFD_FOOTPRINT_AXES], count[CLFD_FOOTPRINT_AXES];
    int num_axes;
    uint64_t run;
} clfd_footprint;

/* Starts a footprint of one run, and adds an axis of `count` steps, at least 1. The furthest byte must fit in 63 bits. */
clfd_footprint clfd_footprint_run(uint64_t bytes);
void clfd_footprint_repeat(clfd_footprint *footprint, uint64_t count, uint64_t stride);

/* One past the furthest byte. */
uint64_t clfd_footprint_bytes(const clfd_footprint *footprint);

/* Whether no byte is covered twice: along each axis a step is at least what the axes within it cover. (A tensor that
 * weaves its own axes is taken to overlap.) */
bool clfd_footprint_is_nested(const clfd_footprint *footprint);

/* Whether a and b have no byte in common where b begins `distance` bytes after a. A "no" may be wrong for tensors that
 * interleave with unlike strides; a "yes" never is. */
bool clfd_footprints_apart(const clfd_footprint *a, const clfd_footprint *b, int64_t distance);

#endif
