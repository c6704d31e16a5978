/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts: filled where the fault is found, printed once by main(). */
#include "support/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/quote.h"

int s4d_fail(struct s4d_error *err, enum s4d_exit exit, const char *where, const char *format, ...)
{
    if (!err)
        return -1;
    err->exit = exit;
    err->hint[0] = '\0';
    snprintf(err->where, sizeof err->where, "%s", where ? where : "");
    va_list ap;
    va_start(ap, format);
    vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    return -1;
}

int s4d_hint(struct s4d_error *err, const char *format, ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, format);
    vsnprintf(err->hint, sizeof err->hint, format, ap);
    va_end(ap);
    return -1;
}

int s4d_error_print(const struct s4d_error *err)
{
    fputs("scale4d: ", stderr);
    s4d_print_line(err->where, stderr);
    fputs(err->where[0] ? ": " : "", stderr);
    s4d_print_lines(err->text, stderr);
    fputs(err->hint[0] ? "\n  hint: " : "", stderr);
    s4d_print_lines(err->hint, stderr);
    fputc('\n', stderr);
    return err->exit;
}

void s4d_warn(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("warning: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
}

void s4d_bug(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fprintf(stderr, "scale4d: bug at %s:%d: %s: ", file, line, condition);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(S4D_EXIT_BUG);
}
