/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers: right values to the last bit, and everything that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/units.h"

typedef int (*parser)(const char *text, double *value, struct s4d_error *err);

/* The double itself: "2 us" is the double nearest to 2e-6, not nearly that. */
static void gives(parser parse, const char *text, double expected)
{
    struct s4d_error err;
    double value = -1;
    if (parse(text, &value, &err))
        fail_msg("%s: %s", text, err.text);
    if (value != expected)
        fail_msg("%s: expected %.17g, got %.17g", text, expected, value);
}

static void refuses(parser parse, const char *text)
{
    struct s4d_error err = {.where = "x"};
    double value = -1;
    if (parse(text, &value, &err) == 0)
        fail_msg("'%s' was taken for %g", text, value);
    assert_true(value == -1); /* left as it was */
    assert_non_null(strstr(err.text, "expected "));
    assert_non_null(strstr(err.text, "got '"));
    assert_string_equal(err.where, "");
}

static void bandwidths(void **state)
{
    (void)state;
    gives(s4d_parse_bandwidth, "25 GB/s", 25e9);
    gives(s4d_parse_bandwidth, "25GB/s", 25e9);
    gives(s4d_parse_bandwidth, "200 Gb/s", 25e9); /* 200e9 bits / 8 */
    gives(s4d_parse_bandwidth, "1 b/s", 0.125);
    gives(s4d_parse_bandwidth, "0.5 kb/s", 62.5);
    gives(s4d_parse_bandwidth, "1.555 TB/s", 1.555e12);
    gives(s4d_parse_bandwidth, "3 MB/s", 3e6);
    gives(s4d_parse_bandwidth, "0 B/s", 0);
    const char *const bad[] = {"",          " ",         "25",       "GB/s",     "25 GB",
                               "400Gbps",   "400gb",     "-3GB/s",   "+3 GB/s",  "1e9 B/s",
                               "0x10 B/s",  "inf GB/s",  "nan GB/s", "25  GB/s", " 25 GB/s",
                               "25 GB/s ",  "25\tGB/s",  "25. GB/s", ".5 GB/s",  "1,000 B/s",
                               "25 GB/s/s", "1.2.3 B/s", "25 gB/s",  "25 GB/s\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(s4d_parse_bandwidth, bad[i]);
}

static void times_and_rates(void **state)
{
    (void)state;
    gives(s4d_parse_time, "2 us", 2e-6);
    gives(s4d_parse_time, "500ns", 500e-9);
    gives(s4d_parse_time, "0.3 ms", 0.3e-3);
    gives(s4d_parse_time, "1.5 s", 1.5);
    refuses(s4d_parse_time, "2");
    refuses(s4d_parse_time, "2 min");
    refuses(s4d_parse_time, "2 Us");
    gives(s4d_parse_flops, "312 TFLOP/s", 312e12);
    gives(s4d_parse_flops, "1.381 EFLOP/s", 1.381e18);
    gives(s4d_parse_flops, "7 FLOP/s", 7);
    refuses(s4d_parse_flops, "312 TFLOPS");
    refuses(s4d_parse_flops, "312e12");
}

static void sizes(void **state)
{
    (void)state;
    gives(s4d_parse_bytes, "40 GB", 40e9);
    gives(s4d_parse_bytes, "16 GiB", 17179869184.0); /* 16 * 2^30 */
    gives(s4d_parse_bytes, "1 kB", 1000);
    gives(s4d_parse_bytes, "1 KiB", 1024);
    gives(s4d_parse_bytes, "1.5 MiB", 1572864); /* 1.5 * 2^20 */
    refuses(s4d_parse_bytes, "40");
    refuses(s4d_parse_bytes, "1 KB"); /* kB or KiB? */
    refuses(s4d_parse_bytes, "1 G");
}

static void nccl_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"8", 8},
                {"0", 0},
                {"64K", 65536},
                {"32m", 33554432},
                {"4G", 4294967296},
                {"9223372036854775807", INT64_MAX},
                {"8589934591G", 8589934591LL << 30}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t bytes = -1;
        assert_int_equal(s4d_parse_size(good[i].text, &bytes, NULL), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
    /* 2^63 and 2^33 GiB = 2^63 do not fit. */
    const char *const bad[] = {"",
                               "K",
                               "1T",
                               "1KB",
                               "1 K",
                               "-8",
                               "1.5G",
                               "8e3",
                               "9223372036854775808",
                               "8589934592G",
                               "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t bytes = -1;
        struct s4d_error err;
        if (s4d_parse_size(bad[i], &bytes, &err) == 0)
            fail_msg("'%s' was taken for %lld", bad[i], (long long)bytes);
        assert_int_equal(bytes, -1);
    }
}

static void integers(void **state)
{
    (void)state;
    int64_t v = -1;
    struct s4d_error err;
    assert_int_equal(s4d_parse_int("4096", 1, 1048576, &v, &err), 0);
    assert_int_equal(v, 4096);
    assert_int_equal(s4d_parse_int("-3", -5, 5, &v, &err), 0);
    assert_int_equal(v, -3);
    assert_int_equal(s4d_parse_int("9223372036854775807", 0, INT64_MAX, &v, &err), 0);
    assert_int_equal(v, INT64_MAX);
    v = -1;
    assert_int_equal(s4d_parse_int("4k", 1, 1048576, &v, &err), -1);
    assert_string_equal(err.text, "expected an integer in [1, 1048576], got '4k'");
    assert_string_equal(err.hint, "write 4096, not 4k or 1e9");
    const char *const bad[] = {"",
                               "0",
                               "1048577",
                               "-1",
                               "1e9",
                               "1.0",
                               " 1",
                               "1 ",
                               "0x1",
                               "+1",
                               "9223372036854775808",
                               "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(s4d_parse_int(bad[i], 1, 1048576, &v, NULL), -1);
    assert_int_equal(v, -1);
}

static void numbers(void **state)
{
    (void)state;
    double v = -1;
    struct s4d_error err;
    assert_int_equal(s4d_parse_number("0.00001", 0, 1, &v, &err), 0);
    assert_true(v == 1e-5);
    assert_int_equal(s4d_parse_number("-3", -10, 10, &v, &err), 0);
    assert_true(v == -3);
    v = -1;
    assert_int_equal(s4d_parse_number("1e-5", 0, 1, &v, &err), -1);
    assert_string_equal(err.text, "expected a number in [0, 1], got '1e-5'");
    const char *const bad[] = {"", "1.1", "-0.5", "inf", "nan", "0x1", ".5", "5.", "1 ", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(s4d_parse_number(bad[i], 0, 1, &v, NULL), -1);
    assert_true(v == -1);
}

/* Foreign bytes do not reach the terminal, and long text is cut. */
static void messages(void **state)
{
    (void)state;
    struct s4d_error err;
    double v;
    s4d_parse_time("2\033[2J\xff", &v, &err);
    assert_non_null(strstr(err.text, "got '2?[2J?'"));
    char text[10001];
    memset(text, '7', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(s4d_parse_time(text, &v, &err), -1);
    assert_non_null(strstr(err.text, "777...'"));
    assert_true(strlen(err.text) < 200);
}

static void formats(void **state)
{
    (void)state;
    char t[32];
    assert_string_equal(s4d_format_bytes(1610612736, t, sizeof t), "1.50 GiB"); /* 1.5 * 2^30 */
    assert_string_equal(s4d_format_bytes(512, t, sizeof t), "512 B");
    assert_string_equal(s4d_format_bytes(1024, t, sizeof t), "1.00 KiB");
    assert_string_equal(s4d_format_time(812.4e-6, t, sizeof t), "812.40 us");
    assert_string_equal(s4d_format_time(18e-3, t, sizeof t), "18.00 ms");
    assert_string_equal(s4d_format_time(1.842, t, sizeof t), "1.842 s");
    assert_string_equal(s4d_format_time(0, t, sizeof t), "0.000 s");
    assert_string_equal(s4d_format_time(5e-10, t, sizeof t), "0.50 ns");
    assert_string_equal(s4d_format_bandwidth(25e9, t, sizeof t), "25.0 GB/s");
    assert_string_equal(s4d_format_flops(151.3e12, t, sizeof t), "151.3 TFLOP/s");
    assert_string_equal(s4d_format_flops(620.1e15, t, sizeof t), "620.1 PFLOP/s");
    assert_string_equal(s4d_format_number(1e-5, t, sizeof t), "0.00001");
    assert_string_equal(s4d_format_number(-2.5, t, sizeof t), "-2.5");
    assert_string_equal(s4d_format_number(4096, t, sizeof t), "4096");
    assert_string_equal(s4d_format_number(1e12, t, sizeof t), "1000000000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidths), cmocka_unit_test(times_and_rates), cmocka_unit_test(sizes),
        cmocka_unit_test(nccl_sizes), cmocka_unit_test(integers),        cmocka_unit_test(numbers),
        cmocka_unit_test(messages),   cmocka_unit_test(formats),
    };
    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
