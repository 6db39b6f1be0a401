/* clfd run - one attention over .npy files. */
#include "command.h"
#include "options.h"
#include "run_report.h"
#include <math.h>

#define FIELD(name) offsetof(run_options, name)
#define ARRAY(operand) (offsetof(run_options, files) + (operand) * sizeof(const char *))
#define TYPES "f32|f16|bf16"

static const option_row options[] = {
    {"--q", OPTION_TEXT, "FILE", "queries [B, q_len, Hq, D]: f4, f2, or u2 with --type bf16", ARRAY(RUN_Q), 0, 0},
    {"--k", OPTION_TEXT, "FILE", "keys [B, n, Hkv, D]", ARRAY(RUN_K), 0, 0},
    {"--v", OPTION_TEXT, "FILE", "values [B, n, Hkv, Dv]", ARRAY(RUN_V), 0, 0},
    {"--v-from-k", OPTION_COUNT, "DV", "V is the first DV elements of K; instead of --v", FIELD(v_from_k), 1,
     INT32_MAX},
    {"--kv-lens", OPTION_TEXT, "FILE", "i4 [B], keys of each sequence; default n", ARRAY(RUN_KV_LENS), 0, 0},
    {"--scale", OPTION_NUMBER, "X", "factor of q.k; default 1/sqrt(D)", FIELD(scale), 0, 0},
    {"--softcap", OPTION_NUMBER, "X", "scores become X * tanh(score / X)", FIELD(softcap), 0, 0},
    {"--alibi", OPTION_TEXT, "FILE", "f4 [Hq], ALiBi slopes", ARRAY(RUN_ALIBI), 0, 0},
    {"--bias", OPTION_TEXT, "FILE", "f4 or f2 [B or 1, Hq or 1, q_len, n], added to the scores; -inf hides a key",
     ARRAY(RUN_BIAS), 0, 0},
    {"--mask", OPTION_TEXT, "FILE", "u1 or b1 [B, q_len, n], 0 hides a key", ARRAY(RUN_MASK), 0, 0},
    {"--tree-mask", OPTION_TEXT, "FILE", "u4 or i4 [B, q_len], bit j shows key j of the last q_len, earlier keys show",
     ARRAY(RUN_TREE_MASK), 0, 0},
    {"--causal", OPTION_FLAG, NULL, "query i sees keys up to its own position, aligned to the last key", FIELD(causal),
     0, 0},
    {"--window", OPTION_COUNT, "N", "query i sees only keys above its own position - N", FIELD(window), 1, INT32_MAX},
    {"--query-positions", OPTION_TEXT, "FILE", "i4 [B, q_len], positions instead of kv_len - q_len + i",
     ARRAY(RUN_QUERY_POSITIONS), 0, 0},
    {"--kv-start", OPTION_TEXT, "FILE", "i4 [B], first key of each sequence", ARRAY(RUN_KV_START), 0, 0},
    {"--sinks", OPTION_TEXT, "FILE", "f4 [Hq], one more logit per query head, without a value", ARRAY(RUN_SINKS), 0, 0},
    {"--cache-batch-idx", OPTION_TEXT, "FILE", "i4 [B], the row of k and v [C, ...] that each sequence uses",
     ARRAY(RUN_CACHE_BATCH_IDX), 0, 0},
    {"--shared-kv", OPTION_FLAG, NULL, "k and v [1, ...] serve all sequences; kv_lens and its like have one element",
     FIELD(shared_kv), 0, 0},
    {"--block-table", OPTION_TEXT, "FILE", "i4 [rows, M], page ids; k and v are pages [P, N, Hkv, D]",
     ARRAY(RUN_BLOCK_TABLE), 0, 0},
    {"--page-indptr", OPTION_TEXT, "FILE", "i4 [rows + 1], where each row starts in a block table i4 [M]",
     ARRAY(RUN_PAGE_INDPTR), 0, 0},
    {"--page-size", OPTION_COUNT, "N", "tokens per page; without --block-table k and v are cut into shuffled pages",
     FIELD(page_size), 1, INT32_MAX},
    {"--page-seed", OPTION_COUNT, "N", "seed of the shuffling; default 1", FIELD(page_seed), 0, INT64_MAX},
    {"--csr", OPTION_FLAG, NULL, "with --page-size: the block table in its CSR form", FIELD(csr), 0, 0},
    {"--kvtype", OPTION_TEXT, "TYPE",
     "convert k and v first; int8 int4 fp8 e5m2 q8_0 q4_0 or a plain type; K,V may differ", FIELD(kv_type), 0, 0},
    {"--kv-group", OPTION_COUNT, "N", "int8, int4: dims per scale; default all of a row", FIELD(kv_group), 8,
     INT32_MAX},
    {"--kv-zeros", OPTION_FLAG, NULL, "int8, int4: affine, with a zero beside each scale", FIELD(kv_zeros), 0, 0},
    {"--type", OPTION_CHOICE, TYPES, "what 16-bit integer arrays hold; default from the arrays", FIELD(type), 0, 0},
    {"--out-type", OPTION_CHOICE, TYPES, "type of the output; default q's", FIELD(out_type), 0, 0},
    {"--partial", OPTION_CHOICE, "lse|mlo", "partial format; default lse", FIELD(partial), 0, 0},
    {"--splits", OPTION_COUNT, "N", "N splits per sequence; default and 0: automatic", FIELD(num_splits), 0, INT32_MAX},
    {"--split-tokens", OPTION_COUNT, "N", "splits of N tokens", FIELD(split_tokens), 1, INT32_MAX},
    {"--out", OPTION_TEXT, "FILE", "write the output [B, q_len, Hq, Dv]; bf16 as u2", FIELD(out), 0, 0},
    {"--lse", OPTION_TEXT, "FILE", "write the log-sum-exp [B, q_len, Hq], f4", FIELD(lse), 0, 0},
    {"--expect", OPTION_TEXT, "FILE", "compare the output with f8 or f4 values", FIELD(expect), 0, 0},
    {"--expect-lse", OPTION_TEXT, "FILE", "compare the log-sum-exp with f8 or f4 values", FIELD(expect_lse), 0, 0},
    {"--tolerance", OPTION_NUMBER, "X",
     "absolute; default 1e-4, and half a unit of the type; for LSE X * max(1, |LSE|/100)", FIELD(tolerance), 0, 0},
    {"--status", OPTION_FLAG, NULL, "report the status word: page, cache_row", FIELD(status), 0, 0},
    {"--json", OPTION_FLAG, NULL, "print the report as a JSON object", FIELD(json), 0, 0},
    {"--device", OPTION_TEXT, "SPEC", "the device; default CLFD_DEVICE, else the best one", FIELD(device), 0, 0},
    {0},
};

static const option_set set = {
    .usage = "clfd run --q FILE --k FILE (--v FILE | --v-from-k DV) [options]",
    .description =
        "Computes decode attention over .npy files. Output buffers are filled with NaN beforehand. Files are\n"
        "written under a temporary name and renamed, also where a comparison fails. In comparisons equal\n"
        "infinities match, and NaN matches NaN alone. Exits 1 where a tolerance is exceeded.\n"
        "--page-size alone leaves NaN in all that no sequence needs, and page ids that name none.\n"
        "--kvtype reports the error against unquantised k and v in double precision.",
    .options = options,
};

/* The files, converted and cut as the options say. */
static bool prepare(const run_options *values, run_input *input, tool_fault *fault)
{
    const uint32_t group = values->kv_group != RUN_NOT_GIVEN ? (uint32_t)values->kv_group : 0;
    const uint64_t seed = values->page_seed != RUN_NOT_GIVEN ? values->page_seed : 1;

    if (!run_input_load(values, input, fault) ||
        (values->kv_type != NULL && !run_quantise(input, values->kv_type, group, values->kv_zeros, fault)))
        return false;
    return values->page_size == RUN_NOT_GIVEN || input->attention.paging != CLFD_PAGING_NONE ||
           run_cut_pages(input, (uint32_t)values->page_size, seed, values->csr, fault);
}

static void describe_targets(const run_options *values, const run_input *input, const run_result *result,
                             run_report *report)
{
    const clfd_type type = input->attention.out_type;
    const bool given = !isnan(values->tolerance);

    report->result = result;
    report->status = values->status;
    report->tolerance = given ? values->tolerance : RUN_DEFAULT_TOLERANCE;
    report->targets[RUN_TARGET_OUT] = (run_target){.name = "out",
                                                   .path = values->out,
                                                   .expect = values->expect,
                                                   .array = &result->out,
                                                   .type = type,
                                                   .rounded = given ? CLFD_TYPE_DEFAULT : type,
                                                   .rule = COMPARE_ABSOLUTE};
    report->targets[RUN_TARGET_LSE] = (run_target){.name = "lse",
                                                   .path = values->lse,
                                                   .expect = values->expect_lse,
                                                   .array = &result->lse,
                                                   .type = CLFD_TYPE_F32,
                                                   .rule = COMPARE_LSE};
}

bool command_run(int argc, char **argv, tool_fault *fault)
{
    run_options values = {.v_from_k = RUN_NOT_GIVEN,
                          .num_splits = RUN_NOT_GIVEN,
                          .split_tokens = RUN_NOT_GIVEN,
                          .window = RUN_NOT_GIVEN,
                          .page_size = RUN_NOT_GIVEN,
                          .page_seed = RUN_NOT_GIVEN,
                          .kv_group = RUN_NOT_GIVEN};
    char device[sizeof(clfd_device_info)];
    tool_session session = {0};
    run_input input = {0};
    run_result result = {0};
    run_report report = {.device = device};
    run_error error;
    bool help, good = false;

    values.scale = values.softcap = values.tolerance = NAN;
    if (!options_parse(&set, argc, argv, &values, NULL, &help, fault))
        return false;
    if (help)
        return true;
    if (!prepare(&values, &input, fault) || !session_open(&session, values.device, fault) ||
        !run_execute(&session, &input, &result, fault))
        goto done;
    snprintf(device, sizeof device, "%s %s", session.device.spec, session.device.name);
    describe_targets(&values, &input, &result, &report);
    if (values.kv_type != NULL) {
        report.against = &error;
        if (!run_quantisation_error(&input, &result, &error, fault))
            goto done;
    }
    good = run_report_compare(&report, fault) && run_report_write(&report, fault) &&
           run_report_print(&report, values.json, fault) && run_report_judge(&report, fault);

done:
    run_report_discard(&report);
    run_result_free(&result);
    run_input_free(&input);
    session_close(&session);
    return good;
}
