#include "plan/footprint.h"

/* Two nested tensors of equal stride meet at no more than this many relative places. */
#define MAX_MEETINGS 2

clfd_footprint clfd_footprint_run(uint64_t bytes) { return (clfd_footprint){.run = bytes}; }

void clfd_footprint_repeat(clfd_footprint *footprint, uint64_t count, uint64_t stride)
{
    int at = footprint->num_axes;

    if (count == 1)
        return;
    for (; at > 0 && footprint->stride[at - 1] < stride; at--) {
        footprint->stride[at] = footprint->stride[at - 1];
        footprint->count[at] = footprint->count[at - 1];
    }
    footprint->stride[at] = stride;
    footprint->count[at] = count;
    footprint->num_axes++;
}

/* Bytes from the first to the last of one step of the axes before `axis`. */
static int64_t reach(const clfd_footprint *footprint, int axis)
{
    uint64_t bytes = footprint->run;

    for (int i = axis; i < footprint->num_axes; i++)
        bytes += (footprint->count[i] - 1) * footprint->stride[i];
    return (int64_t)bytes;
}

uint64_t clfd_footprint_bytes(const clfd_footprint *footprint) { return (uint64_t)reach(footprint, 0); }

bool clfd_footprint_is_nested(const clfd_footprint *footprint)
{
    for (int i = 0; i < footprint->num_axes; i++)
        if (footprint->stride[i] < (uint64_t)reach(footprint, i + 1))
            return false;
    return true;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

/* The same question for one step of a's axes before a_axis and one of b's before b_axis. The greatest stride is taken
 * apart: of both tensors where it is equal, else of the one that has it; what is left is asked at every relative place
 * where the parts meet. */
static bool apart(const clfd_footprint *a, int a_axis, const clfd_footprint *b, int b_axis, int64_t distance)
{
    if (distance >= reach(a, a_axis) || -distance >= reach(b, b_axis))
        return true;
    const int64_t a_stride = a_axis < a->num_axes ? (int64_t)a->stride[a_axis] : 0;
    const int64_t b_stride = b_axis < b->num_axes ? (int64_t)b->stride[b_axis] : 0;
    const int64_t stride = greatest(a_stride, b_stride);
    if (stride == 0)
        return false;
    const bool split_a = a_stride == stride, split_b = b_stride == stride;
    const int a_next = a_axis + split_a, b_next = b_axis + split_b;
    /* A step of b less a step of a is `step` strides; they meet where -reach(b) < distance + step * stride < reach(a). */
    const int64_t first =
        greatest(split_a ? 1 - (int64_t)a->count[a_axis] : 0, floor_div(-reach(b, b_next) - distance, stride) + 1);
    const int64_t last =
        least(split_b ? (int64_t)b->count[b_axis] - 1 : 0, -floor_div(distance - reach(a, a_next), stride) - 1);
    if (last - first >= MAX_MEETINGS)
        return false;
    for (int64_t step = first; step <= last; step++)
        if (!apart(a, a_next, b, b_next, distance + step * stride))
            return false;
    return true;
}

bool clfd_footprints_apart(const clfd_footprint *a, const clfd_footprint *b, int64_t distance)
{
    return apart(a, 0, b, 0, distance);
}
