#include "device/spec.h"
#include "support/log.h"
#include "support/suite.h"
#include <string.h>

static const clfd_device_info h200 = {
    .spec = "0:1",
    .platform_name = "NVIDIA CUDA",
    .vendor = "NVIDIA Corporation",
    .name = "NVIDIA H200",
    .type = CL_DEVICE_TYPE_GPU,
    .memory_bytes = (uint64_t)139 << 30,
};
static const clfd_device_info pocl = {
    .spec = "1:0",
    .platform_name = "Portable Computing Language",
    .vendor = "AuthenticAMD",
    .name = "pthread-haswell-AMD EPYC",
    /* Drivers add the DEFAULT bit. */
    .type = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_DEFAULT,
    .memory_bytes = (uint64_t)16 << 30,
};

static bool matches(const char *text, const clfd_device_info *info)
{
    clfd_spec spec;

    ck_assert_int_eq(clfd_spec_parse(text, &spec, NULL), CLFD_SUCCESS);
    return clfd_spec_matches(&spec, info);
}

START_TEST(each_form_of_a_spec_tells_two_devices_apart)
{
    static const char *const of_h200[] = {
        "0:1",
        "00:01",
        " 0:1 ",
        "gpu",
        "GPU",
        "nvidia",
        "H200",
        "cuda",
        "vendor=nvidia",
        "name=H200",
        "platform=cuda",
        "type=gpu",
        "type=GPU , name=h200",
        "gpu,index=0",
        "mem>=17G",
        "mem>=139g",
        "type=gpu,vendor=nvidia,name=H200,platform=cuda,mem>=16G,index=1",
        /* In bytes, one more than the other has. */
        "mem>=17179869185",
    };

    for (size_t i = 0; i < sizeof of_h200 / sizeof of_h200[0]; i++) {
        ck_assert_msg(matches(of_h200[i], &h200), "'%s' misses the H200", of_h200[i]);
        ck_assert_msg(!matches(of_h200[i], &pocl), "'%s' matches PoCL", of_h200[i]);
    }
    ck_assert(matches("cpu", &pocl) && !matches("cpu", &h200));
    ck_assert(!matches("accelerator", &pocl) && !matches("accelerator", &h200));
    ck_assert(matches("platform=Portable,type=cpu", &pocl) && !matches("platform=Portable,type=cpu", &h200));
}
END_TEST

START_TEST(every_pair_of_a_list_must_hold)
{
    ck_assert(!matches("type=cpu,vendor=nvidia", &h200));
    ck_assert(!matches("type=gpu,mem>=140G", &h200));
    ck_assert(!matches("vendor=H200", &h200));
    ck_assert(!matches("platform=H200", &h200));
    ck_assert(!matches("name=cuda", &h200));
}
END_TEST

START_TEST(memory_units_are_powers_of_1024)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"mem>=0", 0},
        {"mem>=5", 5},
        {"mem>=3K", 3072},
        {"mem>=3m", 3145728},
        {"mem>=16G", 17179869184},
        {"mem>=2T", 2199023255552},
        {"mem>=16777215T", 18446742974197923840u},
        {"mem>=18446744073709551615", UINT64_MAX},
    };
    clfd_spec spec;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(clfd_spec_parse(cases[i].text, &spec, NULL), CLFD_SUCCESS);
        ck_assert_uint_eq(spec.min_memory, cases[i].bytes);
    }
}
END_TEST

START_TEST(index_is_read_and_absent_means_only_one)
{
    clfd_spec spec;

    ck_assert_int_eq(clfd_spec_parse("type=cpu,index=4294967295", &spec, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(spec.index, 4294967295);
    ck_assert_int_eq(clfd_spec_parse("cpu , index= 1", &spec, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(spec.index, 1);
    ck_assert_uint_eq(spec.type, CL_DEVICE_TYPE_CPU);
    ck_assert_int_eq(clfd_spec_parse("cpu", &spec, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(spec.index, -1);
}
END_TEST

START_TEST(names_with_colons_commas_and_digits_are_fragments)
{
    static const char *const fragments[] = {"gfx90a:sramecc+:xnack-", "Micro Devices, Inc.", "4090", "GPU Max", "gpus"};
    clfd_spec spec;

    for (size_t i = 0; i < sizeof fragments / sizeof fragments[0]; i++) {
        ck_assert_int_eq(clfd_spec_parse(fragments[i], &spec, NULL), CLFD_SUCCESS);
        ck_assert_uint_eq(spec.fragment.length, strlen(fragments[i]));
        ck_assert_str_eq(spec.pair, "");
        ck_assert_uint_eq(spec.type, 0);
    }
}
END_TEST

/* The sentence names the offending piece and the rule. */
START_TEST(malformed_specs_are_refused_with_the_piece_and_the_rule)
{
    static const struct {
        const char *text, *piece, *rule;
    } cases[] = {
        {"", "empty", "must name"},
        {"   ", "empty", "must name"},
        {"0:", "'0:'", "two whole numbers"},
        {":1", "':1'", "two whole numbers"},
        {"0:x", "'0:x'", "two whole numbers"},
        {"-1:0", "'-1:0'", "two whole numbers"},
        {"0:1:2", "'0:1:2'", "two whole numbers"},
        {"0:4294967296", "'0:4294967296'", "4294967295"},
        {"colour=red", "'colour=red'", "type=, vendor="},
        {"type=gpuu", "'gpuu'", "gpu, cpu or accelerator"},
        {"type=", "''", "gpu, cpu or accelerator"},
        {"vendor=", "''", "vendor's name"},
        {"name= ,type=gpu", "''", "device's name"},
        {"platform=", "''", "platform's name"},
        {"mem>=", "''", "whole number"},
        {"mem>=G", "'G'", "whole number"},
        {"mem>=16X", "'16X'", "whole number"},
        {"mem>=1.5G", "'1.5G'", "whole number"},
        {"mem>=-1", "'-1'", "whole number"},
        {"mem>=16777216T", "'16777216T'", "below 2^64"},
        {"mem>=18446744073709551616", "'18446744073709551616'", "below 2^64"},
        {"mem=16G", "'mem=16G'", "mem>="},
        {"mem>16G", "'mem>16G'", "mem>="},
        {"mem<=16G", "'mem<=16G'", "mem>="},
        {"index=one", "'one'", "whole number"},
        {"index=-1", "'-1'", "whole number"},
        {"index=4294967296", "'4294967296'", "4294967295"},
        {"type=gpu,type=cpu", "type=", "once"},
        {"gpu,type=gpu", "type=", "once"},
        {"index=0,index=0", "index=", "once"},
        {"type=gpu,", "empty", "between terms"},
        {",type=gpu", "empty", "between terms"},
        {"type=gpu,,index=0", "empty", "between terms"},
        {"gpu,", "empty", "between terms"},
        {"type=gpu,nvidia", "'nvidia'", "type=, vendor="},
        {"=", "'='", "type=, vendor="},
    };
    clfd_spec spec;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_log heard = {0};
        const clfd_logger logger = test_logger(&heard);
        const char *said = heard.last[CLFD_LOG_ERROR];

        ck_assert_msg(clfd_spec_parse(cases[i].text, &spec, &logger) == CLFD_ERROR_DEVICE_SPEC, "'%s' was not refused",
                      cases[i].text);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
        ck_assert_msg(strstr(said, cases[i].piece) != NULL && strstr(said, cases[i].rule) != NULL,
                      "'%s' was refused with: %s", cases[i].text, said);
    }
}
END_TEST

START_TEST(long_spec_leaves_room_for_the_rule)
{
    char text[3000];
    test_log heard = {0};
    const clfd_logger logger = test_logger(&heard);
    clfd_spec spec;

    memset(text, 'x', sizeof text);
    memcpy(text, "type=", 5);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(clfd_spec_parse(text, &spec, &logger), CLFD_ERROR_DEVICE_SPEC);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "gpu, cpu or accelerator"));
    text[0] = 'x';
    text[4] = 'x';
    ck_assert(!matches(text, &h200));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_form_of_a_spec_tells_two_devices_apart,
        every_pair_of_a_list_must_hold,
        memory_units_are_powers_of_1024,
        index_is_read_and_absent_means_only_one,
        names_with_colons_commas_and_digits_are_fragments,
        malformed_specs_are_refused_with_the_piece_and_the_rule,
        long_spec_leaves_room_for_the_rule,
    };
    return run_suite("spec", tests, sizeof tests / sizeof tests[0]);
}
