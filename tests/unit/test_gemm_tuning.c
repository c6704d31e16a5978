/* SPDX-License-Identifier: Apache-2.0 */
/* The file of product choices: what is written is read, by device and library; and bad lines. */
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

#include "real/gemm_tuning.h"
#include "support/memory.h"

static char folder[] = "/tmp/scale4d-gemm-XXXXXX", file[64];

static struct s4d_gemm_choice choice(int64_t m, int variant)
{
    return (struct s4d_gemm_choice){.of = {.m = m,
                                           .n = 20,
                                           .k = 30,
                                           .lda = 30,
                                           .ldb = 20,
                                           .ldd = 24,
                                           .transpose_b = 1,
                                           .type = S4D_BF16,
                                           .d_type = S4D_F32},
                                    .variant = variant,
                                    .t_s = {4e-3, 3e-3, 2e-3, 1e-3 / 3}};
}

static void put(const char *device, struct s4d_gemm_choice c)
{
    struct s4d_gemm_choices one = {.v = &c, .n = 1};
    struct s4d_error err;
    if (s4d_gemm_choices_write(&one, file, device, "cuBLAS 130100", &err))
        fail_msg("%s: %s", err.where, err.text);
}

static struct s4d_gemm_choices read_all(const char *device, const char *library)
{
    struct s4d_gemm_choices c = {0};
    struct s4d_error err;
    if (s4d_gemm_choices_read(&c, file, device, library, &err))
        fail_msg("%s: %s", err.where, err.text);
    return c;
}

static void test_round_trip(void **state)
{
    (void)state;
    put("NVIDIA H200", choice(10, S4D_TURN_B));
    struct s4d_gemm_choices c = read_all("NVIDIA H200", "cuBLAS 130100");
    struct s4d_gemm_choice expected = choice(10, S4D_TURN_B);
    assert_int_equal(c.n, 1);
    const struct s4d_gemm_choice *found = s4d_gemm_choice_of(&c, &expected.of);
    assert_non_null(found);
    assert_int_equal(found->variant, S4D_TURN_B);
    for (int i = 0; i < S4D_GEMM_VARIANTS; i++)
        assert_true(found->t_s[i] > 0.999999 * expected.t_s[i] &&
                    found->t_s[i] < 1.000001 * expected.t_s[i]);
    expected.of.lda++;
    assert_null(s4d_gemm_choice_of(&c, &expected.of));
    s4d_gemm_choices_free(&c);
}

/* A device's lines replace its own alone; a name that begins like another is another. */
static void test_devices(void **state)
{
    (void)state;
    put("NVIDIA A100", choice(10, 0));
    put("NVIDIA A100-SXM4", choice(11, S4D_TURN_A));
    put("NVIDIA A100", choice(12, S4D_TURN_A | S4D_TURN_B));
    struct s4d_gemm_choices a = read_all("NVIDIA A100", "cuBLAS 130100"),
                            b = read_all("NVIDIA A100-SXM4", "cuBLAS 130100"),
                            other = read_all("NVIDIA A100", "cuBLAS 130101");
    assert_int_equal(a.n, 1);
    assert_int_equal(a.v[0].of.m, 12);
    assert_int_equal(b.n, 1);
    assert_int_equal(b.v[0].of.m, 11);
    assert_int_equal(other.n, 0);
    s4d_gemm_choices_free(&a);
    s4d_gemm_choices_free(&b);
}

static void expect_bad(const char *line)
{
    struct s4d_gemm_choices c = {0};
    struct s4d_error err;
    FILE *f = fopen(file, "w");
    fprintf(f, "# a comment\nD\tL\t%s", line);
    fclose(f);
    if (s4d_gemm_choices_read(&c, file, "D", "L", &err) == 0)
        fail_msg("accepted: %s", line);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.where, "gemm.tsv:2"));
    assert_non_null(strstr(err.hint, "--gemm-tuning full"));
    s4d_gemm_choices_free(&c);
}

static void test_bad_lines(void **state)
{
    (void)state;
    static const char good[] = "1\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf16\tf32\tturn-a\t1\t2\t3\t4\n";
    struct s4d_gemm_choices c = {0};
    FILE *f = fopen(file, "w");
    fprintf(f, "D\tL\t%s", good);
    fclose(f);
    c = read_all("D", "L");
    assert_int_equal(c.n, 1);
    s4d_gemm_choices_free(&c);
    expect_bad("nonsense\n");
    expect_bad("1\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf16\tf32\tturn-a\t1\t2\t3\n");
    expect_bad("1\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf16\tf32\tturn-a\t1\t2\t3\t4\t5\n");
    expect_bad("0\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf16\tf32\tturn-a\t1\t2\t3\t4\n");
    expect_bad("1\t2\t3\t3\t2\t2\t0\t7\t0\t0\tbf16\tf32\tturn-a\t1\t2\t3\t4\n");
    expect_bad("1\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf17\tf32\tturn-a\t1\t2\t3\t4\n");
    expect_bad("1\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf16\tf32\tturn-c\t1\t2\t3\t4\n");
    expect_bad("1\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf16\tf32\tturn-a\t1\t-2\t3\t4\n");
    expect_bad("1\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf16\tf32\tturn-a\t1\tnan\t3\t4\n");
    expect_bad("1\t2\t3\t3\t2\t2\t0\t1\t0\t0\tbf16\tf32\tturn-a\t1\t2\t3\t4"); /* cut short */
}

static void test_files(void **state)
{
    (void)state;
    struct s4d_gemm_choices c = {0};
    struct s4d_error err;
    assert_int_equal(s4d_gemm_choices_read(&c, "/nonexistent/f.tsv", "D", "L", &err), 0);
    assert_int_equal(s4d_gemm_choices_read(&c, folder, "D", "L", &err) ? 0 : c.n, 0);
    assert_int_equal(s4d_gemm_choices_write(&c, "/proc/none/f.tsv", "D", "L", &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    setenv("XDG_CACHE_HOME", folder, 1);
    char *cache = s4d_gemm_cache_file();
    assert_int_equal(s4d_gemm_choices_write(&c, cache, "D", "L", &err), 0); /* makes the folder */
    assert_int_equal(access(cache, R_OK), 0);
    unlink(cache);
    *strrchr(cache, '/') = '\0';
    rmdir(cache);
    free(cache);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/gemm.tsv", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests_name("gemm tuning", tests, set_up, tear_down);
}
