/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: drawn on a terminal, erased at the end; not drawn elsewhere. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/progress.h"

/* Draws with standard error at fd; gives standard error back. */
static void draw_to(int fd)
{
    int saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    s4d_progress("simulating", 3, 10);
    s4d_progress("simulating", 4, 10); /* within 0.1 s: not drawn */
    s4d_progress_end();
    s4d_progress_end(); /* nothing left to erase */
    dup2(saved, STDERR_FILENO);
    close(saved);
}

/* What arrives at a terminal. */
static void draw_on_terminal(char *text, size_t size)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal) + unlockpt(terminal), 0);
    int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(end >= 0);
    draw_to(end);
    close(end); /* so that reading ends (EIO) behind what was written */
    size_t n = 0;
    for (ssize_t got; n < size - 1 && (got = read(terminal, text + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    close(terminal);
}

static void on_a_terminal(void **state)
{
    (void)state;
    char text[128];
    unsetenv("CI");
    draw_on_terminal(text, sizeof text);
    assert_string_equal(text, "\r\033[Ksimulating 3/10\r\033[K");
}

static void not_in_ci(void **state)
{
    (void)state;
    char text[128];
    setenv("CI", "true", 1);
    draw_on_terminal(text, sizeof text);
    assert_string_equal(text, "");
    unsetenv("CI");
}

static void not_in_a_pipe(void **state)
{
    (void)state;
    int ends[2];
    char text[8];
    assert_int_equal(pipe(ends), 0);
    draw_to(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], text, sizeof text), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a_terminal),
        cmocka_unit_test(not_in_ci),
        cmocka_unit_test(not_in_a_pipe),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
