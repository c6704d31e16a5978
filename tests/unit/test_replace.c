/* SPDX-License-Identifier: Apache-2.0 */
/* Files written beside and renamed: links, permissions, what is no file, what another process
 * writes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/file.h"
#include "support/replace.h"

static char folder[] = "/tmp/scale4d-replace-XXXXXX";

static int replace(const char *file, const char *text, int rc, struct s4d_error *err)
{
    struct s4d_replacement r;
    if (s4d_replace_open(&r, file, err))
        return -1;
    fputs(text, r.out);
    return s4d_replace_close(&r, rc, err);
}

static void expect_text(const char *file, const char *text)
{
    struct s4d_error err;
    char *found;
    size_t n;
    assert_int_equal(s4d_file_read(file, &found, &n, &err), 0);
    assert_string_equal(found, text);
    free(found);
}

static bool is_link(const char *file)
{
    struct stat st;
    return lstat(file, &st) == 0 && S_ISLNK(st.st_mode);
}

/* a -> deep/b -> c, in deep: c is replaced, and made where it is not there; a and b stay links. */
static void test_links(void **state)
{
    (void)state;
    struct s4d_error err;
    assert_int_equal(mkdir("deep", 0777), 0);
    assert_int_equal(symlink("deep/b", "a"), 0);
    assert_int_equal(symlink("c", "deep/b"), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(s4d_file_writable("a", &err), 0);
        assert_int_equal(replace("a", i ? "second" : "first", 0, &err), 0);
        assert_true(is_link("a") && is_link("deep/b") && !is_link("deep/c"));
        expect_text("deep/c", i ? "second" : "first");
    }
    assert_int_equal(access("deep/c.partial", F_OK), -1);
    assert_int_equal(access("a.partial", F_OK), -1);
}

static void test_outputs_of_one_target(void **state)
{
    (void)state;
    assert_int_equal(symlink("not-yet", "one"), 0);
    assert_int_equal(symlink("./not-yet", "two"), 0);
    assert_true(s4d_file_same("one", "not-yet"));
    assert_true(s4d_file_same("one", "two"));
    assert_false(s4d_file_same("one", "a"));
}

static void test_circle(void **state)
{
    (void)state;
    struct s4d_error err;
    assert_int_equal(symlink("tail", "head"), 0);
    assert_int_equal(symlink("head", "tail"), 0);
    assert_int_equal(s4d_file_writable("head", &err), -1);
    assert_int_equal(replace("head", "", 0, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    assert_string_equal(err.where, "head");
}

static void test_permissions_stay(void **state)
{
    (void)state;
    struct s4d_error err;
    struct stat st;
    assert_int_equal(replace("kept", "1", 0, &err), 0);
    assert_int_equal(chmod("kept", 0640), 0);
    assert_int_equal(replace("kept", "2", 0, &err), 0);
    assert_int_equal(stat("kept", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void test_failure_leaves_the_old(void **state)
{
    (void)state;
    struct s4d_error err;
    assert_int_equal(replace("old", "old", 0, &err), 0);
    assert_int_equal(replace("old", "half", -1, &err), -1);
    expect_text("old", "old");
    assert_int_equal(access("old.partial", F_OK), -1);
}

/* Not renamed over: it would no longer be a device, or a pipe. */
static void test_device(void **state)
{
    (void)state;
    struct s4d_error err;
    struct stat st;
    assert_int_equal(s4d_file_writable("/dev/null", &err), 0);
    assert_int_equal(replace("/dev/null", "lost", 0, &err), 0);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(replace("/dev/full", "lost", 0, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    assert_int_equal(replace(".", "", 0, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
}

/* As a shell gives >(...) and 3>file: written where the descriptor stands, not from the start, nor
 * over it. */
static void test_descriptors(void **state)
{
    (void)state;
    struct s4d_error err;
    char name[2][64], text[8] = "";
    int ends[2], fd = open("shared", O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    snprintf(name[0], sizeof name[0], "/dev/fd/%d", fd);
    snprintf(name[1], sizeof name[1], "/proc/self/fd/%d", fd);
    assert_int_equal(symlink(name[0], "to-descriptor"), 0);
    const char *const names[] = {name[0], name[1], "to-descriptor"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(write(fd, "<", 1), 1);
        assert_int_equal(s4d_file_writable(names[i], &err), 0);
        assert_int_equal(replace(names[i], "text", 0, &err), 0);
        int end = s4d_open_at_end(names[i]);
        assert_int_equal(write(end, ">", 1), 1);
        close(end);
    }
    expect_text("shared", "<text><text><text>");
    close(fd);
    assert_int_equal(replace(names[0], "text", 0, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);

    assert_int_equal(pipe(ends), 0);
    snprintf(name[0], sizeof name[0], "/dev/fd/%d", ends[1]);
    assert_int_equal(s4d_file_writable(name[0], &err), 0);
    assert_int_equal(replace(name[0], "piped", 0, &err), 0);
    assert_int_equal(read(ends[0], text, sizeof text - 1), 5);
    assert_string_equal(text, "piped");
    close(ends[0]);
    close(ends[1]);
}

static void test_at_end(void **state)
{
    (void)state;
    assert_int_equal(symlink("lines", "to-lines"), 0);
    for (int i = 0; i < 2; i++) {
        int fd = s4d_open_at_end("to-lines");
        assert_int_equal(write(fd, "line\n", 5), 5);
        close(fd);
    }
    expect_text("lines", "line\nline\n");
    assert_true(is_link("to-lines"));
    assert_int_equal(s4d_open_at_end("."), -1);
    assert_int_equal(errno, EISDIR);
}

/* What a process left goes; what one is writing stays its own. */
static void test_partial(void **state)
{
    (void)state;
    struct s4d_error err;
    FILE *left = fopen("busy.partial", "w");
    assert_non_null(left);
    fputs("what was left is longer", left);
    fclose(left);
    assert_int_equal(replace("busy", "new", 0, &err), 0);
    expect_text("busy", "new");
    left = fopen("busy.partial", "w");
    assert_non_null(left);
    assert_int_equal(flock(fileno(left), LOCK_EX), 0);
    assert_int_equal(replace("busy", "newer", 0, &err), -1);
    assert_non_null(strstr(err.text, "another process"));
    assert_int_equal(access("busy.partial", F_OK), 0);
    expect_text("busy", "new");
    fclose(left);
}

static int enter(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}
static int leave(void **state)
{
    (void)state;
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_outputs_of_one_target),
        cmocka_unit_test(test_circle),
        cmocka_unit_test(test_permissions_stay),
        cmocka_unit_test(test_failure_leaves_the_old),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_at_end),
        cmocka_unit_test(test_partial),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
