/* image.h - a tensor in host memory exactly as it lies in its buffer. */
#ifndef TEST_SUPPORT_IMAGE_H
#define TEST_SUPPORT_IMAGE_H

#include <clfd/attention.h>

typedef struct tensor_image {
    clfd_type type;
    clfd_strides strides; /* complete */
    int64_t dim_stride;   /* storage units from unit to unit of a row */
    uint32_t batch, tokens, heads, dim;
    size_t offset, bytes; /* of element [0][0][0][0]; of all, with what is before and behind it */
    unsigned char *data;
} tensor_image;

/* Allocates the image and fills all of it with one value; where the type is quantised with bytes of 0xFF, which are NaN
 * in every type that has it. `guard`: bytes behind the furthest element. */
void image_create(tensor_image *image, size_t guard, float fill);
void image_destroy(tensor_image *image); /* a zeroed one is allowed */

/* Where an element lies in data. Fails the running test where it is past the end. */
unsigned char *image_at(const tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d);

/* One element of a plain type. */
void image_put(tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d, float value);
float image_get(const tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d);

/* All dims of a row. */
void image_put_row(tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, float value);

/* Copies a row between images of one type and dim. */
void image_copy_row(tensor_image *to, uint32_t to_batch, uint32_t to_token, const tensor_image *from,
                    uint32_t from_batch, uint32_t from_token, uint32_t head);

#endif
