/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints of files, outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/file.h"
#include "support/memory.h"

static char file[] = "/tmp/scale4d-file-XXXXXX";

static uint64_t fingerprint_of(const unsigned char *bytes, size_t n)
{
    struct s4d_error err;
    uint64_t found = 0;
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    assert_int_equal(s4d_file_fingerprint(file, &found, &err), 0);
    return found;
}

/* Of a file up to 1 MiB every byte counts; of a larger one the first and last 4 KiB. */
static void test_fingerprint(void **state)
{
    (void)state;
    enum { MOST = 3 << 20 };
    static const size_t sizes[] = {1, 4095, 4096, 4097, 1 << 20, MOST};
    unsigned char *v = s4d_calloc(MOST, 1);
    uint64_t seen[sizeof sizes / sizeof sizes[0]];
    assert_int_equal(fingerprint_of(v, 0), fingerprint_of(v, 0));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];
        size_t places[] = {0, n - 1, n < 4096 ? n / 2 : 4095, n <= 1 << 20 ? n / 2 : n - 4096};
        seen[i] = fingerprint_of(v, n);
        assert_int_equal(fingerprint_of(v, n), seen[i]);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(seen[i], seen[k]);
        for (int k = 0; k < 4; k++) {
            v[places[k]] = 1;
            assert_int_not_equal(fingerprint_of(v, n), seen[i]);
            v[places[k]] = 0;
        }
    }
    free(v);
}

static void test_no_file(void **state)
{
    (void)state;
    struct s4d_error err;
    uint64_t found;
    unlink(file);
    assert_int_equal(s4d_file_fingerprint(file, &found, &err), -1);
    assert_string_equal(err.where, file);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(s4d_file_fingerprint("/tmp", &found, &err), -1);
    assert_non_null(strstr(err.text, "expected a file, found a folder"));
}

/* Through other names of folder and file, there or not; devices may be given twice. */
static void test_outputs(void **state)
{
    (void)state;
    char folder[] = "/tmp/scale4d-outputs-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *a = s4d_asprintf("%s/a", folder), *b = s4d_asprintf("%s/./a", folder),
         *c = s4d_asprintf("%s/c", folder), *none = s4d_asprintf("%s/none/a", folder);
    struct s4d_error err;
    for (int there = 0; there < 2; there++) {
        const struct s4d_output two[] = {{"--links", a}, {"--x", NULL}, {"--timeline", b}};
        assert_int_equal(s4d_outputs_check(two, 2, &err), 0);
        assert_int_equal(s4d_outputs_check(two, 3, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_USAGE);
        assert_string_equal(err.where, "--timeline");
        assert_non_null(strstr(err.text, "--links"));
        const struct s4d_output apart[] = {{"--links", a}, {"--timeline", c}};
        assert_int_equal(s4d_outputs_check(apart, 2, &err), 0);
        FILE *f = fopen(a, "w");
        assert_non_null(f);
        fclose(f);
    }
    assert_int_equal(symlink(a, c), 0);
    assert_true(s4d_file_same(a, c));
    const struct s4d_output devices[] = {{"--links", "/dev/null"}, {"--timeline", "/dev/null"}};
    assert_int_equal(s4d_outputs_check(devices, 2, &err), 0);
    const struct s4d_output nowhere[] = {{"--links", none}};
    assert_int_equal(s4d_outputs_check(nowhere, 1, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    unlink(c);
    unlink(a);
    rmdir(folder);
    free(a);
    free(b);
    free(c);
    free(none);
}

static int setup(void **state)
{
    (void)state;
    int fd = mkstemp(file);
    return fd < 0 ? -1 : close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_outputs),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
