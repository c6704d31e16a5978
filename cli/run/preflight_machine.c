/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/preflight_machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/kernel.h"
#include "sim/tune/wire.h"
#include "support/memory.h"

struct s4d_preflight_machine {
    struct s4d_machine machine;
    int ranks;
    enum s4d_type precision;
    struct s4d_wires *wires; /* NULL: collectives are not compared */
    bool products;           /* are */
    char note[300];
};

int s4d_preflight_machine_load(struct s4d_preflight_machine **m, const char *name,
                               struct s4d_error *err)
{
    *m = s4d_calloc(1, sizeof **m);
    if (s4d_machine_load(&(*m)->machine, name, NULL, 0, err) == 0)
        return 0;
    free(*m);
    *m = NULL;
    return -1;
}

void s4d_preflight_machine_free(struct s4d_preflight_machine *m)
{
    if (!m)
        return;
    s4d_wires_free(m->wires);
    s4d_machine_free(&m->machine);
    free(m);
}

const char *s4d_preflight_machine_name(const struct s4d_preflight_machine *m)
{
    return m->machine.name;
}

const char *s4d_preflight_machine_hash(const struct s4d_preflight_machine *m)
{
    return m->machine.hash;
}

static bool is_known(const struct s4d_quantity *q)
{
    return q->tag != S4D_TAG_ASSUMED && q->value < INFINITY;
}

static bool products_are_known(const struct s4d_device *d)
{
    return d->gemm.n > 0 ? d->gemm.tag != S4D_TAG_ASSUMED : is_known(&d->gemm_flops_per_s);
}

static bool links_are_known(const struct s4d_node *n, bool across_nodes)
{
    for (int i = 0; i < n->n_links; i++)
        if (!is_known(&n->link[i].brick_bandwidth_Bps))
            return false;
    return !across_nodes || is_known(&n->nic_bandwidth_Bps);
}

const char *s4d_preflight_machine_use(struct s4d_preflight_machine *m, int ranks,
                                      int ranks_per_node, enum s4d_type precision)
{
    const struct s4d_kernels kernels = {&m->machine};
    const struct s4d_options options = {.precision = precision};
    struct s4d_error err;
    int devices = m->machine.node.devices;
    bool alike = ranks_per_node == ranks ? ranks <= devices : ranks_per_node == devices;
    m->ranks = ranks;
    m->precision = precision;
    m->products = s4d_kernels_check(&kernels, &options, NULL) == 0;
    m->wires = alike ? s4d_wires_create(&m->machine, ranks, &err) : NULL;
    if (!alike)
        snprintf(m->note, sizeof m->note,
                 "sums are not compared with the machine: it has %d devices a node, not %d",
                 devices, ranks_per_node);
    else if (!m->wires)
        snprintf(m->note, sizeof m->note, "sums are not compared with the machine: %.200s",
                 err.text);
    if (!m->products)
        snprintf(m->note, sizeof m->note,
                 "products are not compared with the machine: it has no rates of %s",
                 s4d_type_names[precision]);
    return m->note;
}

/* Seconds of a product of n x n matrices, or a copy of n bytes, on so many ranks at once. */
static double kernel_s(const struct s4d_preflight_machine *m, enum s4d_op_kind kind, int64_t n,
                       int ranks)
{
    const struct s4d_kernels kernels = {&m->machine};
    bool product = kind == S4D_OP_GEMM;
    struct s4d_tensor tensor = {.type = product ? m->precision : S4D_U8, .dims = 1, .shape = {n}};
    struct s4d_op op = {.kind = kind}; /* all its operands are the tensor */
    const struct s4d_program program = {.tensors = &tensor,
                                        .n_tensors = 1,
                                        .ops = &op,
                                        .n_ops = 1,
                                        .grid = s4d_grid_make(1, 1, 1, ranks)};
    if (product)
        op.c.gemm.m = op.c.gemm.n = op.c.gemm.k = n;
    op.bytes_read = product ? 2 * n * n * s4d_type_bytes[m->precision] : n;
    op.bytes_written = product ? n * n * s4d_type_bytes[m->precision] : n;
    return s4d_kernel_time_s(&kernels, &program, &op);
}

double s4d_preflight_machine_product(const struct s4d_preflight_machine *m, int64_t n, int ranks)
{
    double flops = 2 * (double)n * (double)n * (double)n;
    if (!m->products || !products_are_known(&m->machine.device))
        return 0;
    return flops / kernel_s(m, S4D_OP_GEMM, n, ranks);
}

double s4d_preflight_machine_copy(const struct s4d_preflight_machine *m, enum s4d_op_kind kind,
                                  int64_t bytes)
{
    bool inside = kind == S4D_OP_COPY;
    const struct s4d_quantity *limit =
        inside ? &m->machine.device.memory_bandwidth_Bps : &m->machine.node.host_bandwidth_Bps;
    if (!is_known(limit))
        return 0;
    return (inside ? 2 : 1) * (double)bytes / kernel_s(m, kind, bytes, m->ranks);
}

double s4d_preflight_machine_sum(const struct s4d_preflight_machine *m, int inner, int members,
                                 int64_t bytes)
{
    const struct s4d_wire *wire = m->wires ? s4d_wires_find(m->wires, inner, members) : NULL;
    if (!wire || !links_are_known(&m->machine.node, wire->across_nodes))
        return 0;
    double t_s = s4d_wire_time_s(m->wires, wire, S4D_OP_ALL_REDUCE, (double)bytes);
    return s4d_bus_factor(S4D_OP_ALL_REDUCE, members) * (double)bytes / t_s;
}
