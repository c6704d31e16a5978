/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/accuracy_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/accuracy.h"
#include "sim/kernel.h"
#include "support/csv.h"
#include "support/memory.h"
#include "support/units.h"

/* A measured rate: where it belongs, and the op that was measured. */
struct point {
    char *machine, *series, *label, *note;
    struct s4d_op op;
    double flops, measured; /* measured: FLOP/s */
};
struct points {
    struct point *v;
    int n, cap;
};

static void points_free(struct points *points)
{
    for (int i = 0; i < points->n; i++) {
        free(points->v[i].machine);
        free(points->v[i].series);
        free(points->v[i].label);
        free(points->v[i].note);
    }
    free(points->v);
}

static int whole(const char *text, const char *name, const char *where, int64_t *value,
                 struct s4d_error *err)
{
    struct s4d_error why;
    if (s4d_parse_int(text, 1, 1 << 24, value, &why))
        return s4d_fail(err, S4D_EXIT_DATA, where, "%s: %s", name, why.text);
    return 0;
}

static int tflops(const char *text, const char *where, double *value, struct s4d_error *err)
{
    struct s4d_error why;
    if (s4d_parse_number(text, 0, 1e6, value, &why) || *value <= 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "TFLOPs: expected a number above 0, got '%s'",
                        text);
    *value *= 1e12;
    return 0;
}

static const char gemm_header[] = "machine,m,n,k,TFLOPs,note,source";

static int gemm_row(void *context, char *const field[], const char *where, struct s4d_error *err)
{
    struct points *points = context;
    struct point p = {.op.kind = S4D_OP_GEMM};
    int64_t m, n, k;
    if (whole(field[1], "m", where, &m, err) || whole(field[2], "n", where, &n, err) ||
        whole(field[3], "k", where, &k, err) || tflops(field[4], where, &p.measured, err))
        return -1;
    p.op.c.gemm.m = m;
    p.op.c.gemm.n = n;
    p.op.c.gemm.k = k;
    p.op.bytes_read = 2 * (m * k + k * n);
    p.op.bytes_written = 2 * m * n;
    p.flops = 2.0 * (double)m * (double)n * (double)k;
    p.machine = s4d_strdup(field[0]);
    p.series = s4d_asprintf("%s: GEMM", field[0]);
    p.label = s4d_asprintf("%s x %s x %s", field[1], field[2], field[3]);
    p.note = s4d_strdup(field[5]);
    s4d_push(points->v, points->n, points->cap, p);
    return 0;
}

static const char attention_header[] =
    "machine,library,pass,head_dim,causal,seq_length,TFLOPs,note,source";

/* 16,384 tokens and a hidden size of 2,048, as FlashAttention's own benchmark: the FLOPs, and with
 * them how much the launch matters, are its. */
static int attention_row(void *context, char *const field[], const char *where,
                         struct s4d_error *err)
{
    struct points *points = context;
    struct point p = {.op.kind = S4D_OP_ATTENTION_FORWARD};
    int64_t head_dim, seq;
    bool causal = strcmp(field[4], "yes") == 0, both = strcmp(field[2], "both") == 0;
    if (!causal && strcmp(field[4], "no") != 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "causal: expected yes or no, got '%s'",
                        field[4]);
    if (!both && strcmp(field[2], "forward") != 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "pass: expected forward or both, got '%s'",
                        field[2]);
    if (whole(field[3], "head_dim", where, &head_dim, err) ||
        whole(field[5], "seq_length", where, &seq, err) ||
        tflops(field[6], where, &p.measured, err))
        return -1;
    p.op.c.attention.head_dim = head_dim;
    p.op.c.attention.heads = 2048 / head_dim;
    p.op.c.attention.seq = seq;
    p.op.c.attention.batch = 16384 / seq;
    p.op.c.attention.causal = causal;
    p.flops = 4.0 * 16384.0 * (double)seq * 2048.0 * (causal ? 0.5 : 1) * (both ? 3.5 : 1);
    p.machine = s4d_strdup(field[0]);
    p.series = s4d_asprintf("%s: %s, %s, head %s, %s", field[0], field[1],
                            both ? "both passes" : "forward", field[3], causal ? "causal" : "full");
    p.label = s4d_asprintf("sequence %s", field[5]);
    p.note = s4d_strdup(field[7]);
    s4d_push(points->v, points->n, points->cap, p);
    return 0;
}

static int series_end(const struct points *points, int from)
{
    int to = from;
    while (to < points->n && strcmp(points->v[to].series, points->v[from].series) == 0)
        to++;
    return to;
}

static double simulated(const struct s4d_machine *m, const struct point *p)
{
    struct s4d_tensor output = {.type = S4D_BF16, .dims = 1, .shape = {1}, .stride = {1}};
    struct s4d_program program = {
        .grid = s4d_grid_make(1, 1, 1, 1), .tensors = &output, .n_tensors = 1};
    struct s4d_kernels k = {m};
    struct s4d_op op = p->op;
    double time_s = s4d_kernel_time_s(&k, &program, &op);
    if (op.kind == S4D_OP_ATTENTION_FORWARD && strstr(p->series, "both passes")) {
        op.kind = S4D_OP_ATTENTION_BACKWARD;
        time_s += s4d_kernel_time_s(&k, &program, &op);
    }
    return p->flops / time_s;
}

static struct s4d_gemm_point gemm_point(const struct point *p)
{
    return (struct s4d_gemm_point){(double)p->op.c.gemm.m, (double)p->op.c.gemm.n,
                                   (double)p->op.c.gemm.k, p->flops / p->measured};
}

/* The model's three terms fitted on the shapes of the other half: those of even number for odd
 * ones. */
static double gemm_held_out(const struct point *series, int n, int at)
{
    struct s4d_gemm_point *half = s4d_calloc((size_t)n, sizeof *half);
    struct s4d_gemm_fit fit;
    int used = 0;
    for (int i = 0; i < n; i++)
        if (i % 2 != at % 2)
            half[used++] = gemm_point(&series[i]);
    double rate = NAN;
    struct s4d_gemm_point p = gemm_point(&series[at]);
    if (used >= 3 && s4d_gemm_fit(half, used, &fit) == 0)
        rate = series[at].flops / s4d_gemm_fit_s(&fit, &p);
    free(half);
    return rate;
}

/* Between its two neighbours, in log2 of the sequence length, as the model interpolates; the ends
 * have none. */
static double attention_held_out(const struct point *series, int n, int at)
{
    if (at == 0 || at == n - 1)
        return NAN;
    double x[2] = {(double)series[at - 1].op.c.attention.seq,
                   (double)series[at + 1].op.c.attention.seq};
    double y[2] = {series[at - 1].measured, series[at + 1].measured};
    struct s4d_curve curve = {.x = x, .y = y, .n = 2};
    return s4d_curve_value(&curve, (double)series[at].op.c.attention.seq);
}

static int read_points(const char *folder, const char *name, const char *header, s4d_csv_row row,
                       struct points *points, struct s4d_error *err)
{
    char *file = s4d_asprintf("%s/%s", folder, name);
    int rc = s4d_csv_read(file, header, row, points, err);
    free(file);
    return rc;
}

static int simulate(struct points *points,
                    double (*held_out)(const struct point *series, int n, int at),
                    struct s4d_accuracy_kernels *list, struct s4d_error *err)
{
    for (int next, i = 0; i < points->n; i = next) {
        struct s4d_machine machine;
        next = series_end(points, i);
        if (s4d_machine_load(&machine, points->v[i].machine, NULL, 0, err))
            return -1;
        for (int j = i; j < next; j++) {
            const struct point *p = &points->v[j];
            struct s4d_accuracy_kernel k = {.series = s4d_strdup(p->series),
                                            .label = s4d_strdup(p->label),
                                            .note = s4d_strdup(p->note),
                                            .measured = p->measured,
                                            .simulated = simulated(&machine, p),
                                            .held_out = held_out(points->v + i, next - i, j - i)};
            s4d_push(list->v, list->n, list->cap, k);
        }
        s4d_machine_free(&machine);
    }
    return 0;
}

int s4d_accuracy_gemms(const char *folder, struct s4d_accuracy_kernels *list, struct s4d_error *err)
{
    struct points points = {0};
    int rc = read_points(folder, "gemm.csv", gemm_header, gemm_row, &points, err) ||
             simulate(&points, gemm_held_out, list, err);
    points_free(&points);
    return rc ? -1 : 0;
}

int s4d_accuracy_attention(const char *folder, struct s4d_accuracy_kernels *list,
                           struct s4d_error *err)
{
    struct points points = {0};
    int rc = read_points(folder, "attention.csv", attention_header, attention_row, &points, err) ||
             simulate(&points, attention_held_out, list, err);
    points_free(&points);
    return rc ? -1 : 0;
}
