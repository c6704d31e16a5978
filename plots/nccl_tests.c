/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/nccl_tests.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "support/memory.h"
#include "support/quote.h"

void s4d_nccl_tests_free(struct s4d_nccl_tests *t)
{
    free(t->row);
    *t = (struct s4d_nccl_tests){0};
}

int s4d_nccl_tests_add(struct s4d_nccl_tests *t, double bytes, double time_us, double algbw,
                       double busbw, const char *where, struct s4d_error *err)
{
    if (bytes == 0)
        return 0; /* smaller than an element of every rank: nccl-tests moved nothing */
    if (!(bytes >= 1 && bytes <= 1e15))
        return s4d_fail(err, S4D_EXIT_DATA, where, "size: expected bytes in [1, 1e15], got %g",
                        bytes);
    if (!(time_us > 0 && time_us <= 1e12))
        return s4d_fail(err, S4D_EXIT_DATA, where, "time: expected microseconds above 0, got %g",
                        time_us);
    struct s4d_nccl_tests_row row = {.bytes = bytes, .time_s = time_us * 1e-6};
    if (algbw >= 1 && busbw >= 1 && isfinite(busbw / algbw))
        row.bus_factor = busbw / algbw;
    s4d_push(t->row, t->n, t->cap, row);
    return 0;
}

void s4d_nccl_tests_program(struct s4d_nccl_tests *t, const char *program)
{
    static const char *const spelled[][2] = {{"alltoall", "all_to_all"}, {"sendrecv", "send_recv"}};
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    size_t n = strcspn(name, " \t\r\n");
    const char *perf = strstr(name, "_perf");
    if (perf != NULL && perf < name + n)
        n = (size_t)(perf - name);
    snprintf(t->op, sizeof t->op, "%.*s", (int)(n < sizeof t->op ? n : sizeof t->op - 1), name);
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++)
        if (strcmp(t->op, spelled[i][0]) == 0)
            snprintf(t->op, sizeof t->op, "%s", spelled[i][1]);
}

int s4d_nccl_tests_parse(struct s4d_nccl_tests *t, char *text, size_t n, const char *file,
                         struct s4d_error *err)
{
    *t = (struct s4d_nccl_tests){0};
    if (memchr(text, '\0', n) != NULL)
        return s4d_fail(err, S4D_EXIT_DATA, file, "expected text, found a zero byte");
    size_t blank = strspn(text, " \t\r\n");
    if (text[blank] == '\0')
        return s4d_fail(err, S4D_EXIT_DATA, file, "the file is empty");
    int rc = text[blank] == '{' ? s4d_nccl_tests_json(t, text, n, file, err)
                                : s4d_nccl_tests_table(t, text, file, err);
    if (rc == 0 && t->n == 0)
        return s4d_fail(err, S4D_EXIT_DATA, file, "no measurement in it");
    return rc;
}

int s4d_nccl_tests_read(struct s4d_nccl_tests *t, const char *file, struct s4d_error *err)
{
    char *text;
    size_t n;
    *t = (struct s4d_nccl_tests){0};
    if (s4d_file_read(file, &text, &n, err))
        return -1;
    int rc = s4d_nccl_tests_parse(t, text, n, file, err);
    free(text);
    return rc;
}

int s4d_nccl_tests_check(const struct s4d_nccl_tests *t, const char *file, const char *op,
                         int ranks, double bus_factor, struct s4d_error *err)
{
    if (t->op[0] != '\0' && strcmp(t->op, op) != 0)
        return s4d_fail(err, S4D_EXIT_DATA, file, "is of %s, expected %s", s4d_quote(t->op).text,
                        op);
    if (t->ranks != 0 && t->ranks != ranks)
        return s4d_fail(err, S4D_EXIT_DATA, file, "is of %d ranks, expected %d", t->ranks, ranks);
    for (int i = 0; i < t->n; i++) {
        double factor = t->row[i].bus_factor;
        /* Two digits behind the point of two numbers above 1. */
        if (factor > 0 && fabs(factor / bus_factor - 1) > 0.02) {
            s4d_fail(err, S4D_EXIT_DATA, file,
                     "bus over algorithm bandwidth is %.3g at %.0f B, expected %.3g of %s on %d "
                     "ranks",
                     factor, t->row[i].bytes, bus_factor, op, ranks);
            return s4d_hint(err, "it is of another operation, or of another number of ranks");
        }
    }
    return 0;
}
