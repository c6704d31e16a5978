/* SPDX-License-Identifier: Apache-2.0 */
/* make bench: measures the program's targets for speed, memory and accuracy, and prints them beside
 * what is aimed at. It measures whole runs of build/scale4d, start-up included. Nothing passes or
 * fails here: times depend on the machine. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/cluster.h"
#include "support/memory.h"
#include "support/record.h"

struct run {
    double wall_s, memory_MB; /* the largest resident set of the command's own process */
    json_t *record;           /* the last line of standard output that is one, or NULL */
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static json_t *last_record(FILE *in)
{
    char *line = NULL;
    size_t size = 0;
    json_t *record = NULL;
    while (getline(&line, &size, in) > 0) {
        json_t *next = json_loads(line, 0, NULL);
        if (next == NULL)
            continue;
        json_decref(record);
        record = next;
    }
    free(line);
    return record;
}

static pid_t start(const char *command, int *out)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0)
        s4d_bug(__FILE__, __LINE__, "pipe", "%s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        char *line = s4d_asprintf("exec %s", command);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    *out = ends[0];
    return pid;
}

/* Runs a command line through the shell; what it says on standard error is shown. */
static struct run run(const char *command)
{
    struct run r = {0};
    int out, status = 0;
    double start_s = now_s();
    pid_t pid = start(command, &out);
    FILE *in = fdopen(out, "r");
    r.record = last_record(in);
    fclose(in);
    struct rusage usage = {0};
    wait4(pid, &status, 0, &usage);
    r.wall_s = now_s() - start_s;
    r.memory_MB = (double)usage.ru_maxrss * 1024 / 1e6;
    if (status != 0) {
        printf("  failed: %s\n", command);
        json_decref(r.record);
        r.record = NULL;
    }
    return r;
}

static double number(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void ring(void)
{
    const double p = 4096, n = 1073741824, B_Bps = 50e9, L_s = 500e-9;
    double closed_s = 2 * (p - 1) / p * n / B_Bps + 2 * (p - 1) * L_s;
    struct run r =
        run("build/scale4d collective --machine synthetic:topology=single-switch,nodes=4096,"
            "devices_per_node=1,nic=50GB/s,latency=500ns,peak=312TFLOP/s --op all_reduce "
            "--ranks 4096 -b 1G -e 1G --algorithm ring --json");
    double time_s = number(r.record, "time_s");
    printf(
        "1 GiB ring all-reduce, 4,096 ranks of a single switch (50 GB/s, 500 ns)\n"
        "  simulated                 %.9f s\n"
        "  2(p-1)/p n/B + 2(p-1) L   %.9f s\n"
        "  difference                %.1e       (aim: under 1e-3)\n"
        "  wall                      %.3f s       (aim: under 0.1 s)\n"
        "  memory                    %.0f MB         (aim: under 200 MB)\n"
        "  for comparison, measured elsewhere on 2 cores: ASTRA-sim's analytical backend, commit\n"
        "  518bd51, took 612-731 s and 5.6 GB for this work\n\n",
        time_s, closed_s, fabs(time_s / closed_s - 1), r.wall_s, r.memory_MB);
    json_decref(r.record);
}

/* One iteration of GPT-40B; the batch per GPU is the same at every size. */
static struct run gpt_40b(int gpus, const char *grid, int micro_batch, const char *more)
{
    char *command =
        s4d_asprintf("build/scale4d simulate --machine perlmutter --workload gpt-40b --gpus %d "
                     "--global-batch %d --grid %s --micro-batch %d --json %s",
                     gpus, 2 * gpus, grid, micro_batch, more);
    struct run r = run(command);
    free(command);
    return r;
}

static void growth_line(int gpus, const struct run *r, const char *grid, const char *how)
{
    const json_t *sim = json_object_get(r->record, "sim");
    printf("  %5d  %-12s %-9s %7.3f %7.0f %8.0f %8.0f %8.0f %8.0f %8.0f\n", gpus, grid, how,
           r->wall_s, r->memory_MB, number(sim, "gpu_classes"), number(sim, "group_classes"),
           number(sim, "flow_classes"), number(sim, "link_classes"), number(sim, "ops"));
    fflush(stdout);
}

static void unfolded(int gpus, const char *grid, int micro_batch, const struct run *folded)
{
    struct run full = gpt_40b(gpus, grid, micro_batch, "--no-fold");
    growth_line(gpus, &full, grid, "unfolded");
    double full_s = number(full.record, "iteration_time_s"),
           folded_s = number(folded->record, "iteration_time_s");
    printf("         unfolded and folded differ by %.1e of the iteration\n",
           fabs(full_s / folded_s - 1));
    json_decref(full.record);
}

static void growth(void)
{
    printf(
        "One iteration of GPT-40B on Perlmutter, 2 sequences a GPU, the grid found before (auto)\n"
        "  aim: 4,096 GPUs folded under 1 s, 512 unfolded under 60 s; time by classes, not GPUs\n"
        "   GPUs  grid         how          wall  memory      GPU    group     flow     link\n"
        "                                    (s)    (MB)  classes  classes  classes  classes"
        "      ops\n");
    for (int gpus = 512; gpus <= 4096; gpus *= 2) {
        struct run chosen = gpt_40b(gpus, "auto", 0, "");
        const char *grid = json_string_value(json_object_get(chosen.record, "grid"));
        if (grid != NULL) {
            int micro_batch = (int)number(chosen.record, "micro_batch");
            struct run folded = gpt_40b(gpus, grid, micro_batch, "");
            growth_line(gpus, &folded, grid, "folded");
            if (gpus == 512)
                unfolded(gpus, grid, micro_batch, &folded);
            json_decref(folded.record);
        }
        json_decref(chosen.record);
    }
    printf("\n");
}

static void accuracy_line(const json_t *record, double published)
{
    const json_t *f = json_object_get(record, "figure");
    double value = number(record, "flops_per_s") / 1e15;
    printf("  %-8s %5.0f GPUs  %-12s %7.1f PFLOP/s (%.1f %% of peak), published %.1f: %+.1f %%\n",
           json_string_value(json_object_get(f, "workload")), number(f, "gpus"),
           json_string_value(json_object_get(f, "series")), value,
           100 * number(record, "peak_fraction"), published, 100 * (value / published - 1));
}

/* Simulates what is missing of a figure, and shows its records of one point. */
static void accuracy(const char *figure, const char *workload, int gpus, double published)
{
    char *command = s4d_asprintf("build/scale4d figure paper-figures/%s", figure);
    char *name = s4d_asprintf("build/figures/%s/records.jsonl", figure), *line = NULL;
    json_decref(run(command).record);
    size_t size = 0;
    FILE *in = fopen(name, "r");
    while (in != NULL && getline(&line, &size, in) > 0) {
        json_t *r = json_loads(line, 0, NULL);
        const json_t *f = json_object_get(r, "figure");
        const char *w = json_string_value(json_object_get(f, "workload"));
        if (w != NULL && strcmp(w, workload) == 0 && (int)number(f, "gpus") == gpus)
            accuracy_line(r, published);
        json_decref(r);
    }
    if (in != NULL)
        fclose(in);
    free(line);
    free(name);
    free(command);
}

/* Ways between random devices, for half a second. */
static double routes_per_s(const struct s4d_cluster *c)
{
    struct s4d_path path = {0};
    uint32_t seed = 1;
    double start_s = now_s(), latency_s;
    long queries = 0;
    while (queries % 1000 != 0 || now_s() - start_s < 0.5) {
        seed = seed * 1664525u + 1013904223u;
        int a = (int)(seed >> 8) % c->n_devices;
        seed = seed * 1664525u + 1013904223u;
        int b = (int)(seed >> 8) % c->n_devices;
        path.n = 0;
        if (a != b)
            s4d_cluster_route(c, a, b, &path, &latency_s);
        queries++;
    }
    s4d_path_free(&path);
    return (double)queries / (now_s() - start_s);
}

static void fabric_line(const char *name, const char *fabric)
{
    struct s4d_error err = {0};
    struct s4d_machine m;
    struct s4d_cluster c;
    char *line = s4d_asprintf("synthetic:nodes=4096,devices_per_node=8,link=100GB/s,nic=50GB/s,"
                              "latency=2us,peak=1TFLOP/s,topology=%s",
                              fabric);
    double start_s = now_s();
    if (s4d_machine_load(&m, line, NULL, 0, &err) || s4d_cluster_create(&c, &m, 4096, &err)) {
        printf("  failed: %s: %s\n", err.where, err.text);
    } else {
        double built_s = now_s() - start_s;
        printf("  %-22s %7.4f %9d %12.2f\n", name, built_s, c.n_links, routes_per_s(&c) / 1e6);
        s4d_cluster_destroy(&c);
        s4d_machine_free(&m);
    }
    free(line);
}

static void fabrics(void)
{
    static const char *const rows[][2] = {
        {"single switch", "single-switch"},
        {"fat tree, adaptive", "fat-tree,levels=3,nics_per_leaf=32,leaves_per_pod=16"},
        {"fat tree, d-mod-k",
         "fat-tree,levels=3,nics_per_leaf=32,leaves_per_pod=16,routing=d-mod-k"},
        {"rail-optimised", "rail-optimised,nodes_per_unit=32,oversubscription=2"},
        {"dragonfly, adaptive",
         "dragonfly,groups=64,nodes_per_group=64,switches_per_group=32,switches_per_node=8,"
         "local_links_per_switch=31,global_links_per_group=252,link_bandwidth_Bps=25GB/s"},
        {"dragonfly, minimal",
         "dragonfly,groups=64,nodes_per_group=64,switches_per_group=32,switches_per_node=8,"
         "local_links_per_switch=31,global_links_per_group=252,link_bandwidth_Bps=25GB/s,"
         "routing=minimal"},
        {"torus 16 x 16 x 16", "torus,size_x=16,size_y=16,size_z=16,link_bandwidth_Bps=50GB/s"},
        {"ring of 4096", "ring,link_bandwidth_Bps=50GB/s"},
    };
    printf("Fabrics at 4,096 nodes of 8 devices (aim: built under 2 s)\n"
           "  fabric                   built     links    ways of two\n"
           "                             (s)              devices (1e6/s)\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        fabric_line(rows[i][0], rows[i][1]);
    printf("\n");
}

int main(int argc, char **argv)
{
    json_t *provenance = s4d_provenance(argc, argv);
    s4d_provenance_print(provenance, stdout);
    json_decref(provenance);
    printf("# wall: whole runs of build/scale4d, start-up included; %ld processors here\n\n",
           sysconf(_SC_NPROCESSORS_ONLN));
    ring();
    fabrics();
    growth();
    printf("Accuracy (aim with axonn-sc24: within 15 %%, nothing fitted to these points)\n");
    accuracy("2502.08145/weak-scaling", "gpt-40b", 4096, 620.1);
    accuracy("2305.13525/perlmutter-80b", "gpt-80b", 1024, 182);
    return 0;
}
