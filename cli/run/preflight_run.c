/* SPDX-License-Identifier: Apache-2.0 */
/* One health check, from options to the record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/bench.h"
#include "cli/run/devices.h"
#include "cli/run/preflight.h"
#include "cli/run/preflight_machine.h"
#include "real/watch.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/record.h"
#include "support/units.h"

/* What is slow, unless an option says: all assumed. GPUs of one kind differ by their chips and
 * temperatures, by a few per cent as a rule; 5 below their median stands out. A machine file is of
 * another program and day, and gets twice that. What is slow once of ATTEMPTS only is disturbed. */
enum { ATTEMPTS = 3 };
static const double tolerance_percent = 10;

struct s4d_preflight_config s4d_preflight_config_default(void)
{
    return (struct s4d_preflight_config){
        .precision = S4D_BF16, .threads = 1, .slower_percent = 5, .waiting.timeout_s = 300};
}

/* "10" of all checks, "node=20" of one. */
static int set_tolerance(const char *text, double *tolerance, struct s4d_error *err)
{
    const char *names[S4D_PREFLIGHT_KINDS], *equals = strchr(text, '=');
    double percent;
    int found = -1;
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++) {
        names[k] = s4d_preflight_kinds[k].name;
        if (equals && strlen(names[k]) == (size_t)(equals - text) &&
            strncmp(names[k], text, (size_t)(equals - text)) == 0)
            found = k;
    }
    if (equals && found < 0) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        s4d_fail(err, S4D_EXIT_USAGE, "--tolerance", "expected a check, got '%s'", name);
        return s4d_hint_nearest(err, name, names, S4D_PREFLIGHT_KINDS);
    }
    if (s4d_parse_number(equals ? equals + 1 : text, 0, 100, &percent, err)) {
        s4d_fail(err, S4D_EXIT_USAGE, "--tolerance",
                 "expected PERCENT or CHECK=PERCENT, from 0 to 100, got '%.60s'", text);
        return s4d_hint(err, "how far a rate may be below the machine file's: node=20");
    }
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++)
        tolerance[k] = found < 0 || found == k ? percent / 100 : tolerance[k];
    return 0;
}

struct measure {
    struct s4d_preflight_machine *machine;
    const struct s4d_preflight *p;
};

static double expected(void *self, enum s4d_preflight_kind kind, int64_t size)
{
    const struct measure *m = self;
    const struct s4d_preflight *p = m->p;
    int ranks = s4d_grid_ranks(&p->program.grid);
    switch (kind) {
    case S4D_PREFLIGHT_ALONE:
    case S4D_PREFLIGHT_GEMM:
        return s4d_preflight_machine_product(m->machine, size,
                                             kind == S4D_PREFLIGHT_GEMM ? ranks : 1);
    case S4D_PREFLIGHT_MEMORY:
        return s4d_preflight_machine_copy(m->machine, S4D_OP_COPY, size);
    case S4D_PREFLIGHT_TO_DEVICE:
        return s4d_preflight_machine_copy(m->machine, S4D_OP_HOST_TO_DEVICE, size);
    case S4D_PREFLIGHT_FROM_DEVICE:
        return s4d_preflight_machine_copy(m->machine, S4D_OP_DEVICE_TO_HOST, size);
    default:
        return s4d_preflight_machine_sum(m->machine,
                                         kind == S4D_PREFLIGHT_RAIL ? p->ranks_per_node : 1,
                                         p->check[kind].members, size);
    }
}

static int make_options(const struct s4d_preflight_config *c, struct measure *m,
                        struct s4d_preflight_options *o, struct s4d_error *err)
{
    *o = (struct s4d_preflight_options){.attempts = ATTEMPTS, .slower = c->slower_percent / 100};
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++)
        o->tolerance[k] = tolerance_percent / 100;
    for (int i = 0; i < c->tolerance.n; i++)
        if (set_tolerance(c->tolerance.v[i], o->tolerance, err))
            return -1;
    if (c->tolerance.n > 0 && !m->machine)
        return s4d_fail(err, S4D_EXIT_USAGE, "--tolerance",
                        "is of a machine file: --machine is not given");
    o->expected = m->machine ? expected : NULL;
    o->self = m;
    return 0;
}

/* The machine's contents are the same on all ranks. */
static int same_machine(const struct s4d_world *w, const struct s4d_preflight_machine *m,
                        struct s4d_error *err)
{
    static const char *const names[] = {"--machine file"};
    uint64_t value = 0;
    if (m)
        value = strtoull(s4d_preflight_machine_hash(m), NULL, 16);
    return s4d_world_same(w, names, &value, 1, err);
}

static json_t *number_or_null(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *check_record(const struct s4d_preflight *p, int kind)
{
    const struct s4d_preflight_check *c = &p->check[kind];
    const struct s4d_preflight_info *info = &s4d_preflight_kinds[kind];
    int ranks = s4d_grid_ranks(&p->program.grid), slowest = 0;
    json_t *rates = json_array();
    for (int r = 0; r < ranks; r++) {
        json_array_append_new(rates, json_real(c->rate[r]));
        slowest = c->rate[r] < c->rate[slowest] ? r : slowest;
    }
    return json_pack("{s:s, s:s, s:I, s:i, s:f, s:f, s:i, s:o, s:f, s:o}", "check", info->name,
                     "unit", info->flops ? "FLOP/s" : "B/s", info->flops ? "n" : "bytes",
                     (json_int_t)c->size, "members", c->members, "median", c->median, "least",
                     c->rate[slowest], "slowest_rank", slowest, "expected",
                     number_or_null(c->expected), "tolerance", p->options.tolerance[kind], "rates",
                     rates);
}

static json_t *finding_record(const struct s4d_preflight_finding *f, const json_t *devices)
{
    static const char *const keys[] = {"host", "name", "uuid", "serial", "pci"};
    const struct s4d_preflight_info *info = &s4d_preflight_kinds[f->kind];
    const json_t *device = json_array_get(devices, (size_t)f->rank);
    json_t *one = json_pack("{s:s, s:i}", "check", info->name, "rank", f->rank);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(device, keys[i]))
            json_object_set(one, keys[i], json_object_get(device, keys[i]));
    char words[256];
    json_object_set_new(one, "members", json_integer(f->members));
    json_object_set_new(one, "rate", json_real(f->rate));
    json_object_set_new(one, "median", number_or_null(f->median));
    json_object_set_new(one, "expected", number_or_null(f->expected));
    json_object_set_new(one, "wrong", json_real(f->wrong));
    json_object_set_new(one, "where",
                        json_string(s4d_device_words(devices, f->rank, words, sizeof words)));
    return one;
}

static json_t *make_record(const struct s4d_preflight_config *config, struct s4d_preflight *p,
                           const struct s4d_preflight_machine *m, const char *note,
                           const json_t *devices)
{
    struct s4d_preflight_finding *findings;
    int n = s4d_preflight_judge(p, &findings);
    json_t *checks = json_array(), *slow = json_array();
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++)
        if (p->check[k].size > 0)
            json_array_append_new(checks, check_record(p, k));
    for (int i = 0; i < n; i++)
        json_array_append_new(slow, finding_record(&findings[i], devices));
    free(findings);
    json_t *machine = json_null();
    if (m)
        machine = json_pack("{s:s, s:s}", "name", s4d_preflight_machine_name(m), "hash",
                            s4d_preflight_machine_hash(m));
    json_t *record = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:s, s:b, s:o, s:f, s:o, s:o, s:b, s:s}", "kind", "preflight",
        "model_version", s4d_model_version, "backend", s4d_backend_names[config->backend], "gpus",
        s4d_grid_ranks(&p->program.grid), "ranks_per_node", p->ranks_per_node, "precision",
        s4d_type_names[config->precision], "tf32", config->tf32, "machine", machine, "slower",
        p->options.slower, "checks", checks, "slow", slow, "ok", n == 0, "note", note);
    return record;
}

/* The check itself; ends the job where a device fails. */
static int check(const struct s4d_preflight_config *config, struct s4d_world *w,
                 struct s4d_preflight *p, struct s4d_bench *b, json_t **devices)
{
    struct s4d_error err;
    int code = s4d_bench_watch(b, w, config->backend, config->threads, &config->waiting, 0);
    if (code)
        return code;
    b->tf32 = config->tf32;
    b->peers = s4d_mpi_peers(w, config->threads);
    code = s4d_bench_open_program(b, &p->program, NULL, 0);
    if (code) {
        s4d_watch_stop();
        return code;
    }
    if (s4d_preflight_measure(p, &b->device, &b->peers, &err)) {
        s4d_watch_stop();
        s4d_world_abort(w, &err);
    }
    s4d_watch_stop();
    *devices = s4d_devices_gather(w, b->backend->state(&b->device));
    s4d_bench_close(b);
    return 0;
}

/* The check and its record, on rank 0. */
static int check_and_record(const struct s4d_preflight_config *config, struct s4d_world *w,
                            const struct s4d_preflight_options *options, struct measure *m,
                            json_t **record)
{
    struct s4d_preflight p;
    struct s4d_bench bench;
    json_t *devices = NULL;
    int node = s4d_bench_ranks_per_node(w);
    const char *note = "";
    s4d_preflight_init(&p, w->size, node, (enum s4d_type)config->precision, options);
    m->p = &p;
    if (m->machine)
        note = s4d_preflight_machine_use(m->machine, w->size, node, p.program.options.precision);
    int code = check(config, w, &p, &bench, &devices);
    if (!code) { /* all ranks know all rates */
        json_t *own = make_record(config, &p, m->machine, note, devices);
        code = json_is_true(json_object_get(own, "ok")) ? S4D_EXIT_OK : S4D_EXIT_CHECK;
        if (w->rank == 0) {
            json_object_set(own, "devices", devices);
            *record = json_incref(own);
        }
        json_decref(own);
    }
    json_decref(devices);
    s4d_preflight_free(&p);
    return code;
}

int s4d_preflight_run(const struct s4d_preflight_config *config, struct s4d_world *w,
                      json_t **record)
{
    struct s4d_error err;
    struct measure m = {NULL, NULL};
    struct s4d_preflight_options options;
    bool bad = s4d_bench_check_tf32(config->tf32, config->backend, (enum s4d_type)config->precision,
                                    &err) ||
               (config->machine && s4d_preflight_machine_load(&m.machine, config->machine, &err)) ||
               make_options(config, &m, &options, &err);
    int code = s4d_world_agree(w, bad ? &err : NULL);
    if (!code)
        code = s4d_world_agree(w, same_machine(w, m.machine, &err) ? &err : NULL);
    *record = NULL;
    if (!code)
        code = check_and_record(config, w, &options, &m, record);
    s4d_preflight_machine_free(m.machine);
    return code;
}
