/* SPDX-License-Identifier: Apache-2.0 */
/* The program as text. Tensors appear as name(rows,columns), with their type where it is not the
 * compute type; ' marks an operand of a gemm that is transposed, += one that is added to. */
#include "schedule/print.h"

#include "schedule/flops.h"
#include "schedule/plan.h"
#include "schedule/traffic.h"
#include "support/units.h"

static void print_head(const struct s4d_program *p, FILE *out)
{
    const struct s4d_model *m = &p->model;
    const struct s4d_options *o = &p->options;
    const int *n = p->grid.size;
    char overlap[128];
    s4d_overlap_format(&o->overlap, overlap, sizeof overlap);
    fprintf(out, "# model %s: %d layers, hidden %d, heads %d, ffn %d, vocabulary %d, sequence %d\n",
            m->name, m->num_layers, m->hidden_size, m->num_attention_heads, m->ffn_hidden_size,
            m->vocab_size, m->seq_length);
    fprintf(out, "# grid %dx%dx%dx%d (x, y, z, data), %d ranks, order", n[S4D_X], n[S4D_Y],
            n[S4D_Z], n[S4D_DATA], s4d_grid_ranks(&p->grid));
    for (int i = 0; i < S4D_AXES; i++)
        fprintf(out, "%c%s", i ? ',' : ' ', s4d_axis_names[p->grid.order[i]]);
    fprintf(out,
            "\n# batch %d sequences: %d micro-batches of %d on each of %d z and data ranks; T = "
            "%lld tokens\n",
            o->global_batch, p->micro_batches, o->micro_batch, n[S4D_Z] * n[S4D_DATA],
            (long long)p->tokens);
    fprintf(out, "# recompute %s, overlap %s, cached layers %d, %s, gradients %s %s, clip %g%s\n",
            s4d_recompute_names[o->recompute], overlap, o->cached_layers,
            s4d_type_names[o->precision], s4d_type_names[o->gradient_type],
            o->gradient_reduce == S4D_REDUCE_BUCKETS ? "in buckets" : "at the end", o->clip_norm,
            o->loss_scaling ? ", loss scaling" : "");
    if (n[S4D_PIPE] > 1)
        fprintf(out, "# stage %d of %d\n", p->stage, n[S4D_PIPE]);
    fprintf(out, "# parameters %lld, ops %d\n", (long long)s4d_program_parameters(p), p->n_ops);
}

static void print_columns(FILE *out)
{
    fprintf(out, "#\n# bytes: read and written by a kernel; of a collective as nccl-tests counts "
                 "them. flop: of one rank, executed.\n"
                 "# after: what must have completed, and why (data it reads, memory it "
                 "overwrites, order asked for)\n#\n");
    fprintf(out, "#%5s  %-14s %-9s %5s %5s  %-21s %12s %14s  %s\n", "op", "stream", "phase",
            "layer", "batch", "kind", "bytes", "flop", "name: operands; waits");
}

static void print_tensor(const struct s4d_program *p, int tensor, const char *mark, FILE *out)
{
    const struct s4d_tensor *t = &p->tensors[tensor];
    fprintf(out, " %s%s(", t->name, mark);
    for (int d = 0; d < t->dims; d++)
        fprintf(out, "%s%lld", d ? "," : "", (long long)t->shape[d]);
    fprintf(out, ")%s%s", (int)t->type != p->options.precision ? ":" : "",
            (int)t->type != p->options.precision ? s4d_type_names[t->type] : "");
}

static void print_operands(const struct s4d_program *p, const struct s4d_op *x, FILE *out)
{
    int n = s4d_op_kinds[x->kind].n_operands;
    bool gemm = x->kind == S4D_OP_GEMM;
    if (x->kind == S4D_OP_ALL_REDUCE && x->operand[0].tensor == x->operand[1].tensor)
        return print_tensor(p, x->operand[0].tensor, "", out);
    for (int k = 0; k < n; k++)
        if (x->operand[k].tensor >= 0 && x->operand[k].access == S4D_READ) {
            bool transposed = gemm && (k == 0 ? x->c.gemm.transpose_a : x->c.gemm.transpose_b);
            print_tensor(p, x->operand[k].tensor, transposed ? "'" : "", out);
        }
    const char *arrow = " ->";
    for (int k = 0; k < n; k++)
        if (x->operand[k].tensor >= 0 && x->operand[k].access != S4D_READ) {
            bool adds = x->operand[k].access == S4D_ACCUMULATE;
            fprintf(out, "%s%s", arrow, adds ? " +=" : "");
            print_tensor(p, x->operand[k].tensor, "", out);
            arrow = "";
        }
}

static void print_group(const struct s4d_program *p, const struct s4d_op *x, FILE *out)
{
    const char *verb = x->c.collective.reduction == S4D_MAX ? "max " : "sum ";
    fprintf(out, " %sover", x->kind == S4D_OP_ALL_GATHER ? "" : verb);
    const char *sign = " ";
    for (int a = 0; a < S4D_AXES; a++)
        if (x->c.collective.axes & S4D_AXIS(a)) {
            fprintf(out, "%s%s=%d", sign, s4d_axis_names[a], p->grid.size[a]);
            sign = ",";
        }
}

/* The batch tells that the op does not wait for the one before it in its stream. */
static void print_message(const struct s4d_op *x, FILE *out)
{
    if (s4d_op_kinds[x->kind].op_class == S4D_CLASS_MESSAGE)
        fprintf(out, " %s pipe%+d, channel %s", x->kind == S4D_OP_SEND ? "to" : "from",
                x->c.message.peer, s4d_channel_names[x->c.message.channel]);
    if (x->batch != 0)
        fprintf(out, ", batch %d", x->batch);
}

static void print_waits(const struct s4d_op *x, FILE *out)
{
    static const char *const kinds[] = {"data", "memory", "order"};
    for (int w = 0; w < x->n_waits; w++)
        fprintf(out, "%s%s[%d]%s %s", w ? ", " : "; after ", s4d_streams[x->waits[w].stream].name,
                x->waits[w].position, x->waits[w].iteration ? " of the last iteration" : "",
                kinds[x->waits[w].kind]);
}

/* "3", or "-" for none. */
static const char *number(int n, char text[16])
{
    snprintf(text, 16, n < 0 ? "-" : "%d", n);
    return text;
}

static void print_op(const struct s4d_program *p, int i, FILE *out)
{
    const struct s4d_op *x = &p->ops[i];
    int64_t bytes = s4d_communicates(x->kind) ? s4d_collective_bytes(&x->c, x->kind)
                                              : x->bytes_read + x->bytes_written;
    char stream[32], layer[16], batch[16];
    snprintf(stream, sizeof stream, "%s[%d]", s4d_streams[x->stream].name, x->position);
    fprintf(out, "%6d  %-14s %-9s %5s %5s  %-21s %12lld %14.0f  %s:", i, stream,
            s4d_phase_names[x->label.phase], number(x->label.layer, layer),
            number(x->label.micro_batch, batch), s4d_op_kinds[x->kind].name, (long long)bytes,
            x->flops, x->label.name);
    print_operands(p, x, out);
    if (s4d_op_kinds[x->kind].op_class == S4D_CLASS_COLLECTIVE)
        print_group(p, x, out);
    print_message(x, out);
    print_waits(x, out);
    fputc('\n', out);
}

static void print_traffic(const struct s4d_program *p, FILE *out)
{
    struct s4d_traffic t = s4d_traffic_count(p);
    fprintf(out, "#\n# %-10s %-15s %6s %16s\n", "stream", "collective", "calls", "bytes");
    for (int s = 0; s < S4D_STREAMS; s++)
        for (int k = 0; k < S4D_COMMUNICATIONS; k++)
            if (t.calls[k][s] > 0)
                fprintf(out, "# %-10s %-15s %6d %16lld\n", s4d_streams[s].name,
                        s4d_op_kinds[S4D_OP_ALL_REDUCE + k].name, t.calls[k][s],
                        (long long)t.bytes[k][s]);
    fprintf(out, "#\n# flop of all ranks: by the model %.17g, executed %.17g\n",
            s4d_program_model_flops(p), s4d_program_executed_flops(p));
}

static void print_memory(const struct s4d_program *p, FILE *out)
{
    if (p->arena_bytes[S4D_DEVICE] < 0)
        return;
    struct s4d_plan_summary sum = s4d_plan_summarise(p);
    char text[32];
    fprintf(out, "#\n# %-27s %16s\n", "memory of a rank", "bytes");
    for (int r = 0; r < S4D_ROLES; r++)
        if (sum.by_role[r] > 0)
            fprintf(out, "# %-27s %16lld\n", s4d_role_names[r], (long long)sum.by_role[r]);
    fprintf(out, "# %-27s %16lld\n", "shared by everything else", (long long)sum.shared);
    fprintf(out, "# %-27s %16lld  %s\n", "device, in all", (long long)sum.total,
            s4d_format_bytes((double)sum.total, text, sizeof text));
    fprintf(out, "# %-27s %16lld\n", "pinned host", (long long)p->arena_bytes[S4D_PINNED_HOST]);
}

void s4d_print_program(const struct s4d_program *program, FILE *out)
{
    print_head(program, out);
    print_columns(out);
    for (int i = 0; i < program->n_ops; i++)
        print_op(program, i, out);
    print_traffic(program, out);
    print_memory(program, out);
}
