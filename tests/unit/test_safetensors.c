/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors by hand: what a good file holds, every lie a header can tell, and that a kill while
 * saving leaves the old file. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/memory.h"
#include "support/safetensors.h"

static char folder[] = "/tmp/scale4d-safetensors-XXXXXX", file[64], partial[80];

/* A file of a header (its true size unless `size` is another) and n bytes of tensors. */
static void put_file(const char *header, int64_t size, const void *bytes, size_t n)
{
    FILE *f = fopen(file, "wb");
    uint64_t said = size < 0 ? strlen(header) : (uint64_t)size;
    assert_non_null(f);
    for (int i = 0; i < 8; i++)
        fputc((int)(said >> 8 * i & 255), f);
    fwrite(header, 1, strlen(header), f);
    fwrite(bytes, 1, n, f);
    assert_int_equal(fclose(f), 0);
}

static struct s4d_safetensors *open_good(void)
{
    struct s4d_safetensors *st;
    struct s4d_error err;
    if (s4d_safetensors_open(file, &st, &err))
        fail_msg("%s: %s", err.where, err.text);
    return st;
}

/* The file is refused, and the error's place and text hold these words. */
static void refused(const char *where, const char *text)
{
    struct s4d_safetensors *st;
    struct s4d_error err;
    assert_int_equal(s4d_safetensors_open(file, &st, &err), -1);
    assert_null(st);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    if (!strstr(err.where, file) || !strstr(err.where, where) || !strstr(err.text, text))
        fail_msg("expected \"%s: %s\", found \"%s: %s\"", where, text, err.where, err.text);
}

static void lie(const char *header, const char *where, const char *text)
{
    static const unsigned char bytes[16];
    put_file(header, -1, bytes, sizeof bytes);
    refused(where, text);
}

/* Tensors in another order than their bytes, an empty one, one without dimensions. 1.5 is 0x3FC0 in
 * bf16 (1 + 1/2: exponent 127, mantissa 1000000b) and 0x3E00 in f16 (exponent 15, 1000000000b). */
static const char good[] = "{\"half\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[28,32]},"
                           "\"none\":{\"dtype\":\"I8\",\"shape\":[0,7],\"data_offsets\":[24,24]},"
                           "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                           "\"__metadata__\":{\"format\":\"pt\",\"loss\":\"2.5\"},"
                           "\"brain\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[24,28]},"
                           "\"one\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[32,40]}}   ";
static const unsigned char good_bytes[40] = {
    0,    0,    0x80, 0x3f, 0, 0, 0,    0x40, 0, 0, 0x40, 0x40, /* 1 2 3 */
    0,    0,    0x80, 0x40, 0, 0, 0xa0, 0x40, 0, 0, 0xc0, 0xc0, /* 4 5 -6 */
    0xc0, 0x3f, 0x80, 0xff,                                     /* 1.5, -infinity */
    0x00, 0x3e, 0x01, 0x00,                                     /* 1.5, 2^-24 */
    0,    0,    0,    0,    0, 0, 0xf8, 0x3f,                   /* 1.5 */
};

static void test_read(void **state)
{
    (void)state;
    static const char *const order[] = {"w", "none", "brain", "half", "one"};
    struct s4d_error err;
    char text[64];
    float f[4] = {0};
    double d[4];
    put_file(good, -1, good_bytes, sizeof good_bytes);
    struct s4d_safetensors *st = open_good();
    assert_int_equal(s4d_safetensors_count(st), 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(s4d_safetensors_get(st, i)->name, order[i]);
    assert_string_equal(s4d_safetensors_metadata(st, "loss"), "2.5");
    assert_null(s4d_safetensors_metadata(st, "no"));
    assert_null(s4d_safetensors_find(st, "no"));
    assert_null(s4d_safetensors_find(st, "__metadata__"));

    const struct s4d_safetensor *w = s4d_safetensors_find(st, "w");
    assert_string_equal(s4d_safetensor_shape(w, text, sizeof text), "[2, 3]");
    /* Columns 1 and 2 of both rows, three apart; then transposed; then the lower right alone. */
    struct s4d_safetensors_block b = {.rows = 2, .col = 1, .cols = 2, .stride = 2};
    assert_int_equal(s4d_safetensors_read(st, w, &b, S4D_DTYPE_F32, f, &err), 0);
    assert_true(f[0] == 2 && f[1] == 3 && f[2] == 5 && f[3] == -6);
    b.transposed = 1;
    assert_int_equal(s4d_safetensors_read(st, w, &b, S4D_DTYPE_F64, d, &err), 0);
    assert_true(d[0] == 2 && d[1] == 5 && d[2] == 3 && d[3] == -6);
    b = (struct s4d_safetensors_block){.row = 1, .rows = 1, .col = 2, .cols = 1};
    assert_int_equal(s4d_safetensors_read(st, w, &b, S4D_DTYPE_F32, f, &err), 0);
    assert_true(f[0] == -6);

    b = (struct s4d_safetensors_block){.rows = 1, .cols = 2};
    assert_int_equal(
        s4d_safetensors_read(st, s4d_safetensors_find(st, "brain"), &b, S4D_DTYPE_F32, f, &err), 0);
    assert_true(f[0] == 1.5f && isinf(f[1]) && f[1] < 0);
    assert_int_equal(
        s4d_safetensors_read(st, s4d_safetensors_find(st, "half"), &b, S4D_DTYPE_F64, d, &err), 0);
    assert_true(d[0] == 1.5 && d[1] == 0x1p-24);
    b.cols = 1;
    assert_int_equal(
        s4d_safetensors_read(st, s4d_safetensors_find(st, "one"), &b, S4D_DTYPE_F32, f, &err), 0);
    assert_true(f[0] == 1.5f);
    assert_int_equal(s4d_safetensors_bytes(st, w, 4, 2, f, &err), 0);
    assert_true(f[0] == 5 && f[1] == -6);
    b = (struct s4d_safetensors_block){0};
    assert_int_equal(
        s4d_safetensors_read(st, s4d_safetensors_find(st, "none"), &b, S4D_DTYPE_F32, f, &err), -1);
    assert_non_null(strstr(err.where, "none"));
    assert_non_null(strstr(err.text, "found I8"));
    s4d_safetensors_close(st);
}

#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_lies_about_tensors(void **state)
{
    (void)state;
    lie("{\"w\":" T("F31", "[4]", "[0,16]") "}", "w", "unknown dtype \"F31\"");
    lie("{\"w\":" T("F32", "[5]", "[0,16]") "}", "w", "shape [5] of F32 is 20 bytes");
    lie("{\"w\":" T("F32", "[3]", "[0,16]") "}", "w", "is 12 bytes, \"data_offsets\" are 16");
    lie("{\"w\":" T("F32", "[4]", "[0,20]") "}", "w", "16 bytes of tensors, found [0, 20]");
    lie("{\"w\":" T("F32", "[4]", "[-16,0]") "}", "w", "found [-16, 0]");
    lie("{\"w\":" T("F32", "[4]", "[16,0]") "}", "w", "found [16, 0]");
    lie("{\"w\":" T("F32", "[-4]", "[0,16]") "}", "w", "from 0");
    lie("{\"w\":" T("F32", "[4.0]", "[0,16]") "}", "w", "whole numbers");
    lie("{\"w\":" T("F32", "[4]", "[0,16.0]") "}", "w", "[begin, end]");
    lie("{\"w\":" T("F32", "[4]", "[0,16,16]") "}", "w", "[begin, end]");
    lie("{\"w\":" T("F32", "4", "[0,16]") "}", "w", "a list");
    lie("{\"w\":" T("F32", "[1,1,1,1,1,1,1,1,4]", "[0,16]") "}", "w", "at most 8");
    lie("{\"w\":" T("F32", "[4611686018427387904,8]", "[0,16]") "}", "w", "more elements");
    lie("{\"w\":" T("F32", "[4611686018427387904]", "[0,16]") "}", "w", "more bytes");
    lie("{\"w\":" T("F32", "[99999999999999999999]", "[0,16]") "}", "", "too big integer");
    lie("{\"w\":" T("F32", "[4]", "[0,9223372036854775807]") "}", "w", "found [0, 92233720368547");
    lie("{\"w\":{\"dtype\":\"F32\",\"shape\":[4]}}", "w", "expected {\"dtype\"");
    lie("{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"offsets\":[0,16]}}", "w", "\"data_offsets\"");
    lie("{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16],\"a\":1}}", "w",
        "nothing else");
    lie("{\"w\":[]}", "w", "expected {\"dtype\"");
    lie("{\"w\":{\"dtype\":7,\"shape\":[4],\"data_offsets\":[0,16]}}", "w", "a text");
    lie("{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[3]", "[4,16]") "}", "b",
        "overlaps a");
    lie("{\"a\":" T("I8", "[9]", "[0,9]") ",\"b\":" T("I8", "[8]", "[8,16]") "}", "b",
        "overlaps a");
    lie("{\"w\":" T("I8", "[17]", "[0,17]") "}", "w", "16 bytes of tensors, found [0, 17]");
    lie("{\"a\":" T("F32", "[4]", "[0,16]") ",\"b\":" T("F32", "[4]", "[0,16]") "}", "b",
        "overlaps a");
    lie("{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[2]", "[8,16]") "}", "b",
        "4 bytes before it");
    lie("{\"a\":" T("F32", "[3]", "[0,12]") "}", "", "4 bytes at the end");
    lie("{}", "", "16 bytes at the end");
    lie("{\"w\":" T("F32", "[2]", "[0,8]") ",\"w\":" T("F32", "[2]", "[8,16]") "}", "",
        "duplicate");
    lie("{\"__metadata__\":{\"a\":1},\"w\":" T("F32", "[4]", "[0,16]") "}", "__metadata__",
        "\"a\": expected a text");
    lie("{\"__metadata__\":[],\"w\":" T("F32", "[4]", "[0,16]") "}", "__metadata__", "a map");
}

static void test_lies_about_the_header(void **state)
{
    (void)state;
    static const char zero[16];
    lie("[]", "", "a map of tensors");
    lie("", "", "header, byte");
    lie("{\"w\":" T("F32", "[4]", "[0,16]") "} x", "", "header, byte");
    lie("{\"w\\u0000\":" T("F32", "[4]", "[0,16]") "}", "", "header, byte");
    lie("{\"w\xff\":" T("F32", "[4]", "[0,16]") "}", "", "header, byte");
    put_file("{}", 3, zero, 0);
    refused("", "the header's size is 3 bytes, the file has 2");
    put_file("{}", 100000001, zero, 0);
    refused("", "at most 100000000");
    put_file("{}", INT64_MAX, zero, 0);
    refused("", "is this a safetensors file?");
    for (int n = 0; n < 8; n++) {
        put_file("", 2, zero, 0);
        assert_int_equal(truncate(file, n), 0);
        refused("", "8 bytes");
    }
    /* All bits set: -1 as a signed size. */
    FILE *f = fopen(file, "wb");
    fwrite("\xff\xff\xff\xff\xff\xff\xff\xff{}", 1, 10, f);
    fclose(f);
    refused("", "found a size of 18446744073709551615");
    /* A million open brackets do not exhaust the stack. */
    char *deep = s4d_malloc(1000001);
    memset(deep, '[', 1000000);
    deep[1000000] = '\0';
    put_file(deep, -1, zero, 0);
    free(deep);
    refused("", "maximum parsing depth");
}

static void test_not_a_file(void **state)
{
    (void)state;
    struct s4d_safetensors *st;
    struct s4d_error err;
    unlink(file);
    refused("", "No such file");
    assert_int_equal(mkfifo(file, 0600), 0);
    refused("", "pipe");
    unlink(file);
    assert_int_equal(s4d_safetensors_open(folder, &st, &err), -1);
    assert_non_null(strstr(err.text, "a folder"));
    /* Cut short after it was opened. */
    float f;
    put_file(good, -1, good_bytes, sizeof good_bytes);
    st = open_good();
    assert_int_equal(truncate(file, 100), 0);
    assert_int_equal(s4d_safetensors_bytes(st, s4d_safetensors_get(st, 0), 0, 1, &f, &err), -1);
    assert_non_null(strstr(err.text, "shorter"));
    s4d_safetensors_close(st);
}

/* Two tensors of n floats that all are `value`, 64 KiB at a time. */
static int save(const char *to, int64_t n, float value, struct s4d_error *err)
{
    static const char *const metadata[] = {"step", "7", NULL};
    const struct s4d_safetensor tensors[] = {
        {.name = "b \"\xc3\xa9\"", .dtype = S4D_DTYPE_F32, .dims = 1, .shape = {n}},
        {.name = "a", .dtype = S4D_DTYPE_F32, .dims = 3, .shape = {1, n, 1}}};
    struct s4d_safetensors_writer *w;
    float buffer[16384];
    for (int i = 0; i < 16384; i++)
        buffer[i] = value;
    if (s4d_safetensors_create(to, tensors, 2, metadata, &w, err))
        return -1;
    for (int64_t i = 0; i < 2 * n; i += 16384)
        if (s4d_safetensors_write(
                w, buffer, (size_t)(2 * n - i < 16384 ? 2 * n - i : 16384) * sizeof(float), err)) {
            s4d_safetensors_abandon(w);
            return -1;
        }
    return s4d_safetensors_finish(w, err);
}

/* The file holds what save wrote, one value throughout, which is returned. */
static float check_saved(int64_t n)
{
    struct s4d_safetensors *st = open_good();
    struct s4d_error err;
    float *v = s4d_malloc((size_t)n * sizeof *v), first = 0;
    assert_int_equal(s4d_safetensors_count(st), 2);
    assert_string_equal(s4d_safetensors_get(st, 0)->name, "b \"\xc3\xa9\"");
    assert_int_equal(s4d_safetensors_get(st, 0)->begin % 8, 0);
    assert_int_equal(s4d_safetensors_find(st, "a")->shape[1], n);
    assert_string_equal(s4d_safetensors_metadata(st, "step"), "7");
    for (int t = 0; t < 2; t++) {
        assert_int_equal(s4d_safetensors_bytes(st, s4d_safetensors_get(st, t), 0, n, v, &err), 0);
        first = v[0];
        for (int64_t i = 0; i < n; i++)
            if (v[i] != first)
                fail_msg("tensor %d, element %" PRId64 ": %g, the first %g", t, i, v[i], first);
    }
    free(v);
    s4d_safetensors_close(st);
    return first;
}

static void test_round_trip(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 16384, 700001};
    struct s4d_error err;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(save(file, sizes[i], (float)i, &err), 0);
        assert_true(check_saved(sizes[i]) == (float)i);
        assert_int_equal(access(partial, F_OK), -1);
    }
}

/* A tensor of several reads (2 x 1500 x 700 numbers, 8.4 MB, element e is e): all of it, and a
 * block from its middle straight and transposed. */
static void test_large(void **state)
{
    (void)state;
    enum { ROWS = 3000, COLS = 700 };
    const struct s4d_safetensor t = {
        .name = "w", .dtype = S4D_DTYPE_F32, .dims = 3, .shape = {2, ROWS / 2, COLS}};
    const struct s4d_safetensors_block blocks[] = {
        {.rows = ROWS, .cols = COLS, .stride = COLS},
        {.rows = ROWS, .cols = COLS, .stride = ROWS, .transposed = 1},
        {.row = 7, .rows = 2990, .col = 3, .cols = 690, .stride = 690},
        {.row = 7, .rows = 2990, .col = 3, .cols = 690, .stride = 2990, .transposed = 1}};
    struct s4d_safetensors_writer *w;
    struct s4d_error err;
    float *v = s4d_malloc(ROWS * COLS * sizeof *v);
    for (int e = 0; e < ROWS * COLS; e++)
        v[e] = (float)e;
    assert_int_equal(s4d_safetensors_create(file, &t, 1, NULL, &w, &err), 0);
    assert_int_equal(s4d_safetensors_write(w, v, ROWS * COLS * sizeof *v, &err), 0);
    assert_int_equal(s4d_safetensors_finish(w, &err), 0);
    struct s4d_safetensors *st = open_good();
    for (int k = 0; k < 4; k++) {
        const struct s4d_safetensors_block *b = &blocks[k];
        memset(v, 0xff, ROWS * COLS * sizeof *v);
        assert_int_equal(
            s4d_safetensors_read(st, s4d_safetensors_get(st, 0), b, S4D_DTYPE_F32, v, &err), 0);
        for (int64_t i = 0; i < b->rows; i++)
            for (int64_t j = 0; j < b->cols; j++) {
                float found = v[b->transposed ? j * b->stride + i : i * b->stride + j];
                if (found != (float)((b->row + i) * COLS + b->col + j))
                    fail_msg("block %d, %d, %d: %g", k, (int)i, (int)j, found);
            }
    }
    s4d_safetensors_close(st);
    free(v);
}

static void test_cannot_write(void **state)
{
    (void)state;
    struct s4d_error err;
    struct s4d_safetensors_writer *w;
    assert_int_equal(save("/nowhere/w.safetensors", 1, 1, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    assert_non_null(strstr(err.text, "No such file or directory"));
    assert_int_equal(save(folder, 1, 1, &err), -1);
    assert_non_null(strstr(err.text, "a folder"));
    assert_int_equal(save("/dev/null", 1, 1, &err), -1);
    assert_non_null(strstr(err.text, "a device"));
    /* A second writer of the same file is refused, and does not disturb the first. */
    const struct s4d_safetensor one = {.name = "w", .dtype = S4D_DTYPE_U8, .dims = 0};
    assert_int_equal(s4d_safetensors_create(file, &one, 1, NULL, &w, &err), 0);
    assert_int_equal(save(file, 1, 1, &err), -1);
    assert_non_null(strstr(err.text, "another process is writing"));
    assert_int_equal(s4d_safetensors_write(w, "x", 1, &err), 0);
    assert_int_equal(s4d_safetensors_finish(w, &err), 0);
    s4d_safetensors_close(open_good());
}

/* No room on the disk, by a limit on the size of a file: said in the system's words, the old file
 * stays and nothing lies beside it. */
static void test_disk_full(void **state)
{
    (void)state;
    struct s4d_error err;
    assert_int_equal(save(file, 1000, 3, &err), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {3 << 20, 3 << 20};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        int rc = save(file, 1 << 20, 4, &err);
        _exit(rc == -1 && err.exit == S4D_EXIT_OUTPUT && strstr(err.text, "File too large") ? 0
                                                                                            : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(check_saved(1000) == 3);
    assert_int_equal(access(partial, F_OK), -1);
}

enum { KILL_N = 300000 };

static pid_t save_for_ever(void)
{
    struct s4d_error err;
    pid_t child = fork();
    if (child == 0)
        for (int k = 0;; k++)
            if (save(file, KILL_N, (float)k, &err))
                _exit(1);
    return child;
}

/* However slow the machine is: stops it until it stands in the midst of writing. */
static void stop_while_it_writes(pid_t child)
{
    int status;
    for (int us = 7;; us = us % 1000 + 7) {
        kill(child, SIGCONT);
        usleep((useconds_t)us);
        kill(child, SIGSTOP);
        assert_int_equal(waitpid(child, &status, WUNTRACED), child);
        assert_true(WIFSTOPPED(status));
        if (access(partial, F_OK) == 0)
            return;
    }
}

/* A process that saves again and again is killed at 50 different moments, and at ten while it
 * writes: what is there is always a whole file, and the next save works whatever was left beside.
 */
static void test_kill(void **state)
{
    (void)state;
    struct s4d_error err;
    assert_int_equal(save(file, KILL_N, -1, &err), 0);
    for (int i = 0; i < 60; i++) {
        if (i >= 50) /* what another left is not this one's */
            remove(partial);
        pid_t child = save_for_ever();
        if (i < 50)
            usleep((useconds_t)(300 * i));
        else
            stop_while_it_writes(child);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_true(i < 50 || access(partial, F_OK) == 0);
        assert_true(check_saved(KILL_N) >= -1);
    }
    assert_int_equal(save(file, KILL_N, 5, &err), 0);
    assert_true(check_saved(KILL_N) == 5);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/w.safetensors", folder);
    snprintf(partial, sizeof partial, "%s.partial", file);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(file);
    unlink(partial);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_lies_about_tensors),
        cmocka_unit_test(test_lies_about_the_header),
        cmocka_unit_test(test_not_a_file),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_cannot_write),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_kill),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
