/* formats.cl - how K and V lie in memory and become floats: eight consecutive elements of a row at a time, for every
 * clfd_type. Rows are addresses of bytes; an index is a multiple of 8 elements. Each format NAME has
 *
 *   NAME_raw8                eight elements as they lie in memory, so that a load can be issued long before its use
 *   NAME_load8(row, index)   loads them
 *   NAME_unpack8(raw)        their codes as floats, exactly; times the format's unit (below), zero and scale apart, their
 *                            values
 *   NAME_floats8(row, index) both, where they need not lie apart: for CPUs, where it may be one instruction
 *   NAME_floats16(row, index) the same of sixteen; an index is a multiple of 16
 *   NAME_load_run, NAME_unpack_run(run, i, phase), NAME_run   for K_RUN (V_RUN) times eight elements at once, where that is
 *                            more than one; i counts the eights
 *   NAME_run_phase(x, odd)   of the row's run x, where odd is that of the row (KV_PAIRS)
 *   NAME_run_element(phase, i)   which element of its run is the i-th that NAME_unpack_run gives: those of GGML formats go
 *                            round
 *   NAME_run_scale(run, phase)   of a run of a GGML format the scale
 *   NAME_bytes8(raw), NAME_bytes_run(run, i, phase)   where K_BYTES_TIMES is not 0: the codes times that as signed bytes,
 *                            in the order of the bytes: elements K_BYTES_ELEMENT(0) to K_BYTES_ELEMENT(7) of what unpack8 or
 *                            unpack_run gives
 *   NAME_scale(row, index)   of GGML formats the scale of the element's block; 1 for others
 *
 * and K_FORMAT(load8), V_FORMAT(load8) and so on name those of K and of V.
 *
 * Tunables, all given by the host:
 *   K_TYPE, V_TYPE  values of clfd_type
 *   KV_ALIGNED      1: every row starts on a boundary of 16 bytes (plain types) or 4 bytes (all others); 2: and rows of
 *                   int8 and of fp8 on one of 8 bytes; 3: rows of int8, int4 and fp8 on one of 16 bytes, of GGML's
 *                   formats on one of 8. 0: storage units alone are aligned
 *   KV_PAIRS        1: rows of q8_0 lie on 8-byte boundaries, those of one head of K and of V all alike on 16-byte ones:
 *                   `odd` is 1 where they begin between two of these. 0: odd is not looked at
 *   CLFD_PTX        1: NVIDIA inline PTX may be used
 *   CLFD_PTX_FP8    1: that of fp8 too (sm_89 and later)
 *
 * Nothing outside the row's own bytes is read.
 */
#ifndef CLFD_FORMATS_CL
#define CLFD_FORMATS_CL

#include "formats_codes.cl"
#include "formats_ggml.cl"
#include "formats_plain.cl"
#include "types.cl"

#ifndef K_TYPE
#define K_TYPE TYPE_F16
#endif
#ifndef V_TYPE
#define V_TYPE K_TYPE
#endif

/* Tables by clfd_type: the names, elements and bytes of a storage unit, and what codes are to be multiplied by. */
#define FORMAT_1(name) f32_##name
#define FORMAT_2(name) f16_##name
#define FORMAT_3(name) bf16_##name
#define FORMAT_4(name) int8_##name
#define FORMAT_5(name) int4_##name
#define FORMAT_6(name) e4m3_##name
#define FORMAT_7(name) e5m2_##name
#define FORMAT_8(name) q8_0_##name
#define FORMAT_9(name) q4_0_##name

#define FORMAT_ELEMENTS_1 1
#define FORMAT_ELEMENTS_2 1
#define FORMAT_ELEMENTS_3 1
#define FORMAT_ELEMENTS_4 1
#define FORMAT_ELEMENTS_5 2
#define FORMAT_ELEMENTS_6 1
#define FORMAT_ELEMENTS_7 1
#define FORMAT_ELEMENTS_8 32
#define FORMAT_ELEMENTS_9 32

#define FORMAT_BYTES_1 4
#define FORMAT_BYTES_2 2
#define FORMAT_BYTES_3 2
#define FORMAT_BYTES_4 1
#define FORMAT_BYTES_5 1
#define FORMAT_BYTES_6 1
#define FORMAT_BYTES_7 1
#define FORMAT_BYTES_8 34
#define FORMAT_BYTES_9 18

#define FORMAT_UNIT_1 1.0f
#define FORMAT_UNIT_2 1.0f
#define FORMAT_UNIT_3 1.0f
#define FORMAT_UNIT_4 1.0f
#define FORMAT_UNIT_5 1.0f
#if CLFD_PTX && CLFD_PTX_FP8
#define FORMAT_UNIT_6 1.0f
#else
#define FORMAT_UNIT_6 256.0f
#endif
#define FORMAT_UNIT_7 1.0f
#define FORMAT_UNIT_8 1.0f
#define FORMAT_UNIT_9 1.0f

/* Eights of a run. */
#define FORMAT_RUN_1 1
#define FORMAT_RUN_2 1
#define FORMAT_RUN_3 1
#define FORMAT_RUN_4 2
#define FORMAT_RUN_5 4
#define FORMAT_RUN_6 2
#define FORMAT_RUN_7 2
#define FORMAT_RUN_8 4
#define FORMAT_RUN_9 4

/* Codes as signed bytes. int8 could have them as they are, but an H200 was slower with them. */
#define FORMAT_BYTES_TIMES_1 0
#define FORMAT_BYTES_TIMES_2 0
#define FORMAT_BYTES_TIMES_3 0
#define FORMAT_BYTES_TIMES_4 0
#define FORMAT_BYTES_TIMES_5 16
#define FORMAT_BYTES_TIMES_6 0
#define FORMAT_BYTES_TIMES_7 0
#define FORMAT_BYTES_TIMES_8 1
#define FORMAT_BYTES_TIMES_9 16

#define FORMAT_PASTE(table, type) table##type
#define FORMAT_OF(table, type) FORMAT_PASTE(table, type)

#define K_FORMAT(name) FORMAT_OF(FORMAT_, K_TYPE)(name)
#define V_FORMAT(name) FORMAT_OF(FORMAT_, V_TYPE)(name)
#define K_ELEMENTS FORMAT_OF(FORMAT_ELEMENTS_, K_TYPE) /* of a storage unit */
#define V_ELEMENTS FORMAT_OF(FORMAT_ELEMENTS_, V_TYPE)
#define K_UNIT_BYTES FORMAT_OF(FORMAT_BYTES_, K_TYPE) /* of a storage unit */
#define V_UNIT_BYTES FORMAT_OF(FORMAT_BYTES_, V_TYPE)
#define K_UNIT FORMAT_OF(FORMAT_UNIT_, K_TYPE) /* value of the code 1 */
#define V_UNIT FORMAT_OF(FORMAT_UNIT_, V_TYPE)
#define K_ROW_BYTES(dim) ((dim) / K_ELEMENTS * K_UNIT_BYTES)
#define V_ROW_BYTES(dim) ((dim) / V_ELEMENTS * V_UNIT_BYTES)

#define K_RUN FORMAT_OF(FORMAT_RUN_, K_TYPE)
#define V_RUN FORMAT_OF(FORMAT_RUN_, V_TYPE)

#define K_BYTES_TIMES FORMAT_OF(FORMAT_BYTES_TIMES_, K_TYPE)
#define K_BYTES_ELEMENT(i) (K_TYPE == TYPE_INT4 ? (i) % 4 * 2 + (i) / 4 : (i))

#endif
