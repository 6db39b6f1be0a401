#include "plan/matrix.h"
#include "support/descriptor.h"
#include "support/suite.h"
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const clfd_caps device = {.matrix = true, .ptx = true, .local_mem_bytes = 49152};
static const clfd_tuning four_warps = {
    .family = CLFD_FAMILY_MATRIX, .work_group = 128, .slots = 3, .split_tile = 64, .exchange = CLFD_EXCHANGE_PTX};

#define SETTINGS(...) ((setting[MAX_SETTINGS]){ATTENTION(q_type, CLFD_TYPE_F16), __VA_ARGS__})

START_TEST(what_cannot_be_operands_is_refused_by_its_reason)
{
    static const struct {
        setting settings[MAX_SETTINGS];
        const char *reason;
    } cases[] = {
        {{ATTENTION(q_type, CLFD_TYPE_F32)}, "q is f32"},
        {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(head_dim, 72)}, "multiple of 16"},
        {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(head_dim, 272)}, "above 256"},
        {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_type, CLFD_TYPE_BF16)}, "not of q's type"},
        {{ATTENTION(q_type, CLFD_TYPE_BF16), ATTENTION(k_type, CLFD_TYPE_INT8)}, "q is not f16"},
        {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_quant.zeros, 1)}, "zeros"},
        {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_type, CLFD_TYPE_INT4), ATTENTION(k_quant.group, 16)},
         "multiple of 32"},
        {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(head_dim, 96)}, "units"},
        {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_alignment, 8)}, "boundaries"},
        {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(head_dim, 256)}, "local memory"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_attention a = completed_settings(cases[i].settings);
        const char *const said = clfd_matrix_refusal(&device, &a, &four_warps);
        ck_assert_msg(said != NULL && strstr(said, cases[i].reason) != NULL, "case %zu: %s", i,
                      said != NULL ? said : "accepted");
    }
}
END_TEST

START_TEST(every_type_of_operand_is_accepted)
{
    for (clfd_type type = CLFD_TYPE_INT8; type <= CLFD_TYPE_Q4_0; type++) {
        const clfd_attention a = completed_settings(SETTINGS(ATTENTION(k_type, type)));
        ck_assert_msg(clfd_matrix_refusal(&device, &a, &four_warps) == NULL, "type %d", (int)type);
    }
}
END_TEST

/* Copies are as wide as divides a row, whatever the type: what its alignment must allow. */
START_TEST(rows_that_lie_askew_are_refused)
{
    static const struct {
        setting settings[MAX_SETTINGS];
        bool accepted;
    } cases[] = {
        {{ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(head_dim, 256)}, true},
        {{ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(head_dim, 256), ATTENTION(k_alignment, 8)}, false},
        {{ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(head_dim, 128), ATTENTION(k_alignment, 8)}, true},
        {{ATTENTION(k_type, CLFD_TYPE_Q4_0), ATTENTION(head_dim, 192), ATTENTION(head_dim_v, 128),
          ATTENTION(v_from_k, 1)},
         false},
        {{ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_alignment, 8)}, false},
    };
    clfd_tuning row = four_warps;

    row.work_group = 64;
    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention a;
        setting settings[MAX_SETTINGS];
        memcpy(settings, cases[i].settings, sizeof settings);
        settings[MAX_SETTINGS - 1] = (setting){0};
        for (size_t n = 0; n < MAX_SETTINGS; n++)
            if (settings[n].bytes == 0) {
                settings[n] = (setting)ATTENTION(q_type, CLFD_TYPE_F16);
                break;
            }
        a = completed_settings(settings);
        ck_assert_msg((clfd_matrix_refusal(&device, &a, &row) == NULL) == cases[i].accepted, "case %zu", i);
    }
}
END_TEST

START_TEST(a_row_without_its_hardware_or_shape_is_refused)
{
    const clfd_attention a = completed_settings(SETTINGS());
    clfd_caps none = device;
    clfd_tuning row = four_warps;

    none.matrix = false;
    ck_assert_ptr_nonnull(clfd_matrix_refusal(&none, &a, &row));
    row.exchange = CLFD_EXCHANGE_LOCAL; /* the emulation needs none */
    ck_assert_ptr_null(clfd_matrix_refusal(&none, &a, &row));
    row.exchange = CLFD_EXCHANGE_SUB_GROUP;
    ck_assert_ptr_nonnull(clfd_matrix_refusal(&device, &a, &row));
    row = four_warps;
    row.work_group = 80;
    ck_assert_ptr_nonnull(clfd_matrix_refusal(&device, &a, &row));
    row = four_warps;
    row.split_tile = 32;
    ck_assert_ptr_nonnull(clfd_matrix_refusal(&device, &a, &row));
}
END_TEST

/* At 128 dims of f16 a slot has 4 KiB: three for each of four warps are all that there is, and beside a list two. */
START_TEST(slots_are_as_many_as_local_memory_holds)
{
    const clfd_attention a = completed_settings(SETTINGS(ATTENTION(head_dim, 128)));

    ck_assert_uint_eq(clfd_matrix_slots(&device, &a, &four_warps, 3, false), 3);
    ck_assert_uint_eq(clfd_matrix_slots(&device, &a, &four_warps, 3, true), 2);
    ck_assert_uint_eq(clfd_matrix_slots(&device, &a, &four_warps, 8, false), 3);
    ck_assert_uint_eq(clfd_matrix_slots(&device, &a, &four_warps, 2, false), 2);
    clfd_tuning six_warps = four_warps;
    six_warps.work_group = 192; /* two slots each are all that there is: none beside a list */
    ck_assert_uint_eq(clfd_matrix_slots(&device, &a, &six_warps, 3, false), 2);
    ck_assert_uint_eq(clfd_matrix_slots(&device, &a, &six_warps, 3, true), 0);
}
END_TEST

START_TEST(tiles_lie_within_pages_that_are_whole_tiles)
{
    clfd_attention paged = {.paging = CLFD_PAGING_TABLE, .page_size = 16}, a = paged;

    ck_assert(clfd_matrix_has_page_tiles(&a));
    a.page_size = 48;
    ck_assert(clfd_matrix_has_page_tiles(&a));
    a.page_size = 24;
    ck_assert(!clfd_matrix_has_page_tiles(&a));
    a = paged;
    a.paging = CLFD_PAGING_NONE;
    ck_assert(!clfd_matrix_has_page_tiles(&a));
    a = paged;
    a.window = 100;
    ck_assert(!clfd_matrix_has_page_tiles(&a));
    a = paged;
    a.kv_start = 1;
    ck_assert(!clfd_matrix_has_page_tiles(&a));
    a = paged;
    a.split_policy = CLFD_SPLIT_TOKENS;
    a.split_size = 24;
    ck_assert(!clfd_matrix_has_page_tiles(&a));
    a.split_size = 32;
    ck_assert(clfd_matrix_has_page_tiles(&a));
}
END_TEST

/* Eight warps with 16 rows of their own; four sets of two that divide the dims. */
static const clfd_tuning own_rows = {.family = CLFD_FAMILY_MATRIX,
                                     .work_group = 256,
                                     .rows = 128,
                                     .parts = 1,
                                     .slots = 3,
                                     .split_tile = 64,
                                     .exchange = CLFD_EXCHANGE_PTX};
static const clfd_tuning divided_dims = {.family = CLFD_FAMILY_MATRIX,
                                         .work_group = 256,
                                         .rows = 64,
                                         .parts = 2,
                                         .slots = 3,
                                         .split_tile = 64,
                                         .exchange = CLFD_EXCHANGE_PTX};

START_TEST(warps_share_tiles_where_registers_and_local_memory_suffice)
{
    const clfd_attention usual = completed_settings(SETTINGS(ATTENTION(head_dim, 128)));
    const clfd_attention latent =
        completed_settings(SETTINGS(ATTENTION(head_dim, 576), ATTENTION(head_dim_v, 512), ATTENTION(v_from_k, 1)));
    const clfd_attention apart = completed_settings(SETTINGS(ATTENTION(head_dim, 576), ATTENTION(head_dim_v, 512)));
    const clfd_attention coded = completed_settings(SETTINGS(ATTENTION(k_type, CLFD_TYPE_INT8)));
    clfd_tuning many_rows = own_rows;

    many_rows.parts = 0;
    many_rows.split_tile = 128;
    ck_assert_ptr_null(clfd_matrix_refusal(&device, &usual, &own_rows));
    ck_assert_ptr_null(clfd_matrix_refusal(&device, &latent, &divided_dims));
    ck_assert_ptr_nonnull(strstr(clfd_matrix_refusal(&device, &usual, &many_rows), "16 rows"));
    ck_assert_ptr_nonnull(strstr(clfd_matrix_refusal(&device, &latent, &own_rows), "registers"));
    ck_assert_ptr_nonnull(strstr(clfd_matrix_refusal(&device, &apart, &divided_dims), "local memory"));
    ck_assert_ptr_nonnull(strstr(clfd_matrix_refusal(&device, &coded, &own_rows), "quantised"));
    many_rows = divided_dims;
    many_rows.work_group = 96;
    ck_assert_ptr_nonnull(strstr(clfd_matrix_refusal(&device, &latent, &many_rows), "parts"));
}
END_TEST

/* A stage of two tiles of K and V at 128 dims has 16 KiB, one of K alone at 576 dims 18 KiB. */
START_TEST(slots_hold_stages_where_warps_share_tiles)
{
    const clfd_attention usual = completed_settings(SETTINGS(ATTENTION(head_dim, 128)));
    const clfd_attention latent =
        completed_settings(SETTINGS(ATTENTION(head_dim, 576), ATTENTION(head_dim_v, 512), ATTENTION(v_from_k, 1)));

    ck_assert_uint_eq(clfd_matrix_slots(&device, &usual, &own_rows, 8, false), 3);
    ck_assert_uint_eq(clfd_matrix_slots(&device, &usual, &own_rows, 8, true), 2);
    ck_assert_uint_eq(clfd_matrix_slots(&device, &latent, &divided_dims, 8, false), 2);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_cannot_be_operands_is_refused_by_its_reason,
        every_type_of_operand_is_accepted,
        rows_that_lie_askew_are_refused,
        a_row_without_its_hardware_or_shape_is_refused,
        slots_are_as_many_as_local_memory_holds,
        tiles_lie_within_pages_that_are_whole_tiles,
        warps_share_tiles_where_registers_and_local_memory_suffice,
        slots_hold_stages_where_warps_share_tiles,
    };
    return run_suite_around("matrix", tests, COUNT(tests), hear_nothing, NULL);
}
