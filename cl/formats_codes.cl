/* formats_codes.cl - int8, int4 and fp8 as formats of K and V, whose scales and zeros lie elsewhere: see formats.cl. */
#ifndef CLFD_FORMATS_CODES_CL
#define CLFD_FORMATS_CODES_CL

#include "formats_packed.cl"

typedef uint2 int8_raw8;
typedef uint int4_raw8;
typedef uint2 e4m3_raw8;
typedef uint2 e5m2_raw8;

static inline uint2 formats_load_bytes8(const __global uchar *row, int index)
{
#if KV_ALIGNED >= 2
    return *(const __global uint2 *)(row + index);
#elif KV_ALIGNED
    const __global uint *const from = (const __global uint *)(row + index);
    return (uint2)(from[0], from[1]);
#else
    return as_uint2(vload8(0, row + index));
#endif
}

static inline uint2 formats_vload_bytes8(const __global uchar *from) { return as_uint2(vload8(0, from)); }

static inline int8_raw8 int8_load8(const __global uchar *row, int index) { return formats_load_bytes8(row, index); }
static inline float8 int8_unpack8(int8_raw8 raw) { return packed_int8(raw); }
static inline float int8_scale(const __global uchar *row, int index) { return 1.0f; }

static inline float8 int8_floats8(const __global uchar *row, int index)
{
    return packed_int8(formats_vload_bytes8(row + index));
}

FORMATS_TWO_EIGHTS(int8)

static inline int4_raw8 int4_load8(const __global uchar *row, int index)
{
#if KV_ALIGNED
    return *(const __global uint *)(row + index / 2);
#else
    return as_uint(vload4(0, row + index / 2));
#endif
}

static inline float8 int4_unpack8(int4_raw8 raw) { return packed_int4(raw); }
static inline float int4_scale(const __global uchar *row, int index) { return 1.0f; }

static inline float8 int4_floats8(const __global uchar *row, int index)
{
    return packed_int4(as_uint(vload4(0, row + index / 2)));
}

FORMATS_TWO_EIGHTS(int4)

static inline e4m3_raw8 e4m3_load8(const __global uchar *row, int index) { return formats_load_bytes8(row, index); }
static inline float8 e4m3_unpack8(e4m3_raw8 raw) { return packed_e4m3(raw); }
static inline float e4m3_scale(const __global uchar *row, int index) { return 1.0f; }

static inline float8 e4m3_floats8(const __global uchar *row, int index)
{
    return packed_e4m3(formats_vload_bytes8(row + index));
}

FORMATS_TWO_EIGHTS(e4m3)

static inline e5m2_raw8 e5m2_load8(const __global uchar *row, int index) { return formats_load_bytes8(row, index); }
static inline float8 e5m2_unpack8(e5m2_raw8 raw) { return packed_e5m2(raw); }
static inline float e5m2_scale(const __global uchar *row, int index) { return 1.0f; }

static inline float8 e5m2_floats8(const __global uchar *row, int index)
{
    return packed_e5m2(formats_vload_bytes8(row + index));
}

FORMATS_TWO_EIGHTS(e5m2)

static inline uint2 int4_bytes8(int4_raw8 raw) { return packed_int4_bytes(raw); }

/* ---- Runs: 16 bytes at once --------------------------------------------------------------------------------------- */

typedef uint4 int8_run;
typedef uint4 int4_run;
typedef uint4 e4m3_run;
typedef uint4 e5m2_run;

static inline uint4 formats_load_bytes16(const __global uchar *from) { return *(const __global uint4 *)from; }
static inline uint2 formats_half_of(uint4 run, int i) { return i == 0 ? run.lo : run.hi; }

static inline int8_run int8_load_run(const __global uchar *row, int index) { return formats_load_bytes16(row + index); }
static inline float8 int8_unpack_run(int8_run run, int i, int phase) { return packed_int8(formats_half_of(run, i)); }

static inline int4_run int4_load_run(const __global uchar *row, int index)
{
    return formats_load_bytes16(row + index / 2);
}

static inline float8 int4_unpack_run(int4_run run, int i, int phase)
{
    const uint2 half_run = formats_half_of(run, i / 2);
    return packed_int4(i % 2 == 0 ? half_run.x : half_run.y);
}

static inline uint2 int4_bytes_run(int4_run run, int i, int phase)
{
    const uint2 half_run = formats_half_of(run, i / 2);
    return packed_int4_bytes(i % 2 == 0 ? half_run.x : half_run.y);
}

static inline e4m3_run e4m3_load_run(const __global uchar *row, int index) { return formats_load_bytes16(row + index); }
static inline float8 e4m3_unpack_run(e4m3_run run, int i, int phase) { return packed_e4m3(formats_half_of(run, i)); }
static inline e5m2_run e5m2_load_run(const __global uchar *row, int index) { return formats_load_bytes16(row + index); }
static inline float8 e5m2_unpack_run(e5m2_run run, int i, int phase) { return packed_e5m2(formats_half_of(run, i)); }

static inline int int8_run_phase(int x, int odd) { return 0; }
static inline int int4_run_phase(int x, int odd) { return 0; }
static inline int e4m3_run_phase(int x, int odd) { return 0; }
static inline int e5m2_run_phase(int x, int odd) { return 0; }
static inline int int8_run_element(int phase, int i) { return i; }
static inline int int4_run_element(int phase, int i) { return i; }
static inline int e4m3_run_element(int phase, int i) { return i; }
static inline int e5m2_run_element(int phase, int i) { return i; }

#endif
