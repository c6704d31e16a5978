/* SPDX-License-Identifier: Apache-2.0 */
/* Errors for people, and the exit codes of both programs.
 *
 * A function that can fail returns 0, or -1 with *err filled. The text names where (file:line, or
 * the option), what was expected and what was found; the hint says what to do. Only main() prints
 * and exits. Our own bugs are asserts (S4D_ASSERT), never error returns. */
#ifndef S4D_SUPPORT_ERROR_H
#define S4D_SUPPORT_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

enum s4d_exit {
    S4D_EXIT_OK = 0,
    S4D_EXIT_CHECK = 1,   /* a check the user asked for failed */
    S4D_EXIT_USAGE = 64,  /* the command line */
    S4D_EXIT_DATA = 65,   /* a file's or an option's contents */
    S4D_EXIT_DEVICE = 69, /* a device, a library or a peer failed */
    S4D_EXIT_BUG = 70,    /* ours */
    S4D_EXIT_OUTPUT = 74, /* an output that cannot be written */
    S4D_EXIT_TIMEOUT = 75,
};

struct s4d_error {
    enum s4d_exit exit;
    char where[512]; /* "gpt.yaml:7: hidden_size", "--grid", or "" */
    char text[1024];
    char hint[1024];
};

/* Fills *err (err may be NULL: then nothing is kept) and returns -1, so that `return s4d_fail(...)`
 * reads well. */
int s4d_fail(struct s4d_error *err, enum s4d_exit exit, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds the hint to an error already filled; returns -1. */
int s4d_hint(struct s4d_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "scale4d: WHERE: TEXT\n  hint: HINT\n" on standard error and returns err->exit. What a
 * terminal would obey in them is '?': texts quote names and files. */
int s4d_error_print(const struct s4d_error *err);

/* A line on standard error that starts with "warning: ". */
void s4d_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An invariant of ours: prints file:line and the text, and exits with S4D_EXIT_BUG, in every build.
 */
#define S4D_ASSERT(condition, ...)                                                                 \
    ((condition) ? (void)0 : s4d_bug(__FILE__, __LINE__, #condition, __VA_ARGS__))

void s4d_bug(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

#ifdef __cplusplus
}
#endif

#endif
