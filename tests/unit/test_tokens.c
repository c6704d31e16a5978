/* SPDX-License-Identifier: Apache-2.0 */
/* Token sources: which tokens a sequence has, what happens at a file's end, and bad files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "real/tokens.h"

static char folder[] = "/tmp/scale4d-tokens-XXXXXX", file[64];

static void put_file(const void *bytes, size_t n)
{
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void expect(struct s4d_token_source *s, int64_t index, int n, const int32_t *tokens)
{
    int32_t found[16];
    struct s4d_error err;
    if (s->sequence(s->self, index, found, &err))
        fail_msg("%s: %s", err.where, err.text);
    for (int i = 0; i < n; i++)
        if (found[i] != tokens[i])
            fail_msg("sequence %d, token %d: %d, not %d", (int)index, i, found[i], tokens[i]);
}

/* Ten tokens of two bytes, the low one first: 0x0102 = 258 is 02 01. Sequences of 3 need 4 tokens
 * and begin 3 apart: 0..3, 3..6, 6..9, and the fourth is the first again. */
static void test_u16(void **state)
{
    (void)state;
    static const unsigned char bytes[20] = {2, 1, 1, 0, 2, 0, 3, 0, 4, 0,
                                            5, 0, 6, 0, 7, 0, 8, 0, 9, 0};
    struct s4d_token_source s;
    struct s4d_error err;
    put_file(bytes, sizeof bytes);
    assert_int_equal(s4d_tokens_file(&s, file, S4D_TOKENS_BY_VOCABULARY, 65536, 3, &err), 0);
    expect(&s, 2, 4, (const int32_t[]){6, 7, 8, 9});
    expect(&s, 0, 4, (const int32_t[]){258, 1, 2, 3});
    expect(&s, 1, 4, (const int32_t[]){3, 4, 5, 6});
    assert_int_equal(s.sequences, 3);
    expect(&s, 3, 4, (const int32_t[]){258, 1, 2, 3});
    expect(&s, 3000000000001, 4, (const int32_t[]){3, 4, 5, 6});
    s4d_tokens_close(&s);
    assert_int_equal(s4d_tokens_file(&s, file, S4D_TOKENS_U16, 300, 4, &err), 0);
    assert_int_equal(s.sequences, 2); /* the tenth token is in no sequence of 4 */
    expect(&s, 2, 5, (const int32_t[]){258, 1, 2, 3, 4});
    s4d_tokens_close(&s);
}

static void test_u32(void **state)
{
    (void)state;
    static const unsigned char bytes[12] = {0, 0, 1, 0, 255, 0, 0, 0, 0, 1, 0, 0};
    static const int32_t tokens[] = {65536, 255, 256};
    struct s4d_token_source s;
    struct s4d_error err;
    put_file(bytes, sizeof bytes);
    assert_int_equal(s4d_tokens_file(&s, file, S4D_TOKENS_BY_VOCABULARY, 65537, 2, &err), 0);
    expect(&s, 0, 3, tokens);
    s4d_tokens_close(&s);
    assert_int_equal(s4d_tokens_file(&s, file, S4D_TOKENS_U16, 65537, 5, &err), 0);
    expect(&s, 0, 6, (const int32_t[]){0, 1, 255, 0, 256, 0});
    s4d_tokens_close(&s);
}

static void test_text(void **state)
{
    (void)state;
    struct s4d_token_source s;
    struct s4d_error err;
    put_file("ab\n\xff", 4);
    assert_int_equal(s4d_tokens_text(&s, file, 256, 3, &err), 0);
    expect(&s, 0, 4, (const int32_t[]){97, 98, 10, 255});
    s4d_tokens_close(&s);
    assert_int_equal(s4d_tokens_text(&s, file, 255, 3, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    assert_non_null(strstr(err.text, "256"));
}

static void refused(enum s4d_token_type type, int64_t vocab_size, const char *text)
{
    struct s4d_token_source s;
    struct s4d_error err;
    assert_int_equal(s4d_tokens_file(&s, file, type, vocab_size, 3, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, file);
    if (!strstr(err.text, text))
        fail_msg("expected \"%s\", found \"%s\"", text, err.text);
}

static void test_bad_files(void **state)
{
    (void)state;
    struct s4d_token_source s;
    struct s4d_error err;
    int32_t tokens[16];
    put_file("1234567", 7);
    refused(S4D_TOKENS_U16, 256, "multiple of 2 bytes (uint16 tokens), found 7");
    refused(S4D_TOKENS_U32, 256, "multiple of 4 bytes");
    put_file("123456", 6);
    refused(S4D_TOKENS_U16, 256,
            "at least 4 tokens (one sequence and the target of its last token), "
            "found 3");
    put_file("", 0);
    refused(S4D_TOKENS_U16, 256, "found 0");
    unlink(file);
    refused(S4D_TOKENS_U16, 256, "No such file");
    assert_int_equal(mkfifo(file, 0600), 0);
    refused(S4D_TOKENS_U16, 256, "pipe");
    unlink(file);
    /* The sixth token is 0x0100: the first sequence is good, the second names it. */
    put_file("\1\0\1\0\1\0\1\0\1\0\0\1\1\0", 14);
    assert_int_equal(s4d_tokens_file(&s, file, S4D_TOKENS_U16, 256, 3, &err), 0);
    assert_int_equal(s.sequence(s.self, 0, tokens, &err), 0);
    assert_int_equal(s.sequence(s.self, 1, tokens, &err), -1);
    assert_string_equal(err.where, file);
    assert_non_null(
        strstr(err.text, "token 5 (byte 10): expected 0 to 255, the vocabulary's last, found 256"));
    assert_int_equal(truncate(file, 8), 0);
    assert_int_equal(s.sequence(s.self, 1, tokens, &err), -1);
    assert_non_null(strstr(err.text, "shorter"));
    s4d_tokens_close(&s);
    put_file("\377\377\377\377\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    assert_int_equal(s4d_tokens_file(&s, file, S4D_TOKENS_U32, 1000, 3, &err), 0);
    assert_int_equal(s.sequence(s.self, 0, tokens, &err), -1); /* not taken for -1, "not kept" */
    assert_non_null(strstr(err.text, "found 4294967295"));
    s4d_tokens_close(&s);
}

/* Neighbours share the token between them; every token of the vocabulary comes about equally often
 * (7 bins of 1000, within five standard deviations of 29); another seed gives another line. */
static void test_random(void **state)
{
    (void)state;
    struct s4d_token_source s, other;
    struct s4d_error err;
    int32_t a[8], b[8], c[8];
    int count[7] = {0}, equal = 0;
    s4d_tokens_random(&s, 1, 7, 7);
    s4d_tokens_random(&other, 2, 7, 7);
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(s.sequence(s.self, i, a, &err), 0);
        assert_int_equal(s.sequence(s.self, i + 1, b, &err), 0);
        assert_int_equal(other.sequence(other.self, i, c, &err), 0);
        assert_int_equal(a[7], b[0]);
        for (int k = 0; k < 7; k++) {
            assert_in_range(a[k], 0, 6);
            count[a[k]]++;
            equal += a[k] == c[k];
        }
    }
    for (int k = 0; k < 7; k++)
        assert_in_range(count[k], 1000 - 145, 1000 + 145);
    assert_in_range(equal, 1000 - 145, 1000 + 145);
    s4d_tokens_close(&s);
    s4d_tokens_close(&other);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/tokens", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u16),    cmocka_unit_test(test_u32),
        cmocka_unit_test(test_text),   cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
