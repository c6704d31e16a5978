/* SPDX-License-Identifier: Apache-2.0 */
/* Text files line by line: ends of lines, long lines, zero bytes, what is no file. */
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

#include "support/lines.h"
#include "support/memory.h"

static char file[] = "/tmp/scale4d-lines-XXXXXX";

static void holds(const char *bytes, size_t n)
{
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void open_it(struct s4d_lines *lines, size_t most)
{
    struct s4d_error err;
    assert_int_equal(s4d_lines_open(lines, file, most, &err), 0);
    assert_int_equal(lines->number, 0);
}

static void next_is(struct s4d_lines *lines, const char *text, bool ended)
{
    struct s4d_error err;
    char where[100];
    long number = lines->number + 1;
    assert_int_equal(s4d_lines_next(lines, &err), 1);
    assert_string_equal(lines->line, text);
    assert_int_equal(lines->n, strlen(text));
    assert_int_equal(lines->ended, ended);
    assert_int_equal(lines->number, number);
    snprintf(where, sizeof where, "%s:%ld", file, number);
    assert_string_equal(lines->where, where);
}

static void then_ends(struct s4d_lines *lines)
{
    struct s4d_error err;
    long number = lines->number;
    for (int i = 0; i < 2; i++)
        assert_int_equal(s4d_lines_next(lines, &err), 0);
    assert_int_equal(lines->number, number);
    assert_false(lines->broken);
    s4d_lines_close(lines);
}

static void test_ends(void **state)
{
    static const char text[] = "one\n\ntwo\r\n\r\na\rb\nlast\r";
    struct s4d_lines lines;
    (void)state;
    holds(text, sizeof text - 1);
    open_it(&lines, 100);
    next_is(&lines, "one", true);
    next_is(&lines, "", true);
    next_is(&lines, "two", true);
    next_is(&lines, "", true);
    next_is(&lines, "a\rb", true); /* is no end of a line alone */
    next_is(&lines, "last\r", false);
    then_ends(&lines);
    holds("whole\n", 6);
    open_it(&lines, 100);
    next_is(&lines, "whole", true);
    then_ends(&lines);
    holds("", 0);
    open_it(&lines, 100);
    then_ends(&lines);
}

static void fails(struct s4d_lines *lines, const char *text, int line)
{
    struct s4d_error err;
    char where[100];
    assert_int_equal(s4d_lines_next(lines, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, text));
    snprintf(where, sizeof where, "%s:%d", file, line);
    assert_string_equal(err.where, where);
}

static void test_zero_byte(void **state)
{
    static const char text[] = "one\nt\0wo\nthree\n\0\0";
    struct s4d_lines lines;
    (void)state;
    holds(text, sizeof text - 1);
    open_it(&lines, 100);
    next_is(&lines, "one", true);
    fails(&lines, "zero byte", 2);
    assert_false(lines.broken);
    assert_int_equal(lines.n, 4); /* it is there */
    assert_memory_equal(lines.line, "t\0wo", 5);
    next_is(&lines, "three", true);
    fails(&lines, "zero byte", 4); /* what a crash of the system leaves at the end of a file */
    assert_false(lines.ended);
    then_ends(&lines);
}

/* The longest line has `most` bytes, its end not among them; nothing is taken for the line behind
 * a longer one. A line of 1 MB needs no more than it has. */
static void test_long(void **state)
{
    struct s4d_lines lines;
    (void)state;
    holds("12345\n123456\nx\n", 15);
    open_it(&lines, 5);
    next_is(&lines, "12345", true);
    fails(&lines, "found a longer one", 2);
    assert_true(lines.broken);
    assert_string_equal(lines.line, "");
    s4d_lines_close(&lines);
    const size_t n = 1000000;
    char *text = s4d_malloc(n + 1);
    memset(text, 'a', n);
    text[n] = '\0';
    holds(text, n);
    open_it(&lines, n);
    next_is(&lines, text, false);
    then_ends(&lines);
    free(text);
}

static void test_no_file(void **state)
{
    struct s4d_lines lines;
    struct s4d_error err;
    (void)state;
    assert_int_equal(s4d_lines_open(&lines, "/tmp", 100, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, "/tmp");
    assert_non_null(strstr(err.text, "found a folder"));
    s4d_lines_close(&lines);
    char *none = s4d_asprintf("%s/none", file);
    assert_int_equal(s4d_lines_open(&lines, none, 100, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "cannot be read"));
    s4d_lines_close(&lines);
    free(none);
    assert_int_equal(s4d_lines_open(&lines, "/proc/self/mem", 100, &err), 0); /* is not readable */
    assert_int_equal(s4d_lines_next(&lines, &err), -1);
    assert_string_equal(err.where, "/proc/self/mem:1");
    assert_non_null(strstr(err.text, "cannot be read"));
    assert_true(lines.broken);
    s4d_lines_close(&lines);
}

static void test_standard_input(void **state)
{
    struct s4d_lines lines;
    struct s4d_error err;
    (void)state;
    holds("a\nb", 3);
    assert_non_null(freopen(file, "r", stdin));
    assert_int_equal(s4d_lines_open(&lines, "-", 100, &err), 0);
    assert_string_equal(lines.name, "standard input");
    assert_int_equal(s4d_lines_next(&lines, &err), 1);
    assert_int_equal(s4d_lines_next(&lines, &err), 1);
    assert_string_equal(lines.line, "b");
    assert_string_equal(lines.where, "standard input:2");
    s4d_lines_close(&lines);
    assert_int_equal(getchar(), EOF); /* still open */
    assert_true(feof(stdin));
}

static int setup(void **state)
{
    (void)state;
    int fd = mkstemp(file);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),           cmocka_unit_test(test_zero_byte),
        cmocka_unit_test(test_long),           cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_standard_input),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
