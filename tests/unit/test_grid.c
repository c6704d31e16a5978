/* SPDX-License-Identifier: Apache-2.0 */
/* Grids: text, rank order, groups against AxoNN's numbering, expressions, parameter blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/build.h"
#include "schedule/builder.h"
#include "workloads/workload.h"

static void test_parse(void **state)
{
    (void)state;
    struct s4d_grid g;
    struct s4d_error err;
    assert_int_equal(s4d_grid_parse("2x3x4x5", &g, &err), 0);
    assert_int_equal(g.size[S4D_X], 2);
    assert_int_equal(g.size[S4D_Y], 3);
    assert_int_equal(g.size[S4D_Z], 4);
    assert_int_equal(g.size[S4D_PIPE], 1);
    assert_int_equal(g.size[S4D_DATA], 5);
    assert_int_equal(s4d_grid_ranks(&g), 120);
    assert_int_equal(s4d_grid_parse("1024x1024x1x1", &g, &err), 0);
    static const char *const bad[] = {
        "",          "2x2x2",    "2x2x2x2x2",     "0x1x1x1", "-1x1x1x1",
        "2x2x2x2 ",  " 2x2x2x2", "2X2X2X2",       "axbxcxd", "2x2xx2",
        "1e1x1x1x1", "+1x1x1x1", "1024x1024x2x1", "2,2,2,2", "99999999999999999999x1x1x1",
        "x2x2x2",    "2x2x2x",   "1048576x1x1x2",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(s4d_grid_parse(bad[i], &g, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_USAGE);
    }
}

static void test_rank_order(void **state)
{
    (void)state;
    struct s4d_grid g = s4d_grid_make(2, 3, 2, 2);
    struct s4d_error err;
    assert_int_equal(s4d_rank_order_parse("data,pipe,z,x,y", &g, &err), 0);
    int c[S4D_AXES];
    s4d_grid_coordinates(&g, 1, c);
    assert_int_equal(c[S4D_DATA], 1); /* innermost now */
    static const char *const bad[] = {"",
                                      "y,x,z,pipe",
                                      "y,x,z,pipe,pipe",
                                      "y,x,z,p,d",
                                      "y,x,z,pipe,data,x",
                                      "y,x,z,pipe,data,",
                                      "y x z pipe data"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(s4d_rank_order_parse(bad[i], &g, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_USAGE);
        assert_int_equal(g.order[0], S4D_DATA); /* left as it was */
    }
    for (int r = 0; r < s4d_grid_ranks(&g); r++) {
        s4d_grid_coordinates(&g, r, c);
        assert_int_equal(s4d_grid_rank(&g, c), r);
    }
}

/* AxoNN (axonn/communication.py): the ranks reshaped to (data, pipe, depth = z, row = x,
 * column = y), the last index fastest. */
static int axonn_rank(const struct s4d_grid *g, int data, int pipe, int z, int x, int y)
{
    const int *n = g->size;
    return (((data * n[S4D_PIPE] + pipe) * n[S4D_Z] + z) * n[S4D_X] + x) * n[S4D_Y] + y;
}

static void check_groups_of(const struct s4d_grid *g, int data, int pipe, int z, int x, int y)
{
    int rank = axonn_rank(g, data, pipe, z, x, y), *members = malloc(sizeof(int) * 1024);
    for (s4d_axes axes = 0; axes < 1u << S4D_AXES; axes++) {
        int n = 0, mine = -1, expected[1024];
        bool in[S4D_AXES];
        for (int a = 0; a < S4D_AXES; a++)
            in[a] = axes & S4D_AXIS(a);
        /* The literal slices, in AxoNN's order. */
        for (int d = 0; d < g->size[S4D_DATA]; d++)
            for (int p = 0; p < g->size[S4D_PIPE]; p++)
                for (int k = 0; k < g->size[S4D_Z]; k++)
                    for (int i = 0; i < g->size[S4D_X]; i++)
                        for (int j = 0; j < g->size[S4D_Y]; j++)
                            if ((in[S4D_DATA] || d == data) && (in[S4D_PIPE] || p == pipe) &&
                                (in[S4D_Z] || k == z) && (in[S4D_X] || i == x) &&
                                (in[S4D_Y] || j == y)) {
                                expected[n] = axonn_rank(g, d, p, k, i, j);
                                if (expected[n] == rank)
                                    mine = n;
                                n++;
                            }
        assert_int_equal(s4d_group_size(g, axes), n);
        assert_int_equal(s4d_group_members(g, rank, axes, members), n);
        assert_memory_equal(members, expected, (size_t)n * sizeof(int));
        assert_int_equal(s4d_group_index(g, rank, axes), mine);
    }
    free(members);
}

static void test_groups_equal_axonn(void **state)
{
    (void)state;
    struct s4d_grid g = s4d_grid_make(3, 2, 4, 2);
    g.size[S4D_PIPE] = 2;
    for (int d = 0; d < 2; d++)
        for (int p = 0; p < 2; p++)
            for (int z = 0; z < 4; z++)
                for (int x = 0; x < 3; x++)
                    for (int y = 0; y < 2; y++)
                        check_groups_of(&g, d, p, z, x, y);
    /* By hand, 2x2x2x2: ranks 0 1 | 2 3 are the columns of rows 0 and 1 of depth 0. */
    g = s4d_grid_make(2, 2, 2, 2);
    int m[16];
    s4d_group_members(&g, 5, S4D_AXIS(S4D_Y), m); /* inner group */
    assert_int_equal(m[0], 4);
    assert_int_equal(m[1], 5);
    s4d_group_members(&g, 5, S4D_AXIS(S4D_X), m); /* outer group */
    assert_int_equal(m[0], 5);
    assert_int_equal(m[1], 7);
    s4d_group_members(&g, 5, S4D_AXIS(S4D_Z), m); /* depth */
    assert_int_equal(m[0], 1);
    assert_int_equal(m[1], 5);
    s4d_group_members(&g, 5, S4D_AXIS(S4D_DATA), m);
    assert_int_equal(m[0], 5);
    assert_int_equal(m[1], 13);
}

static void test_expr(void **state)
{
    (void)state;
    struct s4d_expr e = s4d_constant(7);
    int c[S4D_AXES] = {1, 2, 3, 0, 4};
    assert_true(s4d_expr_is_constant(&e));
    assert_int_equal(s4d_expr_value(&e, c), 7);
    e.stride[S4D_X] = -20;
    assert_false(s4d_expr_is_constant(&e));
    assert_int_equal(s4d_expr_value(&e, c), -13); /* no limit: not clipped */
    e.limit = 9;
    assert_int_equal(s4d_expr_value(&e, c), 0);
    e.stride[S4D_X] = 20;
    assert_int_equal(s4d_expr_value(&e, c), 9);
}

/* Every rank's elements of a parameter together: each element of the whole tensor is held exactly
 * once per member of the axes that replicate it. */
static void test_param_blocks(void **state)
{
    (void)state;
    struct s4d_program p = {.grid = s4d_grid_make(2, 3, 4, 2)};
    /* QKV of a grouped-query layer, columns over x; rows over y; padded rows 12 of 11. */
    struct s4d_param w = {.name = "w",
                          .rows = 11,
                          .part_cols = {8, 4, 4},
                          .parts = 3,
                          .padded_rows = 12,
                          .row_axis = S4D_Y,
                          .col_axis = S4D_X,
                          .sharded_z = true,
                          .block_elements = 32,
                          .shard_elements = 9};
    int held[11 * 16] = {0}, padding = 0;
    for (int r = 0; r < s4d_grid_ranks(&p.grid); r++) {
        int c[S4D_AXES];
        s4d_grid_coordinates(&p.grid, r, c);
        for (int64_t i = 0; i < w.shard_elements; i++) {
            int64_t e = s4d_param_global_index(&p, &w, c, i);
            assert_in_range(e + 1, 0, 11 * 16);
            if (e < 0)
                padding++;
            else
                held[e]++;
        }
    }
    for (int e = 0; e < 11 * 16; e++)
        assert_int_equal(held[e], 2); /* data replicas */
    /* 48 ranks x 9 elements, of which 2 x 176 are real. */
    assert_int_equal(padding, 48 * 9 - 2 * 176);
    /* By hand: rank x=1, y=2, z=0 holds row block 8..11 and columns {4..7 of q, 2..3 of k, v}.
     * Element 5 of its shard is row 8, local column 5 = second part, column 2 + 1 of 4: global
     * column 8 + 3 = 11. */
    int c[S4D_AXES] = {[S4D_X] = 1, [S4D_Y] = 2};
    assert_int_equal(s4d_param_global_index(&p, &w, c, 5), 8 * 16 + 11);
    /* Row 11 does not exist: block row 3, which is elements 24..31, z = 2 from 18 and z = 3. */
    c[S4D_Z] = 2;
    assert_int_equal(s4d_param_global_index(&p, &w, c, 6), -1);
    assert_int_equal(s4d_param_global_index(&p, &w, c, 5), 10 * 16 + 8 + 4 + 3);
    /* A bias: one row, columns over x, replicated over z. */
    struct s4d_param bias = {.name = "b",
                             .rows = 1,
                             .part_cols = {8},
                             .parts = 1,
                             .padded_rows = 1,
                             .row_axis = -1,
                             .col_axis = S4D_X,
                             .block_elements = 4,
                             .shard_elements = 4};
    assert_int_equal(s4d_param_global_index(&p, &bias, c, 3), 7);
}

/* A shard holds its part of what does not divide: 65 elements over z = 2 are 33 each, padded to 256
 * bytes, which are 32 elements of f64: 64, not 32. */
static void test_shards_round_up(void **state)
{
    (void)state;
    struct s4d_program p = {.grid = s4d_grid_make(1, 1, 2, 1), .options = s4d_options_default()};
    struct s4d_builder b;
    const int64_t cols = 65;
    p.options.precision = S4D_F64;
    s4d_builder_init(&b, &p);
    int w = s4d_matrix(&b, "w", "w", 1, &cols, 1, S4D_Y, S4D_X, 0.02);
    assert_int_equal(p.params[w].block_elements, 65);
    assert_int_equal(p.params[w].shard_elements, 64);
    s4d_builder_fini(&b);
    s4d_program_free(&p);
}

/* z times data divide the batch. */
static void test_batch(void **state)
{
    (void)state;
    struct s4d_error err;
    struct s4d_workload w;
    struct s4d_grid g = s4d_grid_make(1, 1, 2, 2);
    struct s4d_options o = s4d_options_default();
    static const struct {
        int batch;
        const char *hint;
    } cases[] = {{3, "nearest value that fits: 4"}, {6, "nearest values that fit: 4, 8"}};
    assert_int_equal(s4d_workload_load(&w, "gpt-tiny", &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        o.global_batch = cases[i].batch;
        assert_int_equal(s4d_divides(&w.model, &g, &o, &err), -1);
        assert_string_equal(err.where, "--global-batch");
        assert_string_equal(err.hint, cases[i].hint);
    }
    o.global_batch = 8;
    assert_int_equal(s4d_divides(&w.model, &g, &o, &err), 0);
    s4d_workload_free(&w);
}

static void test_tensor_range(void **state)
{
    (void)state;
    struct s4d_program p = {.grid = s4d_grid_make(2, 3, 4, 2)};
    struct s4d_tensor t = {
        .type = S4D_BF16, .offset = s4d_constant(10), .dims = 2, .shape = {3, 4}, .stride = {8, 1}};
    p.tensors = &t;
    int64_t first, last;
    s4d_tensor_range(&p, 0, &first, &last);
    assert_int_equal(first, 20);
    assert_int_equal(last, 2 * (10 + 2 * 8 + 3 + 1));
    t.offset.stride[S4D_Z] = 100; /* any rank's: z up to 3 */
    t.offset.stride[S4D_X] = -5;
    s4d_tensor_range(&p, 0, &first, &last);
    assert_int_equal(first, 2 * (10 - 5));
    assert_int_equal(last, 2 * (10 + 300 + 20));
}

static void test_axes(void **state)
{
    (void)state;
    assert_int_equal(s4d_axes_parse("z,data"), S4D_AXIS(S4D_Z) | S4D_AXIS(S4D_DATA));
    assert_int_equal(s4d_axes_parse("pipe"), S4D_AXIS(S4D_PIPE));
    static const char *const none[] = {"",    ",",  "z,",     ",z", "z,,data",
                                       "z,z", "zz", "z data", "dat"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(s4d_axes_parse(none[i]), 0);
}

/* The hint to a micro-batch that does not divide the batch of one rank. */
static const char *divisors_near(int batch, int micro_batch)
{
    static struct s4d_error err;
    struct s4d_workload w;
    struct s4d_grid one = s4d_grid_make(1, 1, 1, 1);
    struct s4d_options o = s4d_options_default();
    o.global_batch = batch;
    o.micro_batch = micro_batch;
    assert_int_equal(s4d_workload_load(&w, "gpt-tiny", &err), 0);
    assert_int_equal(s4d_divides(&w.model, &one, &o, &err), -1);
    assert_string_equal(err.where, "--micro-batch");
    s4d_workload_free(&w);
    return strrchr(err.hint, ':') + 2;
}

static void test_nearest_divisors(void **state)
{
    (void)state;
    assert_string_equal(divisors_near(12, 5), "3, 4, 6, 12");
    assert_string_equal(divisors_near(12, 13), "6, 12");
    assert_string_equal(divisors_near(36, 7), "4, 6, 9, 12"); /* 6 is its own partner */
    assert_string_equal(divisors_near(13, 2), "1, 13");
    assert_string_equal(divisors_near(1073741789, 2), "1, 1073741789"); /* a prime: at once */
}

/* Bytes are counted in 64 bits: Llama-3 405B's sequences of 8192 tokens take up to 8 (128 (20 16384
 * + 12 16384 + 10 53248) + 4 128256) bytes a token, 1086234624, so that 2^62 bytes hold 518258 of
 * them. */
static void test_largest_micro_batch(void **state)
{
    (void)state;
    struct s4d_error err;
    struct s4d_workload w;
    struct s4d_program p;
    struct s4d_grid one = s4d_grid_make(1, 1, 1, 1);
    struct s4d_options o = s4d_options_default();
    assert_int_equal(s4d_workload_load(&w, "llama-3-405b", &err), 0);
    assert_int_equal(s4d_largest_micro_batch(&w.model), 518258);
    o.recompute = S4D_RECOMPUTE_NONE;
    o.precision = o.gradient_type = S4D_F64;
    o.global_batch = o.micro_batch = 518258;
    assert_int_equal(s4d_build(&p, &w.model, &one, &o, &err), 0);
    double bytes = 0;
    for (int i = 0; i < p.n_storages; i++)
        bytes += (double)p.storages[i].bytes;
    assert_true(bytes < 0x1p62);
    s4d_program_free(&p);
    o.global_batch = o.micro_batch = 518259;
    assert_int_equal(s4d_build(&p, &w.model, &one, &o, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    assert_string_equal(err.where, "--micro-batch");
    s4d_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_rank_order),
        cmocka_unit_test(test_groups_equal_axonn),
        cmocka_unit_test(test_expr),
        cmocka_unit_test(test_param_blocks),
        cmocka_unit_test(test_shards_round_up),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_tensor_range),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_nearest_divisors),
        cmocka_unit_test(test_largest_micro_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
