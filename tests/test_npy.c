#include "npy.h"
#include "support/folder.h"
#include "support/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64], path[128];
static tool_fault fault;
static npy_array array;

static void set_up(void)
{
    test_folder_create(folder);
    snprintf(path, sizeof path, "%s/array.npy", folder);
    memset(&fault, 0, sizeof fault);
    memset(&array, 0, sizeof array);
}

static void tear_down(void)
{
    npy_free(&array);
    test_folder_remove(folder);
}

static void write_bytes(const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

/* A file of that version with the header text as it stands and `data_bytes` bytes 0, 1, 2, ... behind it. */
static void write_file(int version, const char *header, size_t data_bytes)
{
    unsigned char file[4096] = "\x93NUMPY";
    const size_t length = strlen(header), length_bytes = version == 1 ? 2 : 4;

    file[6] = (unsigned char)version;
    for (size_t i = 0; i < length_bytes; i++)
        file[8 + i] = (unsigned char)(length >> 8 * i & 255);
    memcpy(file + 8 + length_bytes, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        file[8 + length_bytes + length + i] = (unsigned char)i;
    write_bytes(file, 8 + length_bytes + length + data_bytes);
}

/* Reading must fail with a sentence that holds `fragment`, and leave the array alone. */
static void expect_refusal(const char *fragment)
{
    npy_array untouched;

    memset(&untouched, 0x5a, sizeof untouched);
    array = untouched;
    const bool read = npy_read(path, &array, &fault);
    const bool same = memcmp(&array, &untouched, sizeof array) == 0;
    memset(&array, 0, sizeof array);
    ck_assert_msg(!read, "accepted, but should say: %s", fragment);
    ck_assert_msg(same, "the array was written");
    ck_assert_int_eq(fault.exit_code, EXIT_CODE_FAILED);
    ck_assert_msg(strstr(fault.sentence, fragment) != NULL, "'%s' does not hold '%s'", fault.sentence, fragment);
    ck_assert_msg(strstr(fault.sentence, path) != NULL, "'%s' does not name the file", fault.sentence);
}

START_TEST(every_version_is_read)
{
    for (int version = 1; version <= 3; version++) {
        write_file(version, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }  \n", 12);
        ck_assert_msg(npy_read(path, &array, &fault), "%s", fault.sentence);
        ck_assert_int_eq(array.kind, 'i');
        ck_assert_uint_eq(array.item_bytes, 2);
        ck_assert_uint_eq(array.num_dims, 2);
        ck_assert_uint_eq(array.shape[0], 2);
        ck_assert_uint_eq(array.shape[1], 3);
        ck_assert_uint_eq(array.count, 6);
        ck_assert_mem_eq(array.data, "\0\1\2\3\4\5\6\7\10\11\12\13", 12);
        npy_free(&array);
    }
}
END_TEST

START_TEST(every_element_type_is_read)
{
    static const struct {
        const char *descr, *name;
        size_t bytes;
    } types[] = {{"<f2", "f2", 2}, {"<f4", "f4", 4}, {"<f8", "f8", 8}, {"|i1", "i1", 1},
                 {"<i2", "i2", 2}, {"<i4", "i4", 4}, {"<i8", "i8", 8}, {"|u1", "u1", 1},
                 {"<u2", "u2", 2}, {"<u4", "u4", 4}, {"<u8", "u8", 8}, {"|b1", "b1", 1}};
    char header[128];

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (5,), }", types[i].descr);
        write_file(1, header, 5 * types[i].bytes);
        ck_assert_msg(npy_read(path, &array, &fault), "%s", fault.sentence);
        ck_assert_str_eq(npy_type(&array).text, types[i].name);
        npy_free(&array);
    }
}
END_TEST

START_TEST(keys_in_any_order_and_either_quotes_are_read)
{
    write_file(1, "{\"shape\":(1,), \"fortran_order\":False,'descr':\"<f4\"}", 4);
    ck_assert_msg(npy_read(path, &array, &fault), "%s", fault.sentence);
    ck_assert_uint_eq(array.count, 1);
}
END_TEST

START_TEST(scalars_and_empty_arrays_are_read)
{
    write_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4);
    ck_assert_msg(npy_read(path, &array, &fault), "%s", fault.sentence);
    ck_assert_uint_eq(array.num_dims, 0);
    ck_assert_uint_eq(array.count, 1);
    npy_free(&array);
    write_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0, 9223372036854775807), }", 0);
    ck_assert_msg(npy_read(path, &array, &fault), "%s", fault.sentence);
    ck_assert_uint_eq(array.count, 0);
}
END_TEST

START_TEST(malformed_headers_are_refused)
{
    static const struct {
        const char *header, *fragment;
    } cases[] = {
        {"", "it must be a dictionary"},
        {"garbage", "it must be a dictionary"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ", "a quoted string must come here"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "nothing may follow"},
        {"{'descr': '<f4', 'fortran_order': False}", "without 'shape'"},
        {"{'fortran_order': False, 'shape': (1,)}", "without 'descr'"},
        {"{'descr': '<f4', 'shape': (1,)}", "without 'fortran_order'"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "a key is there twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", "the keys must be"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}", "a colon must come here"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", "a comma or a closing brace"},
        {"{'descr': '<f4\\'', 'fortran_order': False, 'shape': (1,)}", "the string does not end"},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", "must be f2 f4 f8"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "must be f2 f4 f8"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "must be f2 f4 f8"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (1,)}", "must be f2 f4 f8"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "big-endian"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "Fortran order"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", "the shape must be a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "a tuple of one dimension needs a comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, -1)}", "a whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2.5)}", "a comma or a closing parenthesis"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "a whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "63 bits"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "do not fit in memory"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}", "do not fit in memory"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(1, cases[i].header, 4);
        expect_refusal(cases[i].fragment);
    }
}
END_TEST

START_TEST(truncated_and_longer_files_are_refused)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";

    write_file(1, header, 15);
    expect_refusal("is truncated: it holds 15 of the 16 bytes");
    write_file(1, header, 0);
    expect_refusal("is truncated: it holds 0 of the 16 bytes");
    write_file(1, header, 17);
    expect_refusal("has bytes after the 16");
}
END_TEST

START_TEST(shape_beyond_the_file_does_not_allocate_it)
{
    /* 4 TiB by its header: read up to the 8 bytes that are there. */
    write_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }", 8);
    expect_refusal("is truncated: it holds 8 of the 4398046511104 bytes");
}
END_TEST

START_TEST(file_that_ends_within_its_head_is_refused)
{
    static const char whole[] = "\x93NUMPY\1\0\x76\0{'descr': ";

    for (size_t count = 0; count < sizeof whole - 1; count++) {
        write_bytes(whole, count);
        expect_refusal(count < 8 ? "is no .npy file" : "ends within");
    }
    write_bytes("\x93NUMPY\2\0\xff\xff\xff\xff", 12);
    expect_refusal("a header of 4294967295 bytes");
    write_bytes("\x93NUMPY\1\0\4\0{}\0\0", 14);
    expect_refusal("a zero byte in its header");
}
END_TEST

START_TEST(other_files_and_versions_are_refused)
{
    write_bytes("PK\3\4 not an array at all", 25);
    expect_refusal("is no .npy file");
    write_bytes("\x93NUMPY\4\0\2\0{}", 12);
    expect_refusal("version 4.0");
    write_bytes("\x93NUMPY\1\1\2\0{}", 12);
    expect_refusal("version 1.1");
    remove(path);
    expect_refusal("cannot read");
    snprintf(path, sizeof path, "%s", folder);
    expect_refusal("cannot read");
}
END_TEST

START_TEST(sentence_shows_no_control_characters)
{
    write_file(1, "{'descr': '<\33[31m', 'fortran_order': False, 'shape': (1,)}", 4);
    ck_assert(!npy_read(path, &array, &fault));
    ck_assert_ptr_null(strchr(fault.sentence, '\33'));
}
END_TEST

START_TEST(what_is_written_reads_back)
{
    const float values[] = {1, -2.5f, 3e30f, 0, 5, 6};
    const npy_array written = {
        .kind = 'f', .item_bytes = 4, .num_dims = 3, .shape = {1, 2, 3}, .count = 6, .data = (void *)values};
    unsigned char start[128];
    output_file output;
    FILE *file;

    ck_assert(output_open(&output, path, &fault) && npy_write(&output, &written, &fault) &&
              output_close(&output, &fault) && output_commit(&output, &fault));
    output_discard(&output);
    ck_assert_msg(npy_read(path, &array, &fault), "%s", fault.sentence);
    ck_assert_uint_eq(array.num_dims, 3);
    ck_assert_mem_eq(array.shape, written.shape, 3 * sizeof array.shape[0]);
    ck_assert_mem_eq(array.data, values, sizeof values);
    /* NumPy's own layout: version 1.0, and data on a multiple of 64. */
    file = fopen(path, "rb");
    ck_assert_uint_eq(fread(start, 1, sizeof start, file), sizeof start);
    fclose(file);
    ck_assert_mem_eq(start, "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }", 68);
    ck_assert_int_eq(start[127], '\n');
}
END_TEST

static bool exists(const char *name)
{
    FILE *file = fopen(name, "rb");

    if (file != NULL)
        fclose(file);
    return file != NULL;
}

START_TEST(file_appears_only_when_committed)
{
    char temporary[160];
    output_file output;

    snprintf(temporary, sizeof temporary, "%s.tmp0", path);
    ck_assert(output_open(&output, path, &fault));
    ck_assert(exists(temporary));
    ck_assert(output_close(&output, &fault));
    ck_assert(!exists(path));
    ck_assert(output_commit(&output, &fault));
    ck_assert(exists(path));
    output_discard(&output);
    ck_assert(exists(path));
    ck_assert(!exists(temporary));
}
END_TEST

START_TEST(abandoned_output_leaves_the_old_file)
{
    char text[8] = "", temporary[160];
    output_file output;
    FILE *file;

    snprintf(temporary, sizeof temporary, "%s.tmp0", path);
    write_bytes("before", 6);
    ck_assert(output_open(&output, path, &fault));
    fputs("after", output.stream);
    output_discard(&output);
    file = fopen(path, "rb");
    ck_assert_uint_eq(fread(text, 1, sizeof text, file), 6);
    fclose(file);
    ck_assert_str_eq(text, "before");
    ck_assert(!exists(temporary));
}
END_TEST

START_TEST(unwritable_places_are_reported)
{
    const npy_array written = {.kind = 'u', .item_bytes = 1, .num_dims = 1, .shape = {1}, .count = 1, .data = "x"};
    output_file output;

    snprintf(path, sizeof path, "%s/no/such/folder.npy", folder);
    ck_assert(!output_open(&output, path, &fault));
    output_discard(&output);
    ck_assert_ptr_nonnull(strstr(fault.sentence, path));
    if (!exists("/dev/full"))
        return;
    ck_assert(output_open(&output, "/dev/full", &fault));
    ck_assert(!npy_write(&output, &written, &fault));
    output_discard(&output);
    ck_assert_ptr_nonnull(strstr(fault.sentence, "cannot write /dev/full"));
    ck_assert_msg(exists("/dev/full"), "a device was removed");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_version_is_read,
        every_element_type_is_read,
        keys_in_any_order_and_either_quotes_are_read,
        scalars_and_empty_arrays_are_read,
        malformed_headers_are_refused,
        truncated_and_longer_files_are_refused,
        shape_beyond_the_file_does_not_allocate_it,
        file_that_ends_within_its_head_is_refused,
        other_files_and_versions_are_refused,
        sentence_shows_no_control_characters,
        what_is_written_reads_back,
        file_appears_only_when_committed,
        abandoned_output_leaves_the_old_file,
        unwritable_places_are_reported,
    };
    return run_suite_around("npy", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}
