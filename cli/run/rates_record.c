/* SPDX-License-Identifier: Apache-2.0 */
/* The record of kind "rates": plots/RECORD.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/rates.h"
#include "schedule/op.h"
#include "support/memory.h"
#include "support/record.h"

static double gemm_flops(const struct s4d_rates_kernel *k)
{
    const union s4d_constants *c = &k->key.c;
    return 2.0 * (double)c->gemm.m * (double)c->gemm.n * (double)c->gemm.k;
}

/* How it was measured. */
static void add_probed(json_t *object, const struct s4d_probed *p)
{
    json_object_set_new(object, "time_s", json_real(p->t.median));
    json_object_set_new(object, "p99_s", json_real(p->t.p99));
    json_object_set_new(object, "variation", json_real(p->t.variation));
    json_object_set_new(object, "samples", json_integer(p->t.n));
    json_object_set_new(object, "noisy", json_boolean(p->noisy));
}

static void add_kernels(json_t *record, const struct s4d_rates *r)
{
    double sum_s[S4D_CLASS_HOST + 1] = {0};
    json_t *shapes = json_array();
    for (int i = 0; i < r->n_kernels; i++) {
        const struct s4d_rates_kernel *k = &r->kernel[i];
        enum s4d_op_class class = s4d_op_kinds[k->key.kind].op_class;
        sum_s[class] += k->calls * k->key.probed.t.median;
        if (class != S4D_CLASS_GEMM)
            continue;
        const union s4d_constants *c = &k->key.c;
        json_t *shape =
            json_pack("{s:I, s:I, s:I, s:b, s:b, s:i, s:f}", "m", (json_int_t)c->gemm.m, "n",
                      (json_int_t)c->gemm.n, "k", (json_int_t)c->gemm.k, "transpose_a",
                      c->gemm.transpose_a, "transpose_b", c->gemm.transpose_b, "calls", k->calls,
                      "flops_per_s", gemm_flops(k) / k->key.probed.t.median);
        add_probed(shape, &k->key.probed);
        json_array_append_new(shapes, shape);
    }
    json_object_set_new(record, "gemm_s", json_real(sum_s[S4D_CLASS_GEMM]));
    json_object_set_new(record, "attention_s", json_real(sum_s[S4D_CLASS_ATTENTION]));
    json_object_set_new(record, "kernels_s", json_real(sum_s[S4D_CLASS_KERNEL]));
    json_object_set_new(record, "gemm", shapes);
}

/* The parts of exposed_s. */
static const char *axis_of(enum s4d_stream stream)
{
    switch (stream) {
    case S4D_STREAM_X:
        return "x";
    case S4D_STREAM_Y:
        return "y";
    case S4D_STREAM_Z_GATHER:
    case S4D_STREAM_Z_SCATTER:
        return "z";
    case S4D_STREAM_DATA:
    case S4D_STREAM_Z_DATA:
        return "data";
    default:
        return "other";
    }
}

static void add_to(json_t *object, const char *key, double value)
{
    double before = json_number_value(json_object_get(object, key));
    json_object_set_new(object, key, json_real(before + value));
}

static double bus_bytes(const struct s4d_rates_collective *c)
{
    return (double)c->bytes * s4d_bus_factor(c->kind, c->ranks);
}

/* As nccl-tests and the records of collectives spell it. */
static const char *op_name(enum s4d_op_kind kind, char name[64])
{
    snprintf(name, 64, "%s", s4d_op_kinds[kind].name);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return name;
}

static void add_collectives(json_t *record, const struct s4d_rates *r)
{
    char op[64];
    json_t *list = json_array(), *busbw = json_object(), *axes = json_object();
    for (int s = 0; s < S4D_STREAMS; s++) {
        double bytes = 0, t_s = 0;
        for (int i = 0; i < r->n_collectives; i++) {
            const struct s4d_rates_collective *c = &r->collective[i];
            if ((int)c->stream != s)
                continue;
            bytes += c->calls * bus_bytes(c);
            t_s += c->calls * c->probed.t.median;
            json_t *one = json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:f, s:f}", "stream",
                                    s4d_streams[s].name, "op", op_name(c->kind, op), "ranks",
                                    c->ranks, "groups", r->train->world->size / c->ranks, "bytes",
                                    (json_int_t)c->bytes, "calls", c->calls, "busbw_Bps",
                                    bus_bytes(c) / c->probed.t.median, "wrong", c->probed.wrong);
            add_probed(one, &c->probed);
            json_array_append_new(list, one);
        }
        if (t_s <= 0)
            continue;
        json_object_set_new(busbw, s4d_streams[s].name, json_real(bytes / t_s));
        add_to(axes, axis_of((enum s4d_stream)s), t_s);
    }
    json_object_set_new(record, "communication_s", axes);
    json_object_set_new(record, "busbw_Bps", busbw);
    json_object_set_new(record, "collectives", list);
}

static int count_noisy(const struct s4d_rates *r)
{
    int n = 0;
    for (int i = 0; i < r->n_kernels; i++)
        n += r->kernel[i].key.probed.noisy;
    for (int i = 0; i < r->n_collectives; i++)
        n += r->collective[i].probed.noisy;
    return n;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Of a node, from its ranks; `seen` gets those. */
static json_t *node_of(const double *rates, const char *hosts, size_t width, int first, int n,
                       bool *seen)
{
    double least = NAN;
    int slowest = -1, ranks = 0;
    for (int k = first; k < n; k++) {
        if (strcmp(hosts + (size_t)k * width, hosts + (size_t)first * width) != 0)
            continue;
        seen[k] = true;
        ranks++;
        if (isfinite(rates[k]) && !(rates[k] >= least)) {
            least = rates[k];
            slowest = k;
        }
    }
    json_t *node = json_pack("{s:s, s:i}", "host", hosts + (size_t)first * width, "ranks", ranks);
    json_object_set_new(node, "gemm_flops_per_s", number_or_null(least));
    json_object_set_new(node, "slowest_rank", slowest < 0 ? json_null() : json_integer(slowest));
    return node;
}

/* rates: of matrix products by rank, NaN where one did not measure. */
static void add_nodes(json_t *record, const double *rates, const char *hosts, size_t width, int n)
{
    json_t *nodes = json_array(), *list = json_array();
    bool *seen = s4d_calloc((size_t)n, sizeof *seen);
    int slowest = -1;
    for (int k = 0; k < n; k++) {
        if (isfinite(rates[k]) && (slowest < 0 || rates[k] < rates[slowest]))
            slowest = k;
        json_array_append_new(list, number_or_null(rates[k]));
        if (!seen[k])
            json_array_append_new(nodes, node_of(rates, hosts, width, k, n, seen));
    }
    json_object_set_new(record, "gemm_flops_per_s",
                        slowest < 0 ? json_null() : json_real(rates[slowest]));
    json_object_set_new(record, "slowest_rank", slowest < 0 ? json_null() : json_integer(slowest));
    json_object_set_new(record, "nodes", nodes);
    json_object_set_new(record, "gemm_flops_per_s_of_ranks", list);
    free(seen);
}

/* Collective: what every rank multiplies by itself. */
static void gather_nodes(json_t *record, const struct s4d_rates *r)
{
    const struct s4d_world *w = r->train->world;
    double flops = 0, own_s = 0;
    double *rates = s4d_calloc((size_t)w->size, sizeof *rates);
    char *hosts = s4d_calloc((size_t)w->size, sizeof w->host);
    for (int i = 0; i < r->n_kernels; i++) {
        const struct s4d_rates_kernel *k = &r->kernel[i];
        if (s4d_op_kinds[k->key.kind].op_class != S4D_CLASS_GEMM)
            continue;
        flops += k->calls * gemm_flops(k);
        own_s += k->calls * k->own_s;
    }
    double own = flops / own_s;
    MPI_Gather(&own, 1, MPI_DOUBLE, rates, 1, MPI_DOUBLE, 0, w->comm);
    MPI_Gather(w->host, (int)sizeof w->host, MPI_CHAR, hosts, (int)sizeof w->host, MPI_CHAR, 0,
               w->comm);
    if (record)
        add_nodes(record, rates, hosts, sizeof w->host, w->size);
    free(rates);
    free(hosts);
}

json_t *s4d_rates_record(const struct s4d_rates *r)
{
    struct s4d_train *t = r->train;
    json_t *record = t->world->rank == 0 ? json_pack("{s:s}", "kind", "rates") : NULL;
    if (record) {
        json_object_set_new(record, "model_version", json_string(s4d_model_version));
        s4d_train_inputs(record, t);
    }
    gather_nodes(record, r);
    if (record) {
        json_t *provenance = s4d_provenance(t->argc, t->argv);
        json_object_set_new(provenance, "blas", json_string(t->backend->about()));
        add_kernels(record, r);
        add_collectives(record, r);
        json_object_set_new(record, "noisy", json_integer(count_noisy(r)));
        json_object_set_new(record, "provenance", provenance);
    }
    return record;
}
