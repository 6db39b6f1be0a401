#include "support/image.h"
#include "plan/check.h"
#include "support/suite.h"
#include <stdlib.h>

void image_create(tensor_image *image, size_t guard, float fill)
{
    const size_t size = clfd_type_size(image->type);
    uint64_t extent;

    ck_assert(clfd_tensor_extent(&image->strides, image->batch, image->tokens, image->heads, image->dim, &extent));
    image->bytes = image->offset + (size_t)extent * size + guard;
    ck_assert_uint_eq(image->bytes % size, 0);
    image->data = malloc(image->bytes);
    ck_assert_ptr_nonnull(image->data);
    for (size_t at = 0; at < image->bytes; at += size)
        clfd_convert_from_float(image->type, &fill, image->data + at, 1);
}

void image_destroy(tensor_image *image) { free(image->data); }

unsigned char *image_at(const tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d)
{
    const int64_t index = (int64_t)batch * image->strides.batch + (int64_t)token * image->strides.token +
                          (int64_t)head * image->strides.head + d;
    const size_t size = clfd_type_size(image->type), at = image->offset + (size_t)index * size;

    EXPECT(at + size <= image->bytes, "a test reaches past a tensor of %zu bytes", image->bytes);
    return image->data + at;
}

void image_put(tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d, float value)
{
    clfd_convert_from_float(image->type, &value, image_at(image, batch, token, head, d), 1);
}

float image_get(const tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, uint32_t d)
{
    float value;

    clfd_convert_to_float(image->type, image_at(image, batch, token, head, d), &value, 1);
    return value;
}

void image_put_row(tensor_image *image, uint32_t batch, uint32_t token, uint32_t head, float value)
{
    for (uint32_t d = 0; d < image->dim; d++)
        image_put(image, batch, token, head, d, value);
}
