/* lanes_blocks.cl - how eight lanes read GGML's blocks together.
 *
 * Blocks of 34 and 18 bytes begin on odd places, so a lane that reads its own eight codes needs several small loads, each
 * of which asks for a cache line per row: an H200 then spends its time on those. Here a segment of 128 dims, 136 or 72
 * bytes, is read as 8-byte words, one after the other by neighbouring lanes; the codes of a lane begin in its own word and
 * end in the next lane's, and the scale of a block lies in the word of one of its lanes.
 *
 * Word w of a segment is at lane w % 8, the last one, which is one more than a multiple of eight, at all of
 * them. A lane's
 * codes begin `skip` bytes into its word; skip is even.
 */
#ifndef CLFD_LANES_BLOCKS_CL
#define CLFD_LANES_BLOCKS_CL

#include "lanes_exchange.cl"

#define SEGMENT_CHUNKS 16

#if BLOCKS_TOGETHER || BLOCKS_TOGETHER_V
typedef struct lanes_segment {
    uint2 words[3];
} lanes_segment;

/* A segment of `num_words` words. */
LANES_INLINE lanes_segment lanes_load_segment(const __global uchar *from, int lane, int num_words)
{
    const __global uint2 *const words = (const __global uint2 *)from;
    lanes_segment segment;
    segment.words[0] = words[lane];
    segment.words[1] = num_words > 9 ? words[lane + 8] : (uint2)(0, 0);
    segment.words[2] = words[num_words - 1]; /* by all, since a branch costs more */
    return segment;
}

LANES_INLINE uint lanes_from_uint(uint value, int lane) { return as_uint(lanes_from(as_float(value), lane)); }

/* condition ? yes : no, of which a compiler may make a choice of addresses, and put both into memory. */
LANES_INLINE uint lanes_choose(bool condition, uint yes, uint no) { return bitselect(no, yes, condition ? ~0u : 0u); }

/* What the next lane holds, where lane 0 comes after the last one with its own next word. */
LANES_INLINE uint lanes_from_next(const lanes_place *at, uint own, uint wrapped)
{
    return lanes_from_uint(lanes_choose(at->lane == 0, wrapped, own), (at->lane + 1) % LANES);
}

LANES_INLINE float lanes_scale_from(uint halves, int lane)
{
    const uint half_bits = lanes_from_uint(halves, lane);
    return half2_to_float2(half_bits).x;
}

/* The halves of a pair of words from its byte 2 or 4 on. */
LANES_INLINE uint2 lanes_skip(uint a, uint b, uint c, bool two)
{
    const uint selector = two ? 0x5432 : 0x7654;
    return (uint2)(ptx_permute(a, b, selector), ptx_permute(b, c, selector));
}

/* q8_0: chunk 8 i + lane of a segment begins 2, 4 (i = 0), 6 or 8 (i = 1) bytes into the lane's word i. */
LANES_INLINE uint2 lanes_q8_0_codes(const lanes_place *at, const lanes_segment *s, int i)
{
    const bool two = at->lane < 4;
    const uint2 own = s->words[i], wrapped = s->words[i + 1];
    const uint next = lanes_from_next(at, own.x, wrapped.x);
    if (i == 0)
        return lanes_skip(own.x, own.y, next, two);
    return lanes_skip(own.y, next, lanes_from_next(at, own.y, wrapped.y), two);
}

LANES_INLINE float lanes_q8_0_scale(const lanes_place *at, const lanes_segment *s, int i)
{
    const uint halves = i == 0 ? s->words[0].x : s->words[1].y;
    return lanes_scale_from(lanes_choose(at->lane < 4, halves, halves >> 16), at->lane & 4);
}

/* q4_0: the eight bytes of a lane, which hold chunks 4 (lane / 2) + lane % 2 and, in their high nibbles, the second next,
 * begin 2, 4, 6 or 8 bytes into its word. */
LANES_INLINE uint2 lanes_q4_0_bytes(const lanes_place *at, const lanes_segment *s)
{
    const uint2 own = s->words[0];
    const uint next_x = lanes_from_next(at, own.x, s->words[2].x), next_y = lanes_from_next(at, own.y, s->words[2].y);
    const bool early = at->lane < 4, two = at->lane % 4 < 2;
    return lanes_skip(lanes_choose(early, own.x, own.y), lanes_choose(early, own.y, next_x),
                      lanes_choose(early, next_x, next_y), two);
}

LANES_INLINE float lanes_q4_0_scale(const lanes_place *at, const lanes_segment *s)
{
    const uint halves = lanes_choose(at->lane < 4, s->words[0].x, s->words[0].y);
    return lanes_scale_from(lanes_choose(at->lane % 4 < 2, halves, halves >> 16), at->lane & 6);
}

/* A segment's two chunks of this lane, ready to be unpacked: of q8_0 their codes, of q4_0 the same bytes. */
typedef struct lanes_codes {
    uint2 codes[2];
    float scale[2];
} lanes_codes;

LANES_INLINE lanes_codes lanes_share_segment(const lanes_place *at, const lanes_segment *s, bool nibbles)
{
    lanes_codes shared;
    if (nibbles) {
        shared.codes[0] = shared.codes[1] = lanes_q4_0_bytes(at, s);
        shared.scale[0] = shared.scale[1] = lanes_q4_0_scale(at, s);
        return shared;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        shared.codes[i] = lanes_q8_0_codes(at, s, i);
        shared.scale[i] = lanes_q8_0_scale(at, s, i);
    }
    return shared;
}

LANES_INLINE float8 lanes_unpack_codes(const lanes_codes *shared, int i, bool nibbles)
{
    return nibbles ? packed_q4_0(shared->codes[i], i == 1) : packed_int8(shared->codes[i]);
}
#endif

#endif
