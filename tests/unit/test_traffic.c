/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over each axis and FLOPs of whole programs against closed forms (design: the 4D
 * algorithm's table), for every combination of grid and options; and program_check of each.
 *
 * Letters: h hidden, f = 4h, V vocabulary (padded to Gx), s sequence, l layers, M micro-batches,
 * T = b s tokens, P = 2 forward passes with full recompute, else 1; e bytes of the compute type. */
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
#include "schedule/traffic.h"

/* A vocabulary that Gx = 4 does not divide, so that rows and shards are padded. */
static const struct s4d_model model = {
    .name = "odd",
    .num_layers = 2,
    .hidden_size = 64,
    .num_attention_heads = 4,
    .num_key_value_heads = 4,
    .ffn_hidden_size = 256,
    .vocab_size = 250,
    .seq_length = 16,
    .norm_epsilon = 1e-5,
    .init_std = 0.02,
    .tie_word_embeddings = true,
    .embedding = "vocabulary-parallel",
    .positions = "learned",
    .norm = "layernorm",
    .attention = "multi-head",
    .mlp = "gelu-mlp",
    .head = "cross-entropy",
};

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

struct sizes {
    int64_t x, y, z, data, h, f, V, T, M, P, L, e;
};

/* Bytes of a gathered block of k n / (Gx Gy) elements: Gz shards, each a multiple of 256 B. */
static int64_t block_bytes(const struct sizes *a, int64_t elements)
{
    return a->z * round_up((elements / (a->x * a->y) + a->z - 1) / a->z * a->e, 256);
}

/* The four matrices of a layer: qkv h x 3h, out h x h, up h x f, down f x h. */
static int64_t layer_bytes(const struct sizes *a)
{
    return block_bytes(a, 3 * a->h * a->h) + block_bytes(a, a->h * a->h) +
           2 * block_bytes(a, a->h * a->f);
}

static void expect_z(const struct s4d_traffic *t, const struct sizes *a, int cached)
{
    int64_t layer = layer_bytes(a), table = block_bytes(a, a->V * a->h);
    /* Forward and recompute, or forward and backward; embedding and head once each. */
    int64_t gathers = (a->L - cached) * 2 * a->M * layer + cached * layer + 2 * a->M * table;
    int64_t scatters = a->M * (a->L * layer + table); /* a tied table once: it carries the sum */
    bool on = a->z > 1;
    assert_int_equal(t->bytes[1][S4D_STREAM_Z_GATHER], on ? gathers : 0);
    assert_int_equal(t->bytes[2][S4D_STREAM_Z_SCATTER], on ? scatters : 0);
    assert_int_equal(t->calls[2][S4D_STREAM_Z_SCATTER], on ? a->M * (4 * a->L + 1) : 0);
}

static void expect_y(const struct s4d_traffic *t, const struct sizes *a)
{
    int64_t e = a->e, T = a->T, x = a->x;
    int64_t forward = T * 3 * a->h / x * e + T * a->f / x * e; /* of the normal layers' outputs */
    int64_t backward = T * a->h / x * e + T * a->f / x * e;    /* of the transposed ones' dI */
    int64_t sums = 2 * T * 4;                                  /* of a LayerNorm, either way */
    int64_t layers = a->L * (a->P * (forward + 2 * sums) + backward + 2 * sums);
    int64_t outside = 2 * sums + T * a->V / x * e; /* last norm; logits */
    int64_t calls = a->L * (a->P * 4 + 4) + 3;
    assert_int_equal(t->bytes[0][S4D_STREAM_Y], a->y > 1 ? a->M * (layers + outside) : 0);
    assert_int_equal(t->calls[0][S4D_STREAM_Y], a->y > 1 ? a->M * calls : 0);
}

static void expect_x(const struct s4d_traffic *t, const struct sizes *a)
{
    int64_t stream = a->T * a->h / a->y * a->e; /* of the residual stream */
    int64_t layers = a->L * (a->P * 2 + 2) * stream;
    int64_t outside = 2 * stream + a->T * 4 + 2 * a->T * 4; /* embedding, head; max, sums */
    assert_int_equal(t->bytes[0][S4D_STREAM_X], a->x > 1 ? a->M * (layers + outside) : 0);
    assert_int_equal(t->calls[0][S4D_STREAM_X], a->x > 1 ? a->M * (a->L * (a->P * 2 + 2) + 4) : 0);
}

/* Once an iteration, whatever the micro-batches. */
static void expect_replicas(const struct s4d_traffic *t, const struct sizes *a)
{
    int64_t shards =
        (a->L * layer_bytes(a) + block_bytes(a, a->V * a->h)) / a->z / a->e;    /* elements */
    int64_t layer = 3 * a->h / a->x + a->h / a->y + a->f / a->x + a->h / a->y + /* biases */
                    4 * a->h / a->y;                                            /* two norms */
    int64_t vectors = a->L * layer + 2 * a->h / a->y + model.seq_length * a->h / a->y;
    int64_t scalars = 2; /* denominator, loss */
    assert_int_equal(t->bytes[0][S4D_STREAM_DATA], a->data > 1 ? shards * 4 : 0);
    assert_int_equal(t->bytes[0][S4D_STREAM_Z_DATA],
                     a->z * a->data > 1 ? (vectors + scalars) * 4 : 0);
    int64_t members = a->x * a->y * a->z;
    assert_int_equal(t->bytes[1][S4D_STREAM_X_Y_Z], members > 1 ? members * 2 * 4 : 0);
}

/* One combination; returns false where the grid does not divide. */
static bool check_program(const struct s4d_grid *g, const struct s4d_options *o)
{
    struct s4d_error err = {0};
    struct s4d_program p;
    if (s4d_divides(&model, g, o, &err) != 0)
        return false;
    assert_int_equal(s4d_build(&p, &model, g, o, &err), 0);
    struct sizes a = {.x = g->size[S4D_X],
                      .y = g->size[S4D_Y],
                      .z = g->size[S4D_Z],
                      .data = g->size[S4D_DATA],
                      .h = model.hidden_size,
                      .f = model.ffn_hidden_size,
                      .V = round_up(model.vocab_size, g->size[S4D_X]),
                      .T = (int64_t)o->micro_batch * model.seq_length,
                      .M = p.micro_batches,
                      .P = o->recompute == S4D_RECOMPUTE_FULL ? 2 : 1,
                      .L = model.num_layers,
                      .e = s4d_type_bytes[o->precision]};
    assert_int_equal(a.M * a.z * a.data * o->micro_batch, o->global_batch);
    struct s4d_traffic t = s4d_traffic_count(&p);
    expect_z(&t, &a, o->cached_layers);
    expect_y(&t, &a);
    expect_x(&t, &a);
    expect_replicas(&t, &a);
    double formula = s4d_formula_flops(&model, o->global_batch, o->recompute);
    assert_true(fabs(s4d_program_model_flops(&p) / formula - 1) < 1e-12);
    s4d_plan(&p);
    if (s4d_check(&p, &err) != 0)
        fail_msg("%s: %s", err.where, err.text);
    s4d_program_free(&p);
    return true;
}

static int check_grid(const struct s4d_grid *g)
{
    static const char *const overlaps[] = {"all", "none", "axonn-sc24",
                                           "ors,oag-forward=within-layer"};
    int n = 0;
    for (int i = 0; i < 4 * 3 * 3 * 2 * 2; i++) {
        struct s4d_options o = s4d_options_default();
        struct s4d_error err;
        o.global_batch = 16;
        assert_int_equal(s4d_overlap_parse(overlaps[i % 4], &o.overlap, &err), 0);
        o.recompute = (enum s4d_recompute)(i / 4 % 3);
        o.cached_layers = i / 12 % 3;
        o.gradient_reduce = (enum s4d_gradient_reduce)(i / 36 % 2);
        int share = 16 / (g->size[S4D_Z] * g->size[S4D_DATA]);
        o.micro_batch = i / 72 == 0 ? share : (share + 1) / 2; /* one, or two micro-batches */
        if (share == 0 || (share == 1 && i / 72 == 1))
            continue; /* no sequence, or the same as with one micro-batch */
        n += check_program(g, &o);
    }
    return n;
}

static void test_every_grid_and_option(void **state)
{
    (void)state;
    int n = 0, grids = 0;
    for (int x = 1; x <= 4; x *= 2)
        for (int y = 1; y <= 8; y *= 2)
            for (int z = 1; z <= 16; z *= 2)
                for (int data = 1; data <= 16; data *= 2)
                    if (x * y * z * data <= 16) {
                        struct s4d_grid g = s4d_grid_make(x, y, z, data);
                        int programs = check_grid(&g);
                        n += programs;
                        grids += programs > 0;
                    }
    print_message("%d programs on %d grids\n", n, grids);
    assert_true(grids >= 50 && n >= 5000);
}

/* Gx = Gy = 1 is FSDP (ZeRO-3, hybrid sharding with data): of the matrices' N bytes every
 * micro-batch gathers 2N and scatters N over z, and the iteration sums N/Gz of fp32 over data. By
 * hand: N = 2 layers x (12 x 64^2 = 49152) + 256 x 64 = 114688 elements; with V = 256 nothing is
 * padded. Two micro-batches in bf16: gathers 2 x 2 x 114688 x 2 B = 917504 B, scatters 458752 B,
 * data 114688 / 4 x 4 B = 114688 B. */
static void test_fsdp(void **state)
{
    (void)state;
    struct s4d_model m = model;
    struct s4d_error err;
    struct s4d_program p;
    m.vocab_size = 256;
    struct s4d_grid g = s4d_grid_make(1, 1, 4, 2);
    struct s4d_options o = s4d_options_default();
    o.global_batch = 16;
    o.micro_batch = 1;
    assert_int_equal(s4d_build(&p, &m, &g, &o, &err), 0);
    struct s4d_traffic t = s4d_traffic_count(&p);
    assert_int_equal(t.bytes[1][S4D_STREAM_Z_GATHER], 917504);
    assert_int_equal(t.bytes[2][S4D_STREAM_Z_SCATTER], 458752);
    assert_int_equal(t.bytes[0][S4D_STREAM_DATA], 114688);
    for (int k = 0; k < 3; k++)
        assert_int_equal(t.calls[k][S4D_STREAM_X] + t.calls[k][S4D_STREAM_Y], 0);
    s4d_program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_grid_and_option),
                                       cmocka_unit_test(test_fsdp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
