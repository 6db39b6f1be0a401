#include "run/cache_args.h"

cl_long clfd_offset(const clfd_buffer *buffer, size_t element_bytes)
{
    return element_bytes > 0 ? (cl_long)(buffer->offset / element_bytes) : 0;
}

kv_args clfd_make_kv_args(const clfd_buffer *buffer, const clfd_strides *strides, clfd_type type)
{
    const int64_t bytes = (int64_t)clfd_type_size(type);

    return (kv_args){(cl_long)buffer->offset, strides->batch * bytes, strides->token * bytes, strides->head * bytes};
}

scale_args clfd_make_scale_args(const clfd_buffer *scale, const clfd_buffer *zero, const clfd_quant *quant)
{
    const size_t bytes = clfd_type_size(quant->scale_type);

    return (scale_args){clfd_offset(scale, bytes), clfd_offset(zero, bytes), quant->strides.batch,
                        quant->strides.token,      quant->strides.head,      quant->group_stride};
}

page_args clfd_make_page_args(const clfd_attention *a, uint32_t num_page_indices)
{
    page_args args = {.table_stride = a->block_table_stride,
                      .page_size = (cl_int)a->page_size,
                      .num_pages = (cl_int)a->num_pages,
                      .num_indices = num_page_indices > INT32_MAX ? INT32_MAX : (cl_int)num_page_indices};

    while (a->page_size >> (args.page_shift + 1) != 0)
        args.page_shift++;
    return args;
}
