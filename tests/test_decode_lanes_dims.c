/* The lanes family: what kernels are built for: dims and types. */
#include "support/decode_cases.h"
#include "support/suite.h"

static const decode_family lanes = {.tuning = "family=decode_lanes", .ratio = 1, .choice = true};

START_TEST(dims_match_the_reference) { verify_dims(&lanes); }
END_TEST
START_TEST(types_and_partial_formats_match_the_reference) { verify_types(&lanes); }
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        dims_match_the_reference,
        types_and_partial_formats_match_the_reference,
    };
    const int result = run_suite("decode_lanes_dims", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}
