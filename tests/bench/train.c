/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of training on this machine. What is compared runs in turns, so that a change of the
 * machine's load meets all alike, and medians over all turns are compared. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/memory.h"
#include "tests/bench/bench.h"

enum { ROUNDS_ALONE = 2, ROUNDS = 3, SAMPLES = 64 };

struct samples {
    double value[SAMPLES];
    int n;
};

static void add(struct samples *s, double value)
{
    if (isfinite(value) && s->n < SAMPLES)
        s->value[s->n++] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* NaN of nothing. */
static double median(struct samples *s)
{
    if (s->n == 0)
        return NAN;
    qsort(s->value, (size_t)s->n, sizeof *s->value, by_value);
    return (s->value[(s->n - 1) / 2] + s->value[s->n / 2]) / 2;
}

static void add_all(struct samples *s, const json_t *record)
{
    const json_t *list = json_object_get(record, "samples_s");
    for (size_t i = 0; i < json_array_size(list); i++)
        add(s, json_number_value(json_array_get(list, i)));
}

struct side {
    struct samples iteration_s, cpu_s; /* of an iteration */
};

#define ALONE                                                                                      \
    "build/scale4d-run train --workload tests/bench/gpt-12x512.yaml --grid 1x1x1x1 "               \
    "--global-batch 4 --micro-batch 4 --precision f32 --recompute none --threads 1 --json "
#define TORCH "/usr/bin/python3 tests/bench/train_torch.py 12 512 8 512 32000 4 2 1"
enum { TOKENS = 4 * 512 };

/* Processor time of an iteration: that of three, less that of the start and end. */
static void alone(struct side *ours, struct samples *gemm, struct samples *issue)
{
    struct bench_run empty = bench(ALONE "--iterations 0");
    struct bench_run r = bench(ALONE "--iterations 3 --warmup 1");
    if (empty.record && r.record) {
        add_all(&ours->iteration_s, r.record);
        add(&ours->cpu_s, (r.cpu_s - empty.cpu_s) / 3);
        add(gemm, bench_number(r.record, "gemm_share"));
        add(issue, bench_number(r.record, "issue_share"));
    }
    json_decref(empty.record);
    json_decref(r.record);
}

static void torch(struct side *theirs)
{
    struct bench_run r = bench(TORCH);
    add(&theirs->iteration_s, TOKENS / bench_number(r.record, "tokens_per_s"));
    add(&theirs->cpu_s, bench_number(r.record, "cpu_s"));
    json_decref(r.record);
}

static void one_rank(void)
{
    struct side ours = {0}, theirs = {0};
    struct samples gemm = {0}, issue = {0};
    bool installed = system("/usr/bin/python3 -c 'import torch' 2> /dev/null") == 0;
    for (int i = 0; i < ROUNDS_ALONE; i++) {
        alone(&ours, &gemm, &issue);
        if (installed)
            torch(&theirs);
    }
    double own_s = median(&ours.iteration_s), torch_s = median(&theirs.iteration_s);
    double own_cpu_s = median(&ours.cpu_s), torch_cpu_s = median(&theirs.cpu_s);
    printf("One rank, one thread: GPT of 12 layers, hidden size 512, sequence 512, batch 4, f32\n"
           "  tokens a second           %8.1f         median of %d iterations\n",
           TOKENS / own_s, ours.iteration_s.n);
    if (installed)
        printf("  PyTorch, eager, in turns  %8.1f         ratio %.2f (aim: at least 1.0)\n"
               "  processor time            %8.2f s       PyTorch's %.2f s: ratio %.2f\n",
               TOKENS / torch_s, torch_s / own_s, own_cpu_s, torch_cpu_s, torch_cpu_s / own_cpu_s);
    else
        printf("  PyTorch                   not compared: no python3-torch here\n");
    printf("  matrix products           %8.1f %%       of a step (aim: at least 80 %%)\n"
           "  the executor's own        %8.3f %%       of a step, neither kernel nor waiting (aim: "
           "under 1 %%)\n\n",
           100 * median(&gemm), 100 * median(&issue));
}

static const struct {
    const char *overlap, *progress;
} ways[] = {{"none", "none"}, {"all", "auto"}, {"all", "panels"}, {"all", "thread"}};
enum { WAYS = sizeof ways / sizeof *ways };

static void measure_way(const char *grid, int way, struct samples *iteration_s)
{
    char *command = s4d_asprintf(
        "${MPIRUN:-mpirun} -n 4 build/scale4d-run train --workload tests/bench/gpt-4x512.yaml "
        "--grid %s --global-batch 4 --micro-batch 1 --precision f32 --iterations 4 --warmup 1 "
        "--overlap %s --progress %s --json",
        grid, ways[way].overlap, ways[way].progress);
    struct bench_run r = bench(command);
    add_all(iteration_s, r.record);
    json_decref(r.record);
    free(command);
}

static void four_ranks(const char *grid)
{
    struct samples iteration_s[WAYS] = {{{0}, 0}};
    for (int i = 0; i < ROUNDS; i++)
        for (int way = 0; way < WAYS; way++)
            measure_way(grid, way, &iteration_s[way]);
    printf("Four ranks, grid %s: GPT of 4 layers, hidden size 512, sequence 256, batch 4\n"
           "  overlap  progress    median   fastest  (s)   over none's\n",
           grid);
    for (int way = 0; way < WAYS; way++) {
        double s = median(&iteration_s[way]);
        printf("  %-8s %-8s  %8.3f  %8.3f       %6.3f\n", ways[way].overlap, ways[way].progress, s,
               iteration_s[way].n > 0 ? iteration_s[way].value[0] : NAN,
               s / median(&iteration_s[0]));
    }
    printf("  auto: none where ranks share processors, else thread; aim: not slower than no "
           "overlap\n\n");
}

void bench_training(void)
{
    if (access("build/scale4d-run", X_OK) != 0) {
        printf("Training: build/scale4d-run is not built here (make deps-run)\n");
        return;
    }
    /* Open MPI's words for: more ranks than cores, and as any user. */
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    one_rank();
    four_ranks("2x1x2x1");
    four_ranks("1x2x1x2");
}
