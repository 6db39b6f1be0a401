/* formats_ggml.cl - GGML's q8_0 and q4_0 as formats of K and V: see formats.cl.
 *
 * Blocks of 34 and 18 bytes put codes on 2-byte boundaries. Where a compiler takes what lies there for halfwords, PTX
 * loads words: the word below the codes (where they start in its middle it holds the scale or codes too, never what is
 * before the row), the word after it, and the last halfword of the codes, which spares the word that would reach past
 * them. A permutation picks the eight bytes.
 */
#ifndef CLFD_FORMATS_GGML_CL
#define CLFD_FORMATS_GGML_CL

#include "formats_packed.cl"

#define Q8_0_BYTES 34
#define Q4_0_BYTES 18

#define FORMATS_GGML_WORDS (CLFD_PTX && KV_ALIGNED)

#if FORMATS_GGML_WORDS
typedef struct ggml_bytes8 {
    uint first, second, last;
    uint selector;
} ggml_bytes8;

/* offset: of the bytes, from a row on a 4-byte boundary; even. */
static inline ggml_bytes8 ggml_load_bytes8(const __global uchar *row, int offset)
{
    const __global uint *const words = (const __global uint *)(row + (offset & ~3));
    ggml_bytes8 bytes;
    bytes.first = words[0];
    bytes.second = words[1];
    bytes.last = *(const __global ushort *)(row + offset + 6);
    bytes.selector = offset & 2 ? 0x5432 : 0x3210;
    return bytes;
}

static inline uint2 ggml_pick(ggml_bytes8 bytes)
{
    uint2 picked;
    picked.x = ptx_permute(bytes.first, bytes.second, bytes.selector);
    picked.y = ptx_permute(bytes.second, bytes.last, bytes.selector);
    return picked;
}

#else
typedef uint2 ggml_bytes8;

static inline ggml_bytes8 ggml_load_bytes8(const __global uchar *row, int offset)
{
    return as_uint2(vload4(0, (const __global ushort *)(row + offset)));
}

static inline uint2 ggml_pick(ggml_bytes8 bytes) { return bytes; }
#endif

static inline int q8_0_offset(int index) { return index / 32 * Q8_0_BYTES + 2 + index % 32; }

typedef ggml_bytes8 q8_0_raw8;

static inline q8_0_raw8 q8_0_load8(const __global uchar *row, int index)
{
    return ggml_load_bytes8(row, q8_0_offset(index));
}

static inline float8 q8_0_unpack8(q8_0_raw8 raw) { return packed_int8(ggml_pick(raw)); }

static inline float8 q8_0_floats8(const __global uchar *row, int index)
{
    return packed_int8(as_uint2(vload8(0, row + q8_0_offset(index))));
}

static inline float q8_0_scale(const __global uchar *row, int index)
{
    return vload_half(0, (const __global half *)(row + index / 32 * Q8_0_BYTES));
}

/* The bytes that hold the eight elements, and in which of their nibbles. */
typedef struct q4_0_raw8 {
    ggml_bytes8 bytes;
    bool high;
} q4_0_raw8;

static inline int q4_0_offset(int index) { return index / 32 * Q4_0_BYTES + 2 + index % 16; }
static inline bool q4_0_high(int index) { return (index & 16) != 0; }

static inline q4_0_raw8 q4_0_load8(const __global uchar *row, int index)
{
    q4_0_raw8 raw;
    raw.bytes = ggml_load_bytes8(row, q4_0_offset(index));
    raw.high = q4_0_high(index);
    return raw;
}

static inline float8 q4_0_unpack8(q4_0_raw8 raw) { return packed_q4_0(ggml_pick(raw.bytes), raw.high); }

static inline float8 q4_0_floats8(const __global uchar *row, int index)
{
    return packed_q4_0(as_uint2(vload8(0, row + q4_0_offset(index))), q4_0_high(index));
}

static inline float q4_0_scale(const __global uchar *row, int index)
{
    return vload_half(0, (const __global half *)(row + index / 32 * Q4_0_BYTES));
}

/* ---- Runs: a block at once, its scale included -------------------------------------------------------------------- */

#define GGML_RUN_WORDS 5

/* The 8-byte words that hold a block, as halves. Blocks begin at bytes 0, 2, 4, 6 of theirs, in turn. */
typedef struct ggml_run {
    uint halves[2 * GGML_RUN_WORDS];
    uint turn;
} ggml_run;
typedef ggml_run q8_0_run;
typedef ggml_run q4_0_run;

/* The first of the num_words (3 or 5) words of a block of a row on an 8-byte boundary. */
static inline const __global uchar *ggml_first_word(const __global uchar *row, int block, int num_words)
{
    return row + (block * (num_words - 1) + block / 4) * 8;
}

/* The words of a block one by one: of three, what pairs would save they lose to putting words in order. */
static inline ggml_run ggml_load_words(const __global uchar *row, int block, int num_words)
{
    const __global uint2 *const words = (const __global uint2 *)ggml_first_word(row, block, num_words);
    ggml_run run;

    run.turn = (uint)block & 3u;
#pragma unroll
    for (int i = 0; i < num_words; i++) {
        const uint2 word = words[i];
        run.halves[2 * i] = word.x;
        run.halves[2 * i + 1] = word.y;
    }
    return run;
}

/* Word i of the codes' num_words (8 or 4), which begin at bytes 2, 4, 6 and 8: halfword by halfword the codes stay where they
 * lie, those past the last word in the place of what lies before the first one. */
static inline uint ggml_run_word(const ggml_run *run, int i, int num_words)
{
    const uint first_codes = run->turn == 0 ? 0xffff0000u : 0, second_codes = run->turn < 2    ? ~0u
                                                                              : run->turn == 2 ? 0xffff0000u
                                                                                               : 0;

    if (i == 0)
        return bitselect(run->halves[num_words], run->halves[0], first_codes);
    if (i == 1)
        return bitselect(run->halves[num_words + 1], run->halves[1], second_codes);
    return run->halves[i];
}

/* Which byte of a block's num_bytes codes lies at byte i of those words. */
static inline int ggml_run_byte(int block, int i, int num_bytes)
{
    return (i - 2 * ((block & 3) + 1)) & (num_bytes - 1);
}

static inline float ggml_run_scale(const ggml_run *run)
{
    const uint word = bitselect(run->halves[0], run->halves[1], run->turn & 2 ? ~0u : 0u);
    return half2_to_float2(run->turn & 1 ? word >> 16 : word).x;
}

static inline q8_0_run q8_0_load_run(const __global uchar *row, int index)
{
    return ggml_load_words(row, index / 32, 5);
}
static inline uint2 q8_0_run_codes(const q8_0_run *run, int i)
{
    return (uint2)(ggml_run_word(run, 2 * i, 8), ggml_run_word(run, 2 * i + 1, 8));
}
static inline float8 q8_0_unpack_run(q8_0_run run, int i) { return packed_int8(q8_0_run_codes(&run, i)); }
static inline int q8_0_run_element(int block, int i) { return ggml_run_byte(block, i, 32); }
static inline float q8_0_run_scale(q8_0_run run) { return ggml_run_scale(&run); }
static inline uint2 q8_0_bytes_run(q8_0_run run, int i) { return q8_0_run_codes(&run, i); }
static inline uint2 q8_0_bytes8(q8_0_raw8 raw) { return ggml_pick(raw); }

static inline q4_0_run q4_0_load_run(const __global uchar *row, int index)
{
    return ggml_load_words(row, index / 32, 3);
}
static inline uint2 q4_0_run_codes(const q4_0_run *run, int i)
{
    return (uint2)(ggml_run_word(run, i % 2 * 2, 4), ggml_run_word(run, i % 2 * 2 + 1, 4));
}
static inline float8 q4_0_unpack_run(q4_0_run run, int i) { return packed_q4_0(q4_0_run_codes(&run, i), i >= 2); }
static inline int q4_0_run_element(int block, int i) { return (i & 16) + ggml_run_byte(block, i, 16); }
static inline float q4_0_run_scale(q4_0_run run) { return ggml_run_scale(&run); }
static inline uint2 q4_0_bytes_run(q4_0_run run, int i) { return packed_q4_0_bytes(q4_0_run_codes(&run, i), i >= 2); }
static inline uint2 q4_0_bytes8(q4_0_raw8 raw) { return packed_q4_0_bytes(ggml_pick(raw.bytes), raw.high); }
#endif
