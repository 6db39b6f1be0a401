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

FORMATS_TWO_EIGHTS(q8_0)

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

FORMATS_TWO_EIGHTS(q4_0)

static inline float q4_0_scale(const __global uchar *row, int index)
{
    return vload_half(0, (const __global half *)(row + index / 32 * Q4_0_BYTES));
}

/* ---- Runs: a block at once, its scale included -------------------------------------------------------------------- */

#define GGML_RUN_WORDS 5

/* The 8-byte words that hold a block, as halves, in the order of their loads. */
typedef struct ggml_run {
    uint halves[2 * GGML_RUN_WORDS];
} ggml_run;
typedef ggml_run q8_0_run;
typedef ggml_run q4_0_run;

/* Where the block lies in its words: blocks of a row on an 8-byte boundary begin at bytes 0, 2, 4, 6 of theirs, in turn. 4
 * more where the words are loaded by pairs, and the first is the second of one. */
#define GGML_TURN(phase) ((phase)&3)
#define GGML_ODD(phase) (((phase)&4) != 0)

/* The first of the num_words (3 or 5) words of a block of a row on an 8-byte boundary. */
static inline int ggml_first_word(int block, int num_words) { return block * (num_words - 1) + block / 4; }

/* The words of a block one by one: of three, pairs took longer on an H200 (q4_0: 121 instead of 114 us). */
static inline ggml_run ggml_load_words(const __global uchar *row, int block, int num_words)
{
    const __global uint2 *const words = (const __global uint2 *)row + ggml_first_word(block, num_words);
    ggml_run run;

#pragma unroll
    for (int i = 0; i < num_words; i++) {
        const uint2 word = words[i];
        run.halves[2 * i] = word.x;
        run.halves[2 * i + 1] = word.y;
    }
    return run;
}

/* The words of a block by pairs: where the first word is no pair's first, it is the one that is loaded alone, and otherwise
 * the last. It becomes the last in either case. */
static inline ggml_run ggml_load_pairs(const __global uchar *row, int block, int num_words)
{
    const __global uchar *const from = row + ggml_first_word(block, num_words) * 8;
    const bool odd = ((uint)(ulong)from & 8u) != 0;
    const __global uint4 *const pairs = (const __global uint4 *)(from + (odd ? 8 : 0));
    const uint2 alone = *(const __global uint2 *)(from + (odd ? 0 : (num_words - 1) * 8));
    ggml_run run;

#pragma unroll
    for (int i = 0; i < num_words / 2; i++) {
        const uint4 pair = pairs[i];
        run.halves[4 * i] = pair.x;
        run.halves[4 * i + 1] = pair.y;
        run.halves[4 * i + 2] = pair.z;
        run.halves[4 * i + 3] = pair.w;
    }
    run.halves[2 * num_words - 2] = alone.x;
    run.halves[2 * num_words - 1] = alone.y;
    return run;
}

/* Half i of the codes', of num_halves (8 or 4). They begin at bytes 2, 4, 6 or 8 of the first word, and what of the last
 * word is theirs fits in before that: halfword by halfword they stay where they lie, but for these. */
static inline uint ggml_run_half(const ggml_run *run, int i, int num_halves, int phase)
{
    const int turn = GGML_TURN(phase);
    /* What of the first word's halves is codes. */
    const uint first[2] = {turn == 0 ? 0xffff0000u : 0u, turn < 2 ? ~0u : turn == 2 ? 0xffff0000u : 0u};

    if (i < 2)
        return bitselect(run->halves[num_halves + i], run->halves[i], GGML_ODD(phase) ? ~0u : first[i]);
#if KV_PAIRS
    if (i >= num_halves - 2 && num_halves == 8) /* of the last word, the first one being alone */
        return bitselect(run->halves[i], run->halves[i + 2], GGML_ODD(phase) ? first[i + 2 - num_halves] : 0u);
#endif
    return run->halves[i];
}

/* Which byte of a block's num_bytes codes lies at byte i of those halves. */
static inline int ggml_run_byte(int phase, int i, int num_bytes)
{
    return (i - 2 * (GGML_TURN(phase) + 1) + (GGML_ODD(phase) ? 8 : 0)) & (num_bytes - 1);
}

/* alone: the half after those of the pairs. */
static inline float ggml_run_scale(const ggml_run *run, int alone, int phase)
{
    const uint second = GGML_TURN(phase) >= 2 ? ~0u : 0u;
    uint word = bitselect(run->halves[0], run->halves[1], second);
#if KV_PAIRS
    word = GGML_ODD(phase) ? bitselect(run->halves[alone], run->halves[alone + 1], second) : word;
#endif
    return half2_to_float2(GGML_TURN(phase) & 1 ? word >> 16 : word).x;
}

static inline q8_0_run q8_0_load_run(const __global uchar *row, int index)
{
#if KV_PAIRS
    return ggml_load_pairs(row, index / 32, 5);
#else
    return ggml_load_words(row, index / 32, 5);
#endif
}

static inline int q8_0_run_phase(int block, int odd)
{
#if KV_PAIRS
    return (block & 3) | ((ggml_first_word(block, 5) + odd) & 1) << 2;
#else
    return block & 3;
#endif
}

static inline uint2 q8_0_run_codes(const q8_0_run *run, int i, int phase)
{
    return (uint2)(ggml_run_half(run, 2 * i, 8, phase), ggml_run_half(run, 2 * i + 1, 8, phase));
}

static inline int q8_0_run_element(int phase, int i) { return ggml_run_byte(phase, i, 32); }
static inline float q8_0_run_scale(q8_0_run run, int phase) { return ggml_run_scale(&run, 8, phase); }

static inline float8 q8_0_unpack_run(q8_0_run run, int i, int phase)
{
    return packed_int8(q8_0_run_codes(&run, i, phase));
}

static inline uint2 q8_0_bytes_run(q8_0_run run, int i, int phase) { return q8_0_run_codes(&run, i, phase); }
static inline uint2 q8_0_bytes8(q8_0_raw8 raw) { return ggml_pick(raw); }

static inline q4_0_run q4_0_load_run(const __global uchar *row, int index)
{
    return ggml_load_words(row, index / 32, 3);
}

static inline int q4_0_run_phase(int block, int odd) { return block & 3; }

static inline uint2 q4_0_run_codes(const q4_0_run *run, int i, int phase)
{
    const int half_block = i % 2 * 2;
    return (uint2)(ggml_run_half(run, half_block, 4, phase), ggml_run_half(run, half_block + 1, 4, phase));
}

static inline int q4_0_run_element(int phase, int i) { return (i & 16) + ggml_run_byte(phase, i, 16); }
static inline float q4_0_run_scale(q4_0_run run, int phase) { return ggml_run_scale(&run, 4, phase); }

static inline float8 q4_0_unpack_run(q4_0_run run, int i, int phase)
{
    return packed_q4_0(q4_0_run_codes(&run, i, phase), i >= 2);
}

static inline uint2 q4_0_bytes_run(q4_0_run run, int i, int phase)
{
    return packed_q4_0_bytes(q4_0_run_codes(&run, i, phase), i >= 2);
}

static inline uint2 q4_0_bytes8(q4_0_raw8 raw) { return packed_q4_0_bytes(ggml_pick(raw.bytes), raw.high); }
#endif
