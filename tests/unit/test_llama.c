/* SPDX-License-Identifier: Apache-2.0 */
/* The layer kinds of Llama and the goldfish loss: their ops by hand, the serial Llama against
 * central differences, Hugging Face's names, and programs on every grid and option against the
 * serial one.
 *
 * Tolerances as in test_numerics.c: ||a - b|| / ||b|| per tensor of 1e-5 in f32, 1e-10 in f64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/build.h"
#include "schedule/check.h"
#include "schedule/flops.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "tests/lib/numbers.h"
#include "tests/lib/reference.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/training.h"
#include "workloads/workload.h"

/* As s4d_case_default, but a Llama: kv_heads of the heads, head size 4 or head_dim. */
static struct s4d_case llama(int heads, int kv_heads, int x, int y, int z, int data)
{
    struct s4d_case c = s4d_case_default(heads, x, y, z, data);
    c.model.num_key_value_heads = kv_heads;
    c.model.tie_word_embeddings = false;
    c.model.rope_theta = 100;
    strcpy(c.model.positions, "rotary");
    strcpy(c.model.norm, "rmsnorm");
    strcpy(c.model.attention, "grouped-query");
    strcpy(c.model.mlp, "swiglu-mlp");
    return c;
}

static void with_goldfish(struct s4d_model *m, int k, int h)
{
    strcpy(m->head, "goldfish-cross-entropy");
    m->goldfish_k = k;
    m->goldfish_h = h;
}

/* Scaling that reaches all three ranges with head size 8 and theta 100: 1, 0.316, 0.1, 0.032
 * radians a token are 16, 5, 1.6, 0.5 turns of 100 tokens: kept, between, between, divided. */
static void with_scaling(struct s4d_model *m)
{
    m->rope_scaling_factor = 8;
    m->rope_low_freq_factor = 1;
    m->rope_high_freq_factor = 6;
    m->rope_original_max_position_embeddings = 100;
}

static void describe(const struct s4d_case *c, char text[256])
{
    char overlap[96];
    s4d_overlap_format(&c->options.overlap, overlap, sizeof overlap);
    snprintf(text, 256, "grid %dx%dx%dx%d, micro-batch %d, recompute %s, overlap %s, cached %d",
             c->grid.size[S4D_X], c->grid.size[S4D_Y], c->grid.size[S4D_Z], c->grid.size[S4D_DATA],
             c->options.micro_batch, s4d_recompute_names[c->options.recompute], overlap,
             c->options.cached_layers);
}

static void train(const struct s4d_case *c, struct s4d_trained *out)
{
    char text[256];
    struct s4d_error err;
    describe(c, text);
    if (s4d_train(c, out, &err))
        fail_msg("%s: %s: %s", text, err.where, err.text);
}

static void compare(const struct s4d_case *c, const struct s4d_trained *a,
                    const struct s4d_trained *b, double most)
{
    char text[256];
    struct s4d_difference d = s4d_compare(c, a, b);
    describe(c, text);
    if (!(d.gradient <= most && d.weight <= most && d.loss <= most && d.grad_norm <= most))
        fail_msg("%s: gradient of %s differs by %g, weight of %s by %g, loss by %g, norm by %g",
                 text, d.gradient_of, d.gradient, d.weight_of, d.weight, d.loss, d.grad_norm);
}

static void check_against(const struct s4d_case *c, const struct s4d_trained *expected, double most)
{
    struct s4d_trained t;
    train(c, &t);
    compare(c, &t, expected, most);
    s4d_trained_free(&t);
}

/* Pair i of d turns by theta^(-2i/d) a token: theta = 16, d = 4: 1 and 1/4. With scaling by 2, low
 * 1, high 3, original 8 pi: 1 is 4 turns of 8 pi, above high: kept. 1/4 is 1 turn: m = 0: halved.
 * With original 16 pi it is 2 turns: m = 1/2: (1/2) (1/8) + (1/2) (1/4) = 3/16. */
static void test_frequencies(void **state)
{
    (void)state;
    union s4d_constants c = {.rotary = {.head_dim = 4, .theta = 16}};
    assert_float_equal(s4d_rotary_frequency(&c, 0), 1, 1e-15);
    assert_float_equal(s4d_rotary_frequency(&c, 1), 0.25, 1e-15);
    c.rotary.factor = 2;
    c.rotary.low = 1;
    c.rotary.high = 3;
    c.rotary.original = 8 * M_PI;
    assert_float_equal(s4d_rotary_frequency(&c, 0), 1, 1e-15);
    assert_float_equal(s4d_rotary_frequency(&c, 1), 0.125, 1e-12);
    c.rotary.original = 16 * M_PI;
    assert_float_equal(s4d_rotary_frequency(&c, 1), 3.0 / 16, 1e-12);
    c.rotary.original = 4 * M_PI; /* half a turn: low */
    assert_float_equal(s4d_rotary_frequency(&c, 1), 0.125, 1e-15);
}

/* Of frequency scaling all keys or none, and pairs need an even head size. */
static void test_refusals(void **state)
{
    (void)state;
    struct s4d_case c = llama(4, 2, 1, 1, 1, 1);
    struct s4d_error err;
    assert_int_equal(s4d_divides(&c.model, &c.grid, &c.options, &err), 0);
    with_scaling(&c.model);
    assert_int_equal(s4d_divides(&c.model, &c.grid, &c.options, &err), 0);
    c.model.rope_high_freq_factor = c.model.rope_low_freq_factor;
    assert_int_equal(s4d_divides(&c.model, &c.grid, &c.options, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    with_scaling(&c.model);
    c.model.rope_scaling_factor = 0;
    assert_int_equal(s4d_divides(&c.model, &c.grid, &c.options, &err), -1);
    c = llama(4, 2, 1, 1, 1, 1);
    c.model.head_dim = 5;
    assert_int_equal(s4d_divides(&c.model, &c.grid, &c.options, &err), -1);
    assert_string_equal(err.text,
                        "rotary positions turn pairs: expected an even head_dim, found 5");
    c = llama(4, 3, 1, 1, 1, 1);
    assert_int_equal(s4d_divides(&c.model, &c.grid, &c.options, &err), -1);
    assert_string_equal(err.text, "expected key-value heads that divide the 4 heads, found 3");
}

/* Every element: (loss(w + e) - loss(w - e)) / 2e is the gradient to e^2. */
static void check_differences(const struct s4d_model *m)
{
    enum { BATCH = 3, MOST = 128 };
    struct s4d_reference *r = s4d_reference_create(m);
    int32_t tokens[MOST];
    assert_true(BATCH * (m->seq_length + 1) <= MOST);
    for (int i = 0; i < BATCH * (m->seq_length + 1); i++)
        tokens[i] = s4d_uniform_at(6, (uint64_t)i) < 0.1
                        ? -1
                        : (int32_t)(s4d_uniform_at(5, (uint64_t)i) * m->vocab_size);
    for (int q = 0; q < r->n_params; q++)
        for (int64_t i = 0; i < r->params[q].n; i++)
            r->params[q].w[i] = 0.5 * s4d_normal_at((uint64_t)q, (uint64_t)i);
    double loss = s4d_reference_gradient(r, tokens, BATCH), e = 1e-5;
    assert_true(loss > 0 && loss == s4d_reference_loss(r, tokens, BATCH));
    for (int q = 0; q < r->n_params; q++) {
        struct s4d_reference_param *p = &r->params[q];
        double apart = 0, size = 0;
        for (int64_t i = 0; i < p->n; i++) {
            double w = p->w[i];
            p->w[i] = w + e;
            double above = s4d_reference_loss(r, tokens, BATCH);
            p->w[i] = w - e;
            double slope = (above - s4d_reference_loss(r, tokens, BATCH)) / (2 * e);
            p->w[i] = w;
            apart += (slope - p->g[i]) * (slope - p->g[i]);
            size += slope * slope;
        }
        if (!(sqrt(apart) <= 1e-7 * sqrt(size)) || size == 0)
            fail_msg("%s: differs by %g of %g", p->name, sqrt(apart), sqrt(size));
    }
    s4d_reference_free(r);
}

static void test_reference(void **state)
{
    (void)state;
    struct s4d_model m = llama(4, 2, 1, 1, 1, 1).model;
    m.hidden_size = 12;
    m.head_dim = 8; /* heads wider than the residual stream */
    m.ffn_hidden_size = 10;
    m.vocab_size = 11;
    m.seq_length = 5;
    check_differences(&m);
    with_scaling(&m);
    m.tie_word_embeddings = true;
    m.num_key_value_heads = 1;
    check_differences(&m);
    with_goldfish(&m, 3, 2);
    check_differences(&m);
    strcpy(m.attention, "multi-head"); /* a GPT-2 with that loss */
    m.head_dim = 0;
    m.num_key_value_heads = 4;
    check_differences(&m);
}

static int check_all_grids(struct s4d_case *c)
{
    struct s4d_trained reference, one_rank = {.n = 0}, t;
    struct s4d_error err;
    int ran = 0;
    s4d_train_reference(c, &reference);
    for (int i = 0; s4d_case_grid(i, &c->grid); i++) {
        if ((S4D_SANITIZED && i % 10) || s4d_divides(&c->model, &c->grid, &c->options, &err))
            continue;
        c->run.order_seed = (uint64_t)i;
        train(c, &t);
        compare(c, &t, &reference, 1e-5);
        if (i > 0)
            compare(c, &t, &one_rank, 1e-5);
        ran++;
        if (i > 0)
            s4d_trained_free(&t);
        else
            one_rank = t;
    }
    s4d_trained_free(&one_rank);
    s4d_trained_free(&reference);
    return ran;
}

/* 16 heads, 16 key-value heads, batch 16: all 70 grids divide. */
static void test_all_grids(void **state)
{
    (void)state;
    struct s4d_case c = llama(16, 16, 1, 1, 1, 1);
    assert_int_equal(check_all_grids(&c), S4D_SANITIZED ? 7 : 70);
}

/* 8 heads on 4 of keys and values, as llama-tiny: the 65 grids with Gx <= 4. With the goldfish loss
 * the same tokens are lost on all of them, else losses and gradients would differ. */
static void test_grouped(void **state)
{
    (void)state;
    struct s4d_case c = llama(8, 4, 1, 1, 1, 1);
    c.model.head_dim = 8;
    with_scaling(&c.model);
    with_goldfish(&c.model, 4, 3);
    c.options.overlap = (struct s4d_overlap){0};
    c.options.recompute = S4D_RECOMPUTE_NONE;
    assert_int_equal(check_all_grids(&c), S4D_SANITIZED ? 7 : 65);
    c.grid = s4d_grid_make(8, 1, 1, 1);
    struct s4d_error err;
    assert_int_equal(s4d_divides(&c.model, &c.grid, &c.options, &err), -1);
    assert_string_equal(err.text, "x must divide key-value heads of test (4), found 8");
    assert_string_equal(err.hint, "nearest values of x that fit: 2, 4");
}

/* Every recompute, overlap and number of cached layers. */
static void test_options(void **state)
{
    (void)state;
    static const char *const overlaps[] = {
        "all", "none",       "oar",
        "ors", "axonn-sc24", "oag-forward=within-layer,oag-backward=across-layers"};
    static const int grids[][4] = {{2, 2, 2, 2}, {1, 2, 4, 1}, {4, 1, 2, 2}, {1, 1, 4, 1},
                                   {2, 4, 1, 1}, {1, 1, 2, 2}, {2, 1, 2, 1}};
    struct s4d_error err;
    struct s4d_case c = llama(4, 4, 1, 1, 1, 1);
    struct s4d_trained expected;
    c.model.num_layers = 3;
    with_goldfish(&c.model, 3, 2);
    s4d_train_reference(&c, &expected);
    int n = 0;
    for (int recompute = 0; recompute < 3; recompute++)
        for (size_t o = 0; o < sizeof overlaps / sizeof overlaps[0]; o++)
            for (int cached = 0; cached < 4; cached += 1 + cached, n++) {
                const int *g = grids[n % 7];
                c.grid = s4d_grid_make(g[0], g[1], g[2], g[3]);
                c.options.recompute = (enum s4d_recompute)recompute;
                assert_int_equal(s4d_overlap_parse(overlaps[o], &c.options.overlap, &err), 0);
                c.options.cached_layers = cached;
                c.options.micro_batch = 1 << n % 3;
                c.options.gradient_reduce = n / 2 % 2 ? S4D_REDUCE_BUCKETS : S4D_REDUCE_AT_END;
                c.run.order_seed = (uint64_t)(100 + n);
                if (!S4D_SANITIZED || n % 8 == 0)
                    check_against(&c, &expected, 1e-5);
            }
    assert_int_equal(n, 54);
    s4d_trained_free(&expected);
}

/* A vocabulary that x does not divide, shards that z does not, axes that are no powers of two; tied
 * as the smaller Llamas are, and untied; several iterations in f64. */
static void test_odd_sizes(void **state)
{
    (void)state;
    static const int grids[][4] = {{3, 2, 1, 1}, {1, 3, 3, 1}, {3, 1, 3, 1}, {6, 1, 1, 2}};
    for (int i = 0; i < 8; i++) {
        const int *g = grids[i / 2];
        struct s4d_case c = llama(12, 6, g[0], g[1], g[2], g[3]);
        struct s4d_trained expected;
        c.model.hidden_size = 24;
        c.model.ffn_hidden_size = 36;
        c.model.vocab_size = 47;
        c.model.seq_length = 5;
        c.model.tie_word_embeddings = i % 2;
        c.options.global_batch = 18;
        c.options.micro_batch = 1;
        c.options.precision = c.options.gradient_type = S4D_F64;
        c.options.learning_rate = 0.01;
        c.iterations = 3;
        c.run.order_seed = (uint64_t)i;
        s4d_train_reference(&c, &expected);
        assert_true(expected.loss[2] < expected.loss[0]);
        check_against(&c, &expected, 1e-10);
        s4d_trained_free(&expected);
    }
}

/* Of bf16 what 8 bits of mantissa leave. */
static void test_half_precision(void **state)
{
    (void)state;
    struct s4d_case c = llama(4, 2, 2, 2, 2, 2);
    struct s4d_trained expected;
    s4d_train_reference(&c, &expected);
    c.options.precision = S4D_BF16;
    check_against(&c, &expected, 6e-2);
    s4d_trained_free(&expected);
}

/* Model FLOPs are the formula's, parameters the closed form's, on every grid and recompute; GQA's
 * core as the full square of the query heads. */
static void test_counts(void **state)
{
    (void)state;
    for (int recompute = 0; recompute < 3; recompute++)
        for (int kind = 0; kind < 2; kind++) {
            struct s4d_case c = llama(8, 4, 1, 1, 1, 1);
            struct s4d_program p;
            struct s4d_error err;
            c.model.head_dim = kind ? 6 : 0;
            c.model.tie_word_embeddings = kind;
            c.options.recompute = (enum s4d_recompute)recompute;
            double formula = s4d_formula_flops(&c.model, 16, c.options.recompute);
            for (int i = 0; s4d_case_grid(i, &c.grid); i++) {
                if (s4d_build(&p, &c.model, &c.grid, &c.options, &err))
                    continue;
                assert_true(fabs(s4d_program_model_flops(&p) / formula - 1) < 1e-12);
                assert_true((double)s4d_program_parameters(&p) ==
                            s4d_workload_parameters(&c.model));
                s4d_program_free(&p);
            }
        }
}

/* llama-3-8b on 2x1x1x1, a sequence, by hand: a rank has 16 heads on 4 of keys and values, of 128;
 * s = 8192. Core: 4 s^2 16*128 = 549755813888 by the model, causal half of it executed. q|k|v is
 * 8192 x 24*128 in bf16, 50331648 B, out 16*128 wide, 33554432 B, and lse 16 * 8192 fp32, 524288 B.
 */
static void test_core(void **state)
{
    (void)state;
    struct s4d_workload w;
    struct s4d_program p;
    struct s4d_error err;
    struct s4d_options o = s4d_options_default();
    struct s4d_grid g = s4d_grid_make(2, 1, 1, 1);
    o.global_batch = o.micro_batch = 1;
    assert_int_equal(s4d_workload_load(&w, "llama-3-8b", &err), 0);
    assert_int_equal(s4d_build(&p, &w.model, &g, &o, &err), 0);
    s4d_plan(&p);
    if (s4d_check(&p, &err))
        fail_msg("%s: %s", err.where, err.text);
    int n = 0;
    for (int i = 0; i < p.n_ops; i++) {
        const struct s4d_op *op = &p.ops[i];
        if (op->kind != S4D_OP_ATTENTION_FORWARD)
            continue;
        n++;
        assert_int_equal(op->c.attention.heads, 16);
        assert_int_equal(op->c.attention.kv_heads, 4);
        assert_int_equal(op->c.attention.head_dim, 128);
        assert_true(op->model_flops == 549755813888.0 && op->flops == op->model_flops / 2);
        assert_int_equal(op->bytes_read, 50331648);
        assert_int_equal(op->bytes_written, 33554432 + 524288);
    }
    assert_int_equal(n, 2 * 32); /* forward and recompute */
    s4d_program_free(&p);
    s4d_workload_free(&w);
}

/* The names of Hugging Face's LlamaForCausalLM and GPT2LMHeadModel, in the order of declaration. */
static void test_names(void **state)
{
    (void)state;
    static const char *const llama_names[] = {"model.embed_tokens.weight",
                                              "model.layers.0.input_layernorm.weight",
                                              "model.layers.0.self_attn.q_proj.weight'",
                                              "model.layers.0.self_attn.k_proj.weight'",
                                              "model.layers.0.self_attn.v_proj.weight'",
                                              "model.layers.0.self_attn.o_proj.weight'",
                                              "model.layers.0.post_attention_layernorm.weight",
                                              "model.layers.0.mlp.gate_proj.weight'",
                                              "model.layers.0.mlp.up_proj.weight'",
                                              "model.layers.0.mlp.down_proj.weight'",
                                              "model.norm.weight",
                                              "lm_head.weight"};
    static const char *const gpt_names[] = {"wte.weight",
                                            "wpe.weight",
                                            "h.0.ln_1.weight",
                                            "h.0.ln_1.bias",
                                            "h.0.attn.c_attn.weight",
                                            "h.0.attn.c_attn.bias",
                                            "h.0.attn.c_proj.weight",
                                            "h.0.attn.c_proj.bias",
                                            "h.0.ln_2.weight",
                                            "h.0.ln_2.bias",
                                            "h.0.mlp.c_fc.weight",
                                            "h.0.mlp.c_fc.bias",
                                            "h.0.mlp.c_proj.weight",
                                            "h.0.mlp.c_proj.bias",
                                            "ln_f.weight",
                                            "ln_f.bias"};
    for (int gpt = 0; gpt < 2; gpt++) {
        struct s4d_case c = gpt ? s4d_case_default(4, 1, 1, 1, 1) : llama(4, 2, 1, 1, 1, 1);
        struct s4d_program p;
        struct s4d_error err;
        size_t at = 0;
        c.model.num_layers = 1;
        assert_int_equal(s4d_build(&p, &c.model, &c.grid, &c.options, &err), 0);
        for (int i = 0; i < p.n_params; i++)
            for (int part = 0; part < p.params[i].parts; part++) {
                char name[96];
                const struct s4d_param *q = &p.params[i];
                if (part > 0 && !q->hf_part_name[0])
                    break;
                snprintf(name, sizeof name, "%s%s",
                         q->hf_part_name[0] ? q->hf_part_name[part] : q->hf_name,
                         q->hf_transposed ? "'" : "");
                assert_string_equal(name, (gpt ? gpt_names : llama_names)[at++]);
            }
        assert_int_equal(at, gpt ? sizeof gpt_names / sizeof *gpt_names
                                 : sizeof llama_names / sizeof *llama_names);
        s4d_program_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequencies), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_reference),   cmocka_unit_test(test_all_grids),
        cmocka_unit_test(test_grouped),     cmocka_unit_test(test_options),
        cmocka_unit_test(test_odd_sizes),   cmocka_unit_test(test_half_precision),
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_core),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
