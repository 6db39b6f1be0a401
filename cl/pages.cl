/* pages.cl - which page of a paged cache holds a token. The one home of page arithmetic, for reading and for writing.
 *
 * Tunables, given by the host:
 *   KV_PAGED  0: not paged, every cache row is one region; 1: page_size is a power of two; 2: any page size
 *   KV_CSR    1: the pages of row c are block_table[page_indptr[c] .. page_indptr[c + 1]); 0: block_table is a matrix
 */
#ifndef CLFD_PAGES_CL
#define CLFD_PAGES_CL

#include "args.h"

#ifndef KV_PAGED
#define KV_PAGED 0
#endif
#ifndef KV_CSR
#define KV_CSR 0
#endif

/* The page of a token (at least 0) of a cache row (in range), and the token's place within it; -1 where the row has no
 * such page or its id is none of the cache's. Nothing outside block_table and page_indptr is read, whatever they hold:
 * a CSR row is cut to num_indices, a row of a matrix covers every token of the plan. A cache without pages is one with a
 * page per row. Both pointers are at their first element; they are not used where there are none. */
static inline int page_find(const __global int *block_table, const __global int *page_indptr, int row, int token,
                            const page_args *args, int *within)
{
#if KV_PAGED == 0
    *within = token;
    return row;
#else
#if KV_PAGED == 1
    const int number = token >> args->page_shift;
    *within = token & (args->page_size - 1);
#else
    const int number = token / args->page_size;
    *within = token - number * args->page_size;
#endif
#if KV_CSR
    const long index = (long)page_indptr[row] + number;
    if (index < 0 || index >= min(page_indptr[row + 1], args->num_indices))
        return -1;
#else
    const long index = row * args->table_stride + number;
#endif
    const int page = block_table[index];
    return page >= 0 && page < args->num_pages ? page : -1;
#endif
}

#endif
