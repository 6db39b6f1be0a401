#include "support/image.h"
#include "plan/check.h"
#include "support/suite.h"
#include "type.h"
#include <stdlib.h>
#include <string.h>

/* Storage units of a row, with the gaps between them. */
static uint64_t row_units(const tensor_image *image)
{
    return (uint64_t)(clfd_row_units(image->type, image->dim) - 1) * (uint64_t)image->dim_stride + 1;
}

void image_create(tensor_image *image, size_t guard, float fill)
{
    const size_t size = clfd_type_size(image->type);
    uint64_t extent;

    ck_assert(
        clfd_tensor_extent(&image->strides, image->batch, image->tokens, image->heads, row_units(image), &extent));
    image->bytes = image->offset + (size_t)extent * size + guard;
    image->data = malloc(image->bytes);
    ck_assert_ptr_nonnull(image->data);
    memset(image->data, 0xff, image->bytes);
    if (clfd_type_is_plain(image->type))
        for (size_t at = 0; at + size <= image->bytes; at += size)
            clfd_convert_from_float(image->type, &fill, image->data + at, 1);
}

void image_destroy(tensor_image *image) { free(image->data); }

unsigned char *image_at(const tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d)
{
    const int64_t index = (int64_t)batch * image->strides.batch + (int64_t)token * image->strides.token +
                          (int64_t)head * image->strides.head + d / clfd_type_elements(image->type) * image->dim_stride;
    const size_t size = clfd_type_size(image->type), at = image->offset + (size_t)index * size;

    EXPECT(at + size <= image->bytes, "a test reaches past a tensor of %zu bytes", image->bytes);
    return image->data + at;
}

void image_put(tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d, float value)
{
    EXPECT(clfd_type_is_plain(image->type), "a test writes an element of a quantised tensor");
    clfd_convert_from_float(image->type, &value, image_at(image, batch, token, head, d), 1);
}

float image_get(const tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d)
{
    float value;

    EXPECT(clfd_type_is_plain(image->type), "a test reads an element of a quantised tensor");
    clfd_convert_to_float(image->type, image_at(image, batch, token, head, d), &value, 1);
    return value;
}

void image_put_row(tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, float value)
{
    for (uint32_t d = 0; d < image->dim; d++)
        image_put(image, batch, token, head, d, value);
}

void image_copy_row(tensor_image *to, uint32_t to_batch, uint32_t to_token, const tensor_image *from,
                    uint32_t from_batch, uint32_t from_token, uint32_t head)
{
    const uint32_t step = clfd_type_elements(from->type);

    for (uint32_t d = 0; d < from->dim; d += step)
        memcpy(image_at(to, to_batch, to_token, head, d), image_at(from, from_batch, from_token, head, d),
               clfd_type_size(from->type));
}
