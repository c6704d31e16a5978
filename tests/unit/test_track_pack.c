/* SPDX-License-Identifier: Apache-2.0 */
/* Records taken apart into text and numbers, and the same bytes again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plots/track/pack.h"

static struct s4d_deflater *deflater; /* one for all, as in the store */

static void comes_back(const char *json, const char *first)
{
    struct s4d_packed p, f;
    size_t n, n_text, n_numbers;
    s4d_pack(&p, json, strlen(json));
    s4d_pack(&f, first, strlen(first));
    char *again = s4d_unpack(&p, &n);
    assert_string_equal(again, json);
    assert_int_equal(n, strlen(json));
    free(again);
    unsigned char *bytes = s4d_deflate(&deflater, f.text, f.n, p.text, p.n, &n_text);
    char *text = s4d_inflate(f.text, f.n, bytes, n_text, &n);
    assert_string_equal(text, p.text);
    free(bytes);
    free(text);
    if (f.numbers == p.numbers) {
        double v[16];
        assert_true(p.numbers <= 16);
        bytes = s4d_numbers_encode(p.number, f.number, p.numbers, &n_numbers);
        assert_true(s4d_numbers_decode(bytes, n_numbers, f.number, p.numbers, v));
        assert_memory_equal(v, p.number, (size_t)p.numbers * sizeof *v);
        assert_false(s4d_numbers_decode(bytes, n_numbers - 1, f.number, p.numbers, v));
        free(bytes);
    }
    s4d_packed_free(&p);
    s4d_packed_free(&f);
}

static void the_same_bytes_come_back(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"a\": 0.10000000000000001, \"b\": 1}",
        "{\"a\":0.1,\"b\":-0}",
        "{ \"a\" : 1e9 , \"b\": -0.0 }",
        "{\"a\": 1.6024001524783671e-5, \"b\": 1E+05}",
        "{\"a\": 9007199254740993, \"b\": 1.0}", /* no double is 2^53 + 1 */
        "{\"a\": 9223372036854775807, \"b\": 4.9406564584124654e-324}",
        "{\"a\": 100, \"b\": 1.7976931348623157e308}",
        "{\"12\": \"3.5 \\\"4\\\" \\\\\", \"b\": [1, 2.5, null, true]}",
        "{\"\xc3\xa4 <b>7</b>\": \"-1e5\", \"b\": []}",
        "[]",
        "{\"a\": 1, \"b\": 2}",
    };
    enum { N = sizeof lines / sizeof *lines };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            comes_back(lines[i], lines[k]);
}

/* By hand: 1 and 0.5 are numbers 0 and 1; the text has a mark of an integer and one of a real. */
static void a_number_is_found_by_its_place(void **state)
{
    (void)state;
    struct s4d_packed p;
    const char *json = "{\"a\": 1, \"b\": [0.5, 1.50]}";
    s4d_pack(&p, json, strlen(json));
    assert_int_equal(p.numbers, 3);
    assert_true(p.number[0] == 1 && p.number[1] == 0.5 && p.number[2] == 1.5);
    assert_string_equal(p.text, "{\"a\": \002, \"b\": [\001, \0031.50\003]}");
    char *places = s4d_pack_ordinals(&p), *shape = s4d_pack_shape(&p);
    assert_string_equal(places, "{\"a\": 0, \"b\": [1, 2]}");
    assert_string_equal(shape, "{\"a\":0,\"b\":[0,0]}");
    free(places);
    free(shape);
    s4d_packed_free(&p);
}

static void a_shape_knows_keys_and_no_other_text(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int same;
    } pairs[] = {
        {"{\"a\": 1, \"t\": \"x\"}", "{\"a\":2.5,\"t\":\"yz\"}", 1},
        {"{\"a\": 1, \"t\": \"x\"}", "{\"b\": 1, \"t\": \"x\"}", 0},
        {"{\"a\": [1, 2]}", "{\"a\": [1, 2, 3]}", 0},
        {"{\"a\": null}", "{\"a\": 1}", 0},
        {"{\"a\": \"1\"}", "{\"a\": 1}", 0},
        {"{\"a\": 1.50}", "{\"a\": 2}", 1},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct s4d_packed p, q;
        s4d_pack(&p, pairs[i].a, strlen(pairs[i].a));
        s4d_pack(&q, pairs[i].b, strlen(pairs[i].b));
        char *a = s4d_pack_shape(&p), *b = s4d_pack_shape(&q);
        assert_int_equal(strcmp(a, b) == 0, pairs[i].same);
        free(a);
        free(b);
        s4d_packed_free(&p);
        s4d_packed_free(&q);
    }
}

/* By hand: a number like its reference is half a byte; 1.0 is 0x3ff0000000000000 and 2.0
 * 0x4000000000000000, which differ in the highest byte, so all eight are kept; 1 + 2^-52 differs
 * from 1 in the lowest byte alone. Four numbers: 2 + 8 + 1 bytes. */
static void numbers_are_what_differs(void **state)
{
    (void)state;
    const double reference[] = {1, 1, 1, 5}, number[] = {1, 2, 1 + 0x1p-52, 5};
    double v[4];
    size_t size;
    unsigned char *bytes = s4d_numbers_encode(number, reference, 4, &size);
    assert_int_equal(size, 8);
    assert_int_equal(bytes[0], 0xd0);
    assert_int_equal(bytes[1], 0x01);
    assert_true(s4d_numbers_decode(bytes, size, reference, 4, v));
    assert_memory_equal(v, number, sizeof v);
    bytes[0] = 0xe0; /* six bytes from the fourth on */
    assert_false(s4d_numbers_decode(bytes, size, reference, 4, v));
    free(bytes);
}

static void damaged_bytes_are_no_record(void **state)
{
    (void)state;
    const char *json = "{\"a\": 1, \"text\": \"another one\"}",
               *first = "{\"a\": 2, \"text\": \"one\"}";
    size_t n, size;
    struct s4d_packed p, f;
    s4d_pack(&p, json, strlen(json));
    s4d_pack(&f, first, strlen(first));
    unsigned char *bytes = s4d_deflate(&deflater, f.text, f.n, p.text, p.n, &size);
    assert_null(s4d_inflate(f.text, f.n, bytes, size - 1, &n));
    assert_null(s4d_inflate(f.text, f.n, bytes, 0, &n));
    p.numbers = 0; /* a mark without its number */
    assert_null(s4d_unpack(&p, &n));
    p.numbers = 1;
    p.n = 3; /* a number without its mark */
    assert_null(s4d_unpack(&p, &n));
    free(bytes);
    s4d_packed_free(&p);
    s4d_packed_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_come_back),
        cmocka_unit_test(a_number_is_found_by_its_place),
        cmocka_unit_test(a_shape_knows_keys_and_no_other_text),
        cmocka_unit_test(numbers_are_what_differs),
        cmocka_unit_test(damaged_bytes_are_no_record),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    s4d_deflate_free(deflater);
    return failed;
}
