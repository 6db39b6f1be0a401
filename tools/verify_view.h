/* verify_view.h - what the rows of a drawn problem see, and where it lies. The tool's own reading of attention.h, apart
 * from the library's: it decides what gets numbers and what gets poison. */
#ifndef TOOLS_VERIFY_VIEW_H
#define TOOLS_VERIFY_VIEW_H

#include "verify.h"

/* K or V, with what dequantising it takes. */
typedef struct verify_tensor {
    clfd_type type;
    uint32_t dim;
    uint32_t group, num_groups; /* of scales; 0 for types without */
    clfd_type scale_type;
    clfd_strides strides, scale_strides;
    int64_t group_stride;
    unsigned char *base, *scales, *zeros; /* in the images; NULL where absent */
} verify_tensor;

/* operand: OPERAND_K or OPERAND_V, which under v_from_k is the first elements of K. */
verify_tensor view_tensor(const verify_trial *trial, const verify_images *images, verify_operand operand);

/* Int8 and int4: a scale per token and group. */
bool view_is_grouped(clfd_type type);
bool view_is_plain(clfd_type type);
bool view_is_fp8(clfd_type type);

/* Index of the K and V of batch entry b. */
uint32_t view_sequence(const verify_trial *trial, uint32_t b);

/* Position of a query. */
int64_t view_position(const verify_trial *trial, uint32_t b, uint32_t i);

/* Keys first <= t < end: those that length, kv_start, causal and window leave to query i. */
typedef struct view_keys {
    uint32_t first, end; /* first <= end */
} view_keys;
view_keys view_row_keys(const verify_trial *trial, uint32_t b, uint32_t i);

/* Keys of a sequence whose pages are needed: from kv_start, or the start of the first window, to the end. */
view_keys view_needed_keys(const verify_trial *trial, uint32_t sequence);

/* The cache row of a sequence; false where it is out of range. */
bool view_cache_row(const verify_trial *trial, uint32_t sequence, uint32_t *row);

/* Where token t of a sequence lies: cache row or page, and token in it. False where the cache row or the page is
 * invalid. The image of the block table must be filled. */
typedef struct view_slot {
    uint32_t outer, inner;
} view_slot;
bool view_slot_of(const verify_trial *trial, const verify_images *images, uint32_t sequence, uint32_t t,
                  view_slot *slot);

/* Whether the mask shows key t to query i; true without a mask. */
bool view_mask_shows(const verify_trial *trial, const verify_images *images, uint32_t b, uint32_t i, uint32_t t);

/* The bias of a key: its address, and its value; 0 without a bias. */
unsigned char *view_bias_entry(const verify_trial *trial, const verify_images *images, uint32_t b, uint32_t h,
                               uint32_t i, uint32_t t);
float view_bias(const verify_trial *trial, const verify_images *images, uint32_t b, uint32_t h, uint32_t i, uint32_t t);

/* Whether some query sees key t of a sequence, and whether some query head of a KV head sees it with a bias above -inf.
 * Pages do not matter. */
bool view_key_seen(const verify_trial *trial, const verify_images *images, uint32_t sequence, uint32_t t);
bool view_value_seen(const verify_trial *trial, const verify_images *images, uint32_t sequence, uint32_t t,
                     uint32_t kv_head);

/* Addresses of the first storage unit of a row, and of the scale (or zero) of a group of it. */
unsigned char *view_row(const verify_tensor *tensor, view_slot slot, uint32_t head);
unsigned char *view_scale(const verify_tensor *tensor, unsigned char *scales, view_slot slot, uint32_t head,
                          uint32_t group);

/* values[d] as the definition has them, and magnitudes[d] >= |values[d]|: what a kernel sums that takes the zero out of
 * the dot product, |code scale| + |zero scale|. */
void view_load(const verify_tensor *tensor, view_slot slot, uint32_t head, float *values, float *magnitudes);

#endif
