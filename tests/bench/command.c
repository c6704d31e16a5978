/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/error.h"
#include "support/memory.h"
#include "tests/bench/bench.h"

double bench_now_s(void)
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

struct bench_run bench(const char *command)
{
    struct bench_run r = {0};
    int out, status = 0;
    double start_s = bench_now_s();
    pid_t pid = start(command, &out);
    FILE *in = fdopen(out, "r");
    r.record = last_record(in);
    fclose(in);
    struct rusage usage = {0};
    wait4(pid, &status, 0, &usage);
    r.wall_s = bench_now_s() - start_s;
    r.cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
              1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    r.memory_MB = (double)usage.ru_maxrss * 1024 / 1e6;
    if (status != 0) {
        printf("  failed: %s\n", command);
        json_decref(r.record);
        r.record = NULL;
    }
    return r;
}

double bench_number(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}
