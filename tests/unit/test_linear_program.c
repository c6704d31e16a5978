/* SPDX-License-Identifier: Apache-2.0 */
/* One fully connected layer on a 2x2x2x2 grid: the whole op list worked by hand from the table of
 * the 4D algorithm (arXiv 2305.13525 sec. 3, 2502.08145 alg. 1).
 *
 * T = 4 tokens, k = 32, n = 64; bf16 (2 B), gradients f32 (4 B). The normal layer:
 *   I (T, k/Gy) = (4,16), W (k/Gy, n/Gx) = (16,32) = 512 elements in Gz = 2 shards of 256 (512 B:
 *   a multiple of 256 B, so nothing is padded), O (T, n/Gx) = (4,32), bias n/Gx = 32.
 *   Every gemm is 2 T k/Gy n/Gx = 2*4*16*32 = 4096 FLOP.
 *   gather of W: 512 el = 1024 B over z          reduce-scatter of dW: 1024 B over z
 *   all-reduce of O: T n/Gx = 128 el = 256 B over y
 *   all-reduce of dI: T k/Gy = 64 el = 128 B over x
 *   all-reduce of the shard's gradient: 256 el = 1024 B over data, once
 *   all-reduce of the bias gradient: 32 el = 128 B over z and data, once
 * The transposed layer with the same k and n has k over x and n over y: the same sizes, x and y
 * swapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/builder.h"
#include "schedule/check.h"
#include "schedule/layers/linear.h"
#include "schedule/plan.h"
#include "tests/lib/linear_program.h"

struct expected {
    const char *op; /* "y[0] all-reduce" */
    int64_t bytes;  /* of a collective */
    double flops;   /* of a gemm */
    const char
        *waits; /* "compute[1] data, ..."; a quote after the position: of the iteration before
                 */
};

static void put_waits(const struct s4d_op *x, char *text, size_t size)
{
    static const char *const kinds[] = {"data", "memory", "order"};
    size_t n = 0;
    text[0] = '\0';
    for (int w = 0; w < x->n_waits; w++)
        n += (size_t)snprintf(text + n, size - n, "%s%s[%d]%s %s", w ? ", " : "",
                              s4d_streams[x->waits[w].stream].name, x->waits[w].position,
                              x->waits[w].iteration ? "'" : "", kinds[x->waits[w].kind]);
}

static void expect(struct s4d_program *p, const struct expected *e, int n)
{
    struct s4d_error err = {0};
    for (int i = 0; i < p->n_ops && i < n; i++) {
        const struct s4d_op *x = &p->ops[i];
        char op[64], waits[256];
        snprintf(op, sizeof op, "%s[%d] %s", s4d_streams[x->stream].name, x->position,
                 s4d_op_kinds[x->kind].name);
        put_waits(x, waits, sizeof waits);
        assert_string_equal(op, e[i].op);
        if (s4d_op_kinds[x->kind].op_class == S4D_CLASS_COLLECTIVE)
            assert_int_equal(s4d_collective_bytes(&x->c, x->kind), e[i].bytes);
        assert_float_equal(x->flops, e[i].flops, 0);
        assert_string_equal(waits, e[i].waits);
    }
    assert_int_equal(p->n_ops, n);
    s4d_plan(p);
    if (s4d_check(p, &err) != 0)
        fail_msg("%s: %s", err.where, err.text);
}

/* All overlaps. The backward's gather is issued where the forward's weight is used, one gather
 * ahead, behind the same order wait; the all-reduce of dI runs beside the gemm of dW, which waits
 * for nothing; the reduce-scatter is awaited by the cast alone. From the iteration before: a buffer
 * is written again once its last reader is done, which for O, dI and the two gradients is an
 * all-reduce. The gathers' blocks were read on the compute stream before compute[0]: implied. */
static void test_overlapped(void **state)
{
    (void)state;
    static const struct expected e[] = {
        {"compute[0] zero", 0, 0, "z-data[0]' memory"},
        {"z-gather[0] all-gather", 1024, 0, "compute[0] order"},
        {"z-gather[1] all-gather", 1024, 0, ""},
        {"compute[1] gemm", 0, 4096, "z-gather[0] data, y[0]' memory"},
        {"y[0] all-reduce", 256, 0, "compute[1] data"},
        {"compute[2] column-sum", 0, 0, ""},
        {"compute[3] gemm", 0, 4096, "z-gather[1] data, x[0]' memory"},
        {"x[0] all-reduce", 128, 0, "compute[3] data"},
        {"compute[4] gemm", 0, 4096, ""},
        {"z-scatter[0] reduce-scatter", 1024, 0, "compute[4] data"},
        {"compute[5] cast", 0, 0, "z-scatter[0] data, data[0]' memory"},
        {"data[0] all-reduce", 1024, 0, "compute[5] data"},
        {"z-data[0] all-reduce", 128, 0, "compute[2] data"},
    };
    struct s4d_program p = linear_program(s4d_grid_make(2, 2, 2, 2), "all", false);
    expect(&p, e, sizeof e / sizeof e[0]);
    s4d_program_free(&p);
}

/* No overlap, transposed: x and y change places. Each gather is issued where its weight is used and
 * starts when the computing before it has ended; the gemm of dW waits for the all-reduce of dI. */
static void test_blocking_transposed(void **state)
{
    (void)state;
    static const struct expected e[] = {
        {"compute[0] zero", 0, 0, "z-data[0]' memory"},
        {"z-gather[0] all-gather", 1024, 0, "compute[0] order"},
        {"compute[1] gemm", 0, 4096, "z-gather[0] data, x[0]' memory"},
        {"x[0] all-reduce", 256, 0, "compute[1] data"},
        {"compute[2] column-sum", 0, 0, ""},
        {"z-gather[1] all-gather", 1024, 0, "compute[2] order"},
        {"compute[3] gemm", 0, 4096, "z-gather[1] data"}, /* compute[4] has awaited y[0]' */
        {"y[0] all-reduce", 128, 0, "compute[3] data"},
        {"compute[4] gemm", 0, 4096, "y[0] order"},
        {"z-scatter[0] reduce-scatter", 1024, 0, "compute[4] data"},
        {"compute[5] cast", 0, 0, "z-scatter[0] data, data[0]' memory"},
        {"data[0] all-reduce", 1024, 0, "compute[5] data"},
        {"z-data[0] all-reduce", 128, 0, "compute[2] data"},
    };
    struct s4d_program p = linear_program(s4d_grid_make(2, 2, 2, 2), "none", true);
    expect(&p, e, sizeof e / sizeof e[0]);
    s4d_program_free(&p);
}

/* Gx = 1, Gy = 2, Gz = 2, Gdata = 1: dI needs no all-reduce, so dW comes first and its
 * reduce-scatter hides behind dI. n/Gx = 64: gemms 2*4*16*64 = 8192 FLOP, W 1024 el = 2048 B, O 256
 * el = 512 B, bias gradient 64 el = 256 B. */
static void test_weight_gradient_first(void **state)
{
    (void)state;
    static const struct expected e[] = {
        {"compute[0] zero", 0, 0, "z-data[0]' memory"},
        {"z-gather[0] all-gather", 2048, 0, "compute[0] order"},
        {"z-gather[1] all-gather", 2048, 0, ""},
        {"compute[1] gemm", 0, 8192, "z-gather[0] data, y[0]' memory"},
        {"y[0] all-reduce", 512, 0, "compute[1] data"},
        {"compute[2] column-sum", 0, 0, ""},
        {"compute[3] gemm", 0, 8192, ""}, /* dW; z-scatter[0]' was awaited by compute[5]' */
        {"z-scatter[0] reduce-scatter", 2048, 0, "compute[3] data"},
        {"compute[4] gemm", 0, 8192, "z-gather[1] data"}, /* dI */
        {"compute[5] cast", 0, 0, "z-scatter[0] data"},
        {"z-data[0] all-reduce", 256, 0, "compute[2] data"},
    };
    struct s4d_program p = linear_program(s4d_grid_make(1, 2, 2, 1), "all", false);
    expect(&p, e, sizeof e / sizeof e[0]);
    s4d_program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overlapped),
                                       cmocka_unit_test(test_blocking_transposed),
                                       cmocka_unit_test(test_weight_gradient_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
