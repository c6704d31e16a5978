/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and random numbers of the tests. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/numbers.h"

static double stored(enum s4d_type type, double value)
{
    unsigned char bytes[8];
    s4d_number_store(type, bytes, value);
    return s4d_number_load(type, bytes);
}

/* bf16: 7 bits of mantissa, f16: 10 and exponents down to 2^-24; halves go to even. */
static void test_types(void **state)
{
    (void)state;
    assert_true(stored(S4D_BF16, 1 + 0x1p-8) == 1);
    assert_true(stored(S4D_BF16, 1 + 3 * 0x1p-8) == 1 + 0x1p-6);
    assert_true(stored(S4D_BF16, 1 + 0x1.01p-8) == 1 + 0x1p-7);
    assert_true(stored(S4D_BF16, -0x1.8p100) == -0x1.8p100);
    assert_true(stored(S4D_BF16, 3.4e38) == INFINITY);
    assert_true(stored(S4D_F16, 1 + 0x1p-11) == 1);
    assert_true(stored(S4D_F16, 1 + 3 * 0x1p-11) == 1 + 0x1p-9);
    assert_true(stored(S4D_F16, 2 - 0x1p-12) == 2);
    assert_true(stored(S4D_F16, 65504) == 65504);
    assert_true(stored(S4D_F16, 65519) == 65504);
    assert_true(stored(S4D_F16, -65520) == -INFINITY);
    assert_true(stored(S4D_F16, 0x1p-25) == 0);
    assert_true(stored(S4D_F16, 0x1.8p-24) == 0x1p-23);
    assert_true(stored(S4D_F16, 0x1p-14 - 0x1p-26) == 0x1p-14);
    assert_true(stored(S4D_F32, 1 + 0x1p-24) == 1);
    assert_true(stored(S4D_F64, 0.1) == 0.1);
    for (int type = S4D_F64; type <= S4D_F16; type++) {
        assert_true(isnan(stored((enum s4d_type)type, NAN)));
        assert_true(stored((enum s4d_type)type, -INFINITY) == -INFINITY);
        assert_true(signbit(stored((enum s4d_type)type, -0.0)));
    }
    for (int bits = 0; bits < 65536; bits++) { /* every 16-bit number survives */
        uint16_t in = (uint16_t)bits;
        unsigned char bytes[2];
        memcpy(bytes, &in, 2);
        double bf16 = s4d_number_load(S4D_BF16, bytes), f16 = s4d_number_load(S4D_F16, bytes);
        assert_true(isnan(bf16) || stored(S4D_BF16, bf16) == bf16);
        assert_true(isnan(f16) || stored(S4D_F16, f16) == f16);
    }
    assert_true(stored(S4D_I32, -1) == -1 && stored(S4D_U8, 255) == 255);
    assert_true(stored(S4D_I64, -5) == -5 && stored(S4D_U16, 65535) == 65535);
}

/* 100,000 numbers: mean 0 and variance 1 within 5 standard errors (1/sqrt n, sqrt(2/n)). */
static void test_normal(void **state)
{
    (void)state;
    double mean = 0, square = 0;
    enum { N = 100000 };
    for (int i = 0; i < N; i++) {
        double x = s4d_normal_at(3, (uint64_t)i);
        mean += x / N;
        square += x * x / N;
    }
    assert_true(fabs(mean) < 5 / sqrt(N) && fabs(square - 1) < 5 * sqrt(2. / N));
    assert_true(s4d_normal_at(3, 1) != s4d_normal_at(4, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
