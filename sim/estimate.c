/* SPDX-License-Identifier: Apache-2.0 */
/* The alpha-beta estimate of an iteration. Letters as in schedule/op.h: T tokens of a rank and
 * iteration, a fully connected layer multiplies (T, k) by (k, n). */
#include "sim/estimate.h"

#include <math.h>

#include "schedule/flops.h"
#include "schedule/op.h" /* for: s4d_type_bytes */

/* What one collective of an axis costs: seconds a byte of (p-1)/p of the buffer, and a call. */
struct wire {
    double members, share; /* share: (p-1)/p */
    double s_per_byte, call_s;
};

/* Ring bandwidth out of a group of g members inside a node: g - 1 of the links that a device has;
 * all of those to a hub. */
static double in_node_Bps(const struct s4d_machine *m, int g)
{
    double out_Bps = 0, hub_Bps = 0;
    for (int i = 0; i < m->node.n_links; i++) {
        const struct s4d_node_link *l = &m->node.link[i];
        if (l->a != 0 && l->b != 0)
            continue;
        *(l->a + l->b < m->node.devices ? &out_Bps : &hub_Bps) +=
            l->bricks * l->brick_bandwidth_Bps.value;
    }
    return hub_Bps + out_Bps * (g - 1) / (m->node.devices > 1 ? m->node.devices - 1 : 1);
}

static struct wire wire_of(const struct s4d_machine *m, const struct s4d_grid *g,
                           enum s4d_axis axis)
{
    int inner = 1, p = g->size[axis];
    for (int i = 0; i < S4D_AXES && g->order[i] != axis; i++)
        inner *= g->size[g->order[i]];
    struct wire w = {.members = p, .share = (p - 1.0) / p};
    if (p == 1)
        return w;
    bool inside = inner * p <= m->node.devices;
    int side_by_side = inner < m->node.devices ? inner : m->node.devices;
    double Bps = inside ? in_node_Bps(m, p)
                        : m->node.n_nics * m->node.nic_bandwidth_Bps.value / side_by_side;
    w.s_per_byte = Bps > 0 ? 1 / Bps : 0;
    w.call_s = (p - 1) * (inside ? m->node.latency_s.value : m->fabric.latency_s.value);
    return w;
}

static double all_reduce_s(const struct wire *w, double bytes, double calls)
{
    return 2 * (w->share * bytes * w->s_per_byte + calls * w->call_s);
}

static double gather_s(const struct wire *w, double bytes, double calls)
{
    return w->share * bytes * w->s_per_byte + calls * w->call_s;
}

double s4d_least_memory_bytes(const struct s4d_model *model, const struct s4d_grid *g,
                              const struct s4d_options *o)
{
    int type_bytes = s4d_type_bytes[o->precision], each = 4 * (type_bytes > 4 ? type_bytes : 4);
    return s4d_workload_parameters(model) * each /
           ((double)g->size[S4D_X] * g->size[S4D_Y] * g->size[S4D_Z]);
}

/* Micro-batches an iteration: as given, or with the largest one that a rough count admits (the
 * saved input of every layer, one layer's own activations at some 34 s b h bytes in all, the
 * logits). */
static double micro_batches(const struct s4d_simulation *s, const struct s4d_grid *g)
{
    const struct s4d_model *m = &s->workload->model;
    int local = s->options.global_batch / (g->size[S4D_Z] * g->size[S4D_DATA]);
    if (s->options.micro_batch > 0)
        return (double)local / s->options.micro_batch;
    double gx = g->size[S4D_X], gy = g->size[S4D_Y], h = m->hidden_size;
    double layers = s->options.recompute == S4D_RECOMPUTE_FULL ? 2 / gy : 34 / fmin(gx, gy);
    double a_sequence = m->seq_length * (m->num_layers * layers * h + 34 * h / fmin(gx, gy) +
                                         4 * m->vocab_size / gx);
    double block = 4 * s4d_workload_parameters(m) / (m->num_layers + 1) / (gx * gy);
    double room = s->machine->device.memory_bytes.value -
                  s->machine->device.memory_reserve_bytes.value - block -
                  s4d_least_memory_bytes(m, g, &s->options);
    for (int b = local; b > 1; b--)
        if (local % b == 0 && b * a_sequence <= room)
            return (double)local / b;
    return local;
}

/* Bytes of activations that are all-reduced over x and over y, in the forward and in the backward
 * pass: elements n/Gx over y and k/Gy over x of a normal layer, x and y swapped of a transposed
 * one.
 */
struct reduced {
    double forward_x, forward_y, backward_x, backward_y;
    double calls; /* of each, about */
};

static struct reduced reduced_bytes(const struct s4d_model *m, const struct s4d_grid *g,
                                    double tokens, int type_bytes, double batches)
{
    double gx = g->size[S4D_X], gy = g->size[S4D_Y], h = m->hidden_size, l = m->num_layers;
    double qkv = h + 2 * h * m->num_key_value_heads / m->num_attention_heads;
    double f = m->ffn_hidden_size, a = tokens * type_bytes;
    return (struct reduced){
        .forward_y = a * (l * (qkv + f) + m->vocab_size) / gx,
        .forward_x = a * (l * 2 + 1) * h / gy,
        .backward_y = a * l * (h + f) / gx,
        .backward_x = a * (l * 2 + 1) * h / gy,
        .calls = 2 * l * batches,
    };
}

double s4d_estimate_s(const struct s4d_simulation *s, const struct s4d_grid *g)
{
    const struct s4d_model *m = &s->workload->model;
    const struct s4d_options *o = &s->options;
    struct wire x = wire_of(s->machine, g, S4D_X), y = wire_of(s->machine, g, S4D_Y),
                z = wire_of(s->machine, g, S4D_Z), data = wire_of(s->machine, g, S4D_DATA);
    double replicas = (double)g->size[S4D_Z] * g->size[S4D_DATA], batches = micro_batches(s, g);
    double tokens = o->global_batch / replicas * m->seq_length;
    bool again = o->recompute == S4D_RECOMPUTE_FULL; /* the forward pass runs twice */
    double passes = again ? 4 : 3;

    /* Attention is split over x, z and data alone: y repeats it (12 s / (12 h) of a layer's work).
     */
    double flops = s4d_formula_flops(m, o->global_batch, o->recompute) / s4d_grid_ranks(g);
    double attention = (double)m->seq_length / (6.0 * m->hidden_size + m->seq_length);
    double compute_s = flops * (1 - attention + attention * g->size[S4D_Y]) /
                       s->machine->device.gemm_flops_per_s.value;

    int type_bytes = s4d_type_bytes[o->precision];
    struct reduced r = reduced_bytes(m, g, tokens, type_bytes, batches);
    double forward_s = (again ? 2 : 1) * (all_reduce_s(&y, r.forward_y, r.calls) +
                                          all_reduce_s(&x, r.forward_x, r.calls));
    double backward_s =
        all_reduce_s(&x, r.backward_x, r.calls) + all_reduce_s(&y, r.backward_y, r.calls);
    if (o->overlap.oar)
        backward_s = fmax(0, backward_s - compute_s / passes);

    double block = s4d_workload_parameters(m) / ((double)g->size[S4D_X] * g->size[S4D_Y]);
    double calls = batches * 4 * m->num_layers;
    double gather = gather_s(&z, block * type_bytes * batches, calls);
    double gather_forward_s = gather, gather_backward_s = gather, scatter_s = gather;
    if (o->overlap.oag_forward != S4D_PREFETCH_NONE)
        gather_forward_s = fmax(0, gather - compute_s / passes);
    if (o->overlap.oag_backward != S4D_PREFETCH_NONE)
        gather_backward_s = fmax(0, gather - compute_s * (passes - 1) / passes);
    if (o->overlap.ors)
        scatter_s = fmax(0, scatter_s - compute_s * (passes - 1) / passes);
    double gradient = block / g->size[S4D_Z] * s4d_type_bytes[o->gradient_type];
    return compute_s + forward_s + backward_s + gather_forward_s + gather_backward_s + scatter_s +
           all_reduce_s(&data, gradient, 1);
}
