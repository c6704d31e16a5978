/* SPDX-License-Identifier: Apache-2.0 */
/* The overlap option's text, the formulas, and what resolving schedule options refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/flops.h"
#include "schedule/schedule_options.h"

static void expect_overlap(const char *text, const char *canonical)
{
    struct s4d_overlap o;
    struct s4d_error err;
    char out[128];
    assert_int_equal(s4d_overlap_parse(text, &o, &err), 0);
    s4d_overlap_format(&o, out, sizeof out);
    assert_string_equal(out, canonical);
    struct s4d_overlap again;
    assert_int_equal(s4d_overlap_parse(out, &again, &err), 0);
    assert_true(o.oar == again.oar && o.ors == again.ors && o.oag_forward == again.oag_forward &&
                o.oag_backward == again.oag_backward);
}

static void test_overlap(void **state)
{
    (void)state;
    expect_overlap("all", "oar,ors,oag-forward=across-layers,oag-backward=across-layers");
    expect_overlap("none", "oag-forward=none,oag-backward=none");
    expect_overlap("axonn-sc24", "oar,ors,oag-forward=none,oag-backward=within-layer");
    expect_overlap("oag", "oag-forward=across-layers,oag-backward=across-layers");
    expect_overlap("ors,oag-forward=within-layer",
                   "ors,oag-forward=within-layer,oag-backward=none");
    expect_overlap("oar", "oar,oag-forward=none,oag-backward=none");
    static const char *const bad[] = {
        "",        "oar,",        ",oar",         "oar ors", "OAR",
        "all,oar", "oag-forward", "oag-forward=", "oag=x",   "oag-backward=within"};
    struct s4d_overlap o = {.oar = true};
    struct s4d_error err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(s4d_overlap_parse(bad[i], &o, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_USAGE);
        assert_true(o.oar); /* left as it was */
    }
}

/* h = 4, l = 2, s = 6, V = 16, B = 3: B s l h^2 = 3*6*2*16 = 576.
 * full 96*576*(1 + 6/24 + 16/128) = 55296*1.375 = 76032
 * none 72*576*(1 + 6/24 + 16/96) = 41472*17/12 = 58752
 * selective 72*576*(1 + 12/36 + 16/96) = 41472*1.5 = 62208 */
static void test_formulas(void **state)
{
    (void)state;
    struct s4d_model m = {.num_layers = 2,
                          .hidden_size = 4,
                          .num_attention_heads = 1,
                          .num_key_value_heads = 1,
                          .ffn_hidden_size = 16,
                          .seq_length = 6,
                          .vocab_size = 16,
                          .attention = "multi-head",
                          .mlp = "gelu-mlp",
                          .head = "cross-entropy"};
    assert_string_equal(s4d_formula_name(&m, S4D_RECOMPUTE_NONE),
                        "72 B s l h^2 (1 + s/6h + V/12lh)");
    assert_float_equal(s4d_formula_flops(&m, 3, S4D_RECOMPUTE_FULL), 76032, 1e-6);
    assert_float_equal(s4d_formula_flops(&m, 3, S4D_RECOMPUTE_NONE), 58752, 1e-6);
    assert_float_equal(s4d_formula_flops(&m, 3, S4D_RECOMPUTE_SELECTIVE), 62208, 1e-6);
    /* Other shapes by the layers' sum. 2 heads of 2 on 1 of keys and values, SwiGLU of f = 5, a
     * sequence: attention 2*6*4*(2*4 + 2*2) + 4*36*4 = 1152, mlp 6*6*4*5 = 720, head 2*6*4*16 =
     * 768. none 3*(2*(3*1872) + 3*768) = 40608; full one layer pass more: + 3*2*1872 = 51840;
     * selective the core: + 3*2*4*36*4 = 44064. */
    m.num_attention_heads = 2;
    m.ffn_hidden_size = 5;
    strcpy(m.attention, "grouped-query");
    strcpy(m.mlp, "swiglu-mlp");
    assert_float_equal(s4d_formula_flops(&m, 3, S4D_RECOMPUTE_NONE), 40608, 1e-6);
    assert_float_equal(s4d_formula_flops(&m, 3, S4D_RECOMPUTE_FULL), 51840, 1e-6);
    assert_float_equal(s4d_formula_flops(&m, 3, S4D_RECOMPUTE_SELECTIVE), 44064, 1e-6);
    assert_string_equal(s4d_formula_name(&m, S4D_RECOMPUTE_NONE), "sum over the program's ops");
}

static struct s4d_schedule_options valid(void)
{
    struct s4d_schedule_options s = s4d_schedule_options_default();
    s.grid.given = true;
    s.grid.grid = s4d_grid_make(2, 1, 3, 1);
    s.options.global_batch = 12;
    return s;
}

static void refuse(struct s4d_schedule_options s, const char *where)
{
    struct s4d_grid g;
    bool automatic;
    struct s4d_error err;
    assert_int_equal(s4d_schedule_options_resolve(&s, 6, &g, &automatic, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    assert_string_equal(err.where, where);
}

static void test_resolve(void **state)
{
    (void)state;
    struct s4d_schedule_options s = valid();
    struct s4d_grid g;
    bool automatic;
    struct s4d_error err;
    s.rank_order.order[0] = S4D_X;
    s.rank_order.order[1] = S4D_Y;
    assert_int_equal(s4d_schedule_options_resolve(&s, 6, &g, &automatic, &err), 0);
    assert_false(automatic);
    assert_int_equal(g.order[0], S4D_X);
    assert_int_equal(g.size[S4D_Z], 3);
    assert_int_equal(s.options.gradient_type, S4D_F32);
    assert_false(s.options.loss_scaling);

    s = valid();
    s.options.precision = S4D_F16;
    s.gradient_type = 1;
    assert_int_equal(s4d_schedule_options_resolve(&s, 6, &g, &automatic, &err), 0);
    assert_true(s.options.loss_scaling);
    assert_int_equal(s.options.gradient_type, S4D_F16);

    for (int scaling = 0; scaling < 3; scaling++) /* auto, off, on */
        for (int f16 = 0; f16 < 2; f16++) {
            s = valid();
            s.loss_scaling = scaling;
            s.options.precision = f16 ? S4D_F16 : S4D_BF16;
            assert_int_equal(s4d_schedule_options_resolve(&s, 6, &g, &automatic, &err), 0);
            assert_int_equal(s.options.loss_scaling, scaling == 2 || (scaling == 0 && f16));
        }

    s = valid(), s.grid.given = false, refuse(s, "--grid");
    s = valid(), s.grid.grid.size[S4D_Z] = 2, refuse(s, "--grid");
    s = valid(), s.options.global_batch = 0, refuse(s, "--global-batch");
    s = valid(), s.pipeline = 2, refuse(s, "--pipeline");
}

/* The table itself: names once each, every field inside the struct, choices that end. */
static void test_table(void **state)
{
    (void)state;
    for (const struct s4d_option *a = s4d_schedule_options; a->name; a++) {
        assert_true(a->offset < sizeof(struct s4d_schedule_options));
        assert_non_null(a->help);
        assert_true((a->type == S4D_OPT_PARSE) == (a->parse != NULL));
        assert_true((a->type == S4D_OPT_CHOICE) == (a->choices != NULL));
        for (const struct s4d_option *b = a + 1; b->name; b++)
            assert_string_not_equal(a->name, b->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlap), cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_resolve), cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
