/* SPDX-License-Identifier: Apache-2.0 */
/* A store of 1,000,000 records: 400 series of 500 nights, five repeats a night, and one night more.
 * The records are those of scale4d-run train --backend cuda, 2.2 kB each, with every measured
 * number another one in each (1 % a sample, 0.3 % a night), and commits and job numbers that
 * change. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plots/track/store.h"
#include "support/memory.h"
#include "support/random.h"
#include "support/record.h"
#include "tests/bench/bench.h"

enum { SERIES = 400, NIGHTS = 500, REPEATS = 5, SAMPLES = 5, FIRST_DAY = 19723 /* 2024-01-01 */ };
enum { SEED = 7 };

/* A random number by its place: the key of a record, and which of its numbers. */
struct noise {
    uint64_t key, index;
};

static double around(struct noise *n, double level, double part)
{
    return level * (1 + part * s4d_normal_at(n->key, n->index++));
}

static void add_measured(json_t *record, double time_s, double flops, struct noise *n)
{
    static const char *const parts[] = {"compute", "x", "y", "z", "data", "other"};
    static const char *const streams[] = {"x", "y", "z-gather", "z-scatter", "data", "z-data"};
    json_t *samples = json_array(), *exposed = json_object(), *busy = json_object(),
           *busbw = json_object();
    double median_s = time_s;
    for (int i = 0; i < SAMPLES; i++) {
        double sample_s = around(n, time_s, 0.01);
        median_s = i == SAMPLES / 2 ? sample_s : median_s;
        json_array_append_new(samples, json_real(sample_s));
    }
    for (int i = 0; i < 6; i++)
        json_object_set_new(exposed, parts[i], json_real(around(n, time_s / (3 + 4 * i), 0.01)));
    json_object_set_new(busy, "compute", json_real(around(n, time_s / 3, 0.01)));
    for (int i = 0; i < 6; i++) {
        json_object_set_new(busy, streams[i], json_real(around(n, time_s / (4 + i), 0.01)));
        json_object_set_new(busbw, streams[i], json_real(around(n, 2e10 + 1e9 * i, 0.02)));
    }
    json_object_set_new(record, "iteration_time_s", json_real(median_s));
    json_object_set_new(record, "samples_s", samples);
    json_object_set_new(record, "first_iteration_s", json_real(around(n, 2 * time_s, 0.05)));
    json_object_set_new(record, "flops_formula", json_real(flops));
    json_object_set_new(record, "flops_per_s", json_real(flops / median_s));
    json_object_set_new(record, "flops_executed_per_s", json_real(0.97 * flops / median_s));
    json_object_set_new(record, "tokens_per_s", json_real(4194304 / median_s));
    json_object_set_new(record, "gemm_flops_per_s", json_real(around(n, 2.1e14, 0.005)));
    json_object_set_new(record, "gemm_share", json_real(around(n, 0.7, 0.01)));
    json_object_set_new(record, "issue_share", json_real(around(n, 0.02, 0.05)));
    json_object_set_new(record, "exposed_s", exposed);
    json_object_set_new(record, "busy_s", busy);
    json_object_set_new(record, "busbw_Bps", busbw);
    json_object_set_new(record, "slowest_rank",
                        json_integer((int)(64 * s4d_uniform_at(n->key, n->index++))));
    json_t *loss = json_array(), *norm = json_array();
    for (int i = 0; i < SAMPLES; i++) {
        json_array_append_new(loss, json_real((float)around(n, 5.5, 0.01)));
        json_array_append_new(norm, json_real((float)around(n, 1.6, 0.01)));
    }
    json_object_set_new(record, "loss", loss);
    json_object_set_new(record, "grad_norm", norm);
}

static json_t *provenance(int night, int job, const char *host)
{
    char commit[16], when[40], job_text[16];
    snprintf(commit, sizeof commit, "%07x", 0x1a2b3c + night / 3 * 7919);
    snprintf(when, sizeof when, "%sT%02d:%02d:%02dZ", s4d_date(FIRST_DAY + night).text,
             1 + job / 900 % 5, job / 15 % 60, job * 4 % 60);
    snprintf(job_text, sizeof job_text, "%d", 4000000 + night * 2000 + job);
    return json_pack("{ss ss ss s[ssssssss] ss ss s{ss ss ss ss ss ss}}", "tool", "scale4d",
                     "version", s4d_version, "commit", commit, "argv", "scale4d-run nightly",
                     "nightly.yaml", "--backend", "cuda", "--output", "night.jsonl", "--host-class",
                     host, "host", "n017", "time", when, "environment", "NCCL_ALGO", "Ring",
                     "NCCL_CROSS_NIC", "1", "OMP_NUM_THREADS", "16", "SLURM_JOB_ID", job_text,
                     "SLURM_JOB_NUM_NODES", "16", "SLURM_NTASKS", "64");
}

static json_t *record_of(int series, int night, int repeat)
{
    static const char *const workloads[] = {"gpt-5b", "gpt-10b", "gpt-20b", "gpt-40b", "llama-8b"};
    static const char *const grids[] = {"2x2x4x4", "1x1x16x4", "4x1x8x2", "2x4x4x2",  "1x2x8x4",
                                        "8x1x4x2", "4x4x2x2",  "1x1x8x8", "2x1x16x2", "4x2x4x2"};
    int job = series * REPEATS + repeat;
    struct noise of_night = {s4d_mix(SEED + (uint64_t)(series * 1000 + night)), 0},
                 n = {s4d_mix(of_night.key + 1 + (uint64_t)repeat), 0};
    char host[40];
    snprintf(host, sizeof host, "NVIDIA H100 80GB HBM3 x4 n%c", 'a' + series / 50);
    double time_s = around(&of_night, 1 + 0.01 * series, 0.003), flops = 1.2e16 + 1e13 * series;
    json_t *record = json_pack(
        "{ss ss ss ss s{ss ss} si ss ss si si si ss ss si ss ss ss sb sf si ss sn si si si sb ss "
        "si sI}",
        "kind", "train", "model_version", "2", "backend", "cuda", "host_class", host, "workload",
        "name", workloads[series % 5], "hash", "f3a10a60315af747", "gpus", 64, "grid",
        grids[series / 5 % 10], "rank_order", "y,x,z,pipe,data", "global_batch", 2048,
        "micro_batch", 2, "micro_batches", 16, "recompute", "full", "overlap",
        "oar,ors,oag-forward=across-layers,oag-backward=across-layers", "cache_layers", 0,
        "precision", "bf16", "gradient_type", "f32", "gradient_reduce", "at-end", "loss_scaling", 0,
        "clip_norm", 1.0, "seed", 1, "tokens", "random", "load", "iterations", SAMPLES, "warmup", 2,
        "threads", 16, "tf32", 0, "progress", "thread", "parameters", 5, "memory_peak_bytes",
        (json_int_t)(40000000000 + 1000000 * series));
    add_measured(record, time_s, flops, &n);
    json_object_set_new(record, "completed", json_integer(SAMPLES));
    json_object_set_new(record, "interrupted", json_false());
    json_object_set_new(record, "suite",
                        json_pack("{ss ss ss si si}", "name", "nightly", "experiment",
                                  workloads[series % 5], "night", s4d_date(FIRST_DAY + night).text,
                                  "repeat", repeat + 1, "repeats", REPEATS));
    json_object_set_new(record, "provenance", provenance(night, job, host));
    return record;
}

/* A night's records as scale4d-run writes them. */
static char *night_lines(int night, size_t *n)
{
    char *lines = NULL;
    FILE *out = open_memstream(&lines, n);
    for (int i = 0; i < SERIES * REPEATS; i++) {
        json_t *record = record_of(i / REPEATS, night, i % REPEATS);
        s4d_record_write(record, out, NULL);
        json_decref(record);
    }
    fclose(out);
    return lines;
}

static void fail(const struct s4d_error *err)
{
    s4d_error_print(err);
    exit(err->exit);
}

static int64_t fill(const char *file, double *added_s)
{
    struct s4d_store *store;
    struct s4d_error err;
    int64_t bytes = 0;
    *added_s = 0;
    if (s4d_store_open(&store, file, S4D_STORE_WRITE, &err))
        fail(&err);
    for (int night = 0; night < NIGHTS; night++) {
        size_t n;
        bool is_new;
        char *lines = night_lines(night, &n), *line = lines;
        double start_s = bench_now_s();
        if (s4d_store_begin(store, &err))
            fail(&err);
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
            if (s4d_store_add(store, line, (size_t)(end - line), "bench", &is_new, &err))
                fail(&err);
        if (s4d_store_commit(store, &err))
            fail(&err);
        *added_s += bench_now_s() - start_s;
        bytes += (int64_t)n;
        free(lines);
    }
    s4d_store_close(store);
    return bytes;
}

static double megabytes(const char *file)
{
    struct stat about;
    return stat(file, &about) == 0 ? (double)about.st_size / 1e6 : NAN;
}

/* One command; 1 says that something was found, and is no failure. */
static void line(const char *what, const char *aim, const char *command)
{
    char *shell = s4d_asprintf("sh -c '%s >/dev/null || test $? = 1'", command);
    struct bench_run r = bench(shell);
    printf("  %-26s%8.3f s (%.2f s of a processor), %4.0f MB      (aim: under %s)\n", what,
           r.wall_s, r.cpu_s, r.memory_MB, aim);
    fflush(stdout);
    json_decref(r.record);
    free(shell);
}

void bench_track(void)
{
    char folder[] = "/tmp/scale4d-bench-XXXXXX";
    if (!mkdtemp(folder))
        return;
    char *file = s4d_asprintf("%s/track.sqlite", folder),
         *night = s4d_asprintf("%s/night.jsonl", folder),
         *page = s4d_asprintf("%s/report.html", folder);
    double added_s;
    int64_t bytes = fill(file, &added_s);
    const double n = (double)SERIES * NIGHTS * REPEATS;
    printf("A store of %.0f records: %d series, %d nights, %d repeats (seed %d)\n"
           "  as JSON lines             %.0f MB, %.0f bytes a record\n"
           "  the store                 %.0f MB, %.0f bytes a record   (aim: under 500 MB)\n"
           "  added in all              %.0f s, %.0f us a record\n",
           n, SERIES, NIGHTS, REPEATS, SEED, (double)bytes / 1e6, (double)bytes / n,
           megabytes(file), 1e6 * megabytes(file) / n, added_s, 1e6 * added_s / n);
    size_t n_lines;
    char *lines = night_lines(NIGHTS, &n_lines);
    FILE *out = fopen(night, "w");
    if (out) {
        fwrite(lines, 1, n_lines, out);
        fclose(out);
    }
    free(lines);
    char *add = s4d_asprintf("build/scale4d track add --store %s %s", file, night),
         *verdict = s4d_asprintf("build/scale4d track verdict --store %s", file),
         *list = s4d_asprintf("build/scale4d track list --store %s", file),
         *report = s4d_asprintf("build/scale4d track report --store %s --output %s", file, page);
    line("add, a night of 2,000", "0.5 s, 500 MB", add);
    line("the same again", "0.5 s, 500 MB", add);
    line("list", "-", list);
    line("verdict", "5 s, 500 MB", verdict);
    line("report", "20 s, 500 MB", report);
    printf("  the page, %d series      %.1f MB      (a year of 50: tests/e2e/report.bats)\n",
           SERIES, megabytes(page));
    printf("\n");
    unlink(file);
    unlink(night);
    unlink(page);
    rmdir(folder);
    free(file);
    free(night);
    free(page);
    free(add);
    free(verdict);
    free(list);
    free(report);
}
