/* SPDX-License-Identifier: Apache-2.0 */
/* One line on the terminal, redrawn in place. */
#include "support/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static bool drawn;
static double drawn_at_s;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_shown(void)
{
    const char *ci = getenv("CI");
    return isatty(STDERR_FILENO) && !(ci && *ci);
}

void s4d_progress(const char *what, int done, int of)
{
    double t_s = now_s();
    if (!is_shown() || (drawn && t_s - drawn_at_s < 0.1))
        return;
    fprintf(stderr, "\r\033[K%s %d/%d", what, done, of);
    fflush(stderr);
    drawn = true;
    drawn_at_s = t_s;
}

void s4d_progress_end(void)
{
    if (drawn)
        fputs("\r\033[K", stderr);
    drawn = false;
}
