/* SPDX-License-Identifier: Apache-2.0 */
/* The shared table of schedule options. */
#include "schedule/schedule_options.h"

#include <string.h>

#include "schedule/op.h" /* for: enum s4d_type */

static int parse_grid(const char *text, void *field, struct s4d_error *err)
{
    struct s4d_grid_option *g = field;
    g->automatic = strcmp(text, "auto") == 0;
    if (g->automatic)
        g->grid = s4d_grid_make(1, 1, 1, 1);
    else if (s4d_grid_parse(text, &g->grid, err) != 0)
        return s4d_hint(err, "for example 2x4x8x16, or auto where a command can choose");
    g->given = true;
    return 0;
}

static int parse_rank_order(const char *text, void *field, struct s4d_error *err)
{
    return s4d_rank_order_parse(text, field, err);
}

static int parse_overlap(const char *text, void *field, struct s4d_error *err)
{
    return s4d_overlap_parse(text, field, err);
}

/* In the order of enum s4d_type, so that the index of a choice is the type. */
static const char *const precisions[] = {"f64", "f32", "bf16", "f16", NULL};
static const char *const recomputes[] = {"none", "selective", "full", NULL};
static const char *const gradient_types[] = {"f32", "compute", NULL};
static const char *const gradient_reduces[] = {"at-end", "buckets", NULL};
static const char *const loss_scalings[] = {"auto", "off", "on", NULL};
_Static_assert(S4D_F64 == 0 && S4D_F32 == 1 && S4D_BF16 == 2 && S4D_F16 == 3, "precisions[]");

#define AT(field) offsetof(struct s4d_schedule_options, field)
#define INT(n, arg, field, lo, hi, text)                                                           \
    {                                                                                              \
        .name = n, .argument = arg, .type = S4D_OPT_INT, .offset = AT(field), .min = lo,           \
        .max = hi, .help = text                                                                    \
    }
#define NUMBER(n, field, lo, hi, text)                                                             \
    {                                                                                              \
        .name = n, .argument = "NUMBER", .type = S4D_OPT_NUMBER, .offset = AT(field), .min = lo,   \
        .max = hi, .help = text                                                                    \
    }
#define CHOICE(n, arg, field, list, text)                                                          \
    {                                                                                              \
        .name = n, .argument = arg, .type = S4D_OPT_CHOICE, .offset = AT(field), .choices = list,  \
        .help = text                                                                               \
    }
#define PARSE(n, arg, field, function, text)                                                       \
    {                                                                                              \
        .name = n, .argument = arg, .type = S4D_OPT_PARSE, .offset = AT(field), .parse = function, \
        .help = text                                                                               \
    }

/* clang-format off */
const struct s4d_option s4d_schedule_options[] = {
    PARSE("grid", "GXxGYxGZxGDATA|auto", grid, parse_grid,
          "process grid: x splits a normal layer's outputs, y its inputs, z weights and batch, "
          "data the batch"),
    INT("pipeline", "P", pipeline, 1, 1 << 20, "pipeline stages; no other number yet"),
    PARSE("rank-order", "AXES", rank_order, parse_rank_order,
          "axes, innermost first (default y,x,z,pipe,data)"),
    INT("global-batch", "B", options.global_batch, 1, 1 << 30, "sequences an iteration"),
    INT("micro-batch", "b", options.micro_batch, 0, 1 << 20,
        "sequences per rank and micro-batch; 0: the largest that fits the memory, "
        "and 1 of schedule and calibrate"),
    CHOICE("recompute", "none|selective|full", options.recompute, recomputes,
           "activations computed again in the backward pass"),
    PARSE("overlap", "all|none|axonn-sc24|LIST", options.overlap, parse_overlap,
          "what runs beside computation: oar, ors, oag, oag-forward=VALUE, oag-backward=VALUE; "
          "VALUE is none, within-layer or across-layers (default all)"),
    INT("cache-layers", "N", options.cached_layers, 0, 1 << 20,
        "keep the gathered weights of the first N layers for the iteration"),
    CHOICE("precision", "f64|f32|bf16|f16", options.precision, precisions,
           "type of working weights and activations"),
    CHOICE("gradient-type", "f32|compute", gradient_type, gradient_types,
           "type on the wire of the gradients' all-reduce over data"),
    CHOICE("gradient-reduce", "at-end|buckets", options.gradient_reduce, gradient_reduces,
           "reduce gradients over data after the last backward, or during it"),
    CHOICE("loss-scaling", "auto|off|on", loss_scaling, loss_scalings,
           "dynamic loss scale; auto: with f16"),
    NUMBER("learning-rate", options.learning_rate, 0, 1e6, "AdamW"),
    NUMBER("beta1", options.beta1, 0, 0.999999, "AdamW"),
    NUMBER("beta2", options.beta2, 0, 0.999999, "AdamW"),
    NUMBER("adam-epsilon", options.adam_epsilon, 0, 1, "AdamW"),
    NUMBER("weight-decay", options.weight_decay, 0, 1e6, "AdamW, matrices"),
    NUMBER("clip-norm", options.clip_norm, 0, 1e30,
           "largest global gradient norm, 0: not clipped"),
    {.name = NULL},
};
/* clang-format on */

struct s4d_schedule_options s4d_schedule_options_default(void)
{
    struct s4d_grid one = s4d_grid_make(1, 1, 1, 1);
    return (struct s4d_schedule_options){
        .grid = {.grid = one}, .pipeline = 1, .rank_order = one, .options = s4d_options_default()};
}

int s4d_schedule_options_resolve(struct s4d_schedule_options *s, int gpus, struct s4d_grid *grid,
                                 bool *automatic, struct s4d_error *err)
{
    struct s4d_options *o = &s->options;
    if (!s->grid.given) {
        s4d_fail(err, S4D_EXIT_USAGE, "--grid", "expected GXxGYxGZxGDATA, not given");
        return s4d_hint(err, "1x1x%dx1 shares all weights out; scale4d simulate takes auto, too",
                        gpus);
    }
    if (o->global_batch < 1)
        return s4d_fail(err, S4D_EXIT_USAGE, "--global-batch",
                        "expected the sequences of an iteration, not given");
    if (s->pipeline != 1)
        return s4d_fail(err, S4D_EXIT_USAGE, "--pipeline",
                        "expected 1: this version has no pipelines, got %d", s->pipeline);
    *grid = s->grid.grid;
    memcpy(grid->order, s->rank_order.order, sizeof grid->order);
    *automatic = s->grid.automatic;
    char text[64];
    int ranks = s4d_grid_ranks(grid);
    if (!*automatic && ranks != gpus) {
        s4d_fail(err, S4D_EXIT_USAGE, "--grid", "expected a product of %d, got %s = %d", gpus,
                 s4d_grid_text(grid, text, sizeof text), ranks);
        return s4d_hint(err, "it goes with --gpus %d; of scale4d-run, with mpirun -n %d", ranks,
                        ranks);
    }
    o->gradient_type = s->gradient_type || o->precision == S4D_F64 ? o->precision : S4D_F32;
    o->loss_scaling = s->loss_scaling == 2 || (s->loss_scaling == 0 && o->precision == S4D_F16);
    return 0;
}
