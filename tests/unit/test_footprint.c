/* SPDX-License-Identifier: Apache-2.0 */
/* The closed form of a program's memory: never below the plan, never 5 % above it, over programs
 * with every option, drawn from a seed that is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <math.h>

#include "schedule/build.h"
#include "schedule/plan.h"
#include "sim/tune/footprint.h"
#include "sim/tune/liveness.h"
#include "workloads/workload.h"

static uint64_t state_of_random;

static int draw(int n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (int)((state_of_random >> 33) % (uint64_t)n);
}

static const char *describe(const struct s4d_grid *g, const struct s4d_options *o, char *text,
                            size_t size)
{
    char grid[64], overlap[128];
    s4d_overlap_format(&o->overlap, overlap, sizeof overlap);
    snprintf(text, size, "grid %s batch %d micro-batch %d recompute %s cached %d %s types %d %d %d",
             s4d_grid_text(g, grid, sizeof grid), o->global_batch, o->micro_batch,
             s4d_recompute_names[o->recompute], o->cached_layers, overlap, o->precision,
             o->gradient_type, o->gradient_reduce);
    return text;
}

static void draw_program(const struct s4d_model *m, struct s4d_grid *g, struct s4d_options *o)
{
    static const int types[] = {S4D_BF16, S4D_BF16, S4D_BF16, S4D_F16, S4D_F32};
    *g = s4d_grid_make(1 << draw(4), 1 << draw(4), draw(4) ? 1 << draw(6) : 1, 1 << draw(2));
    if (draw(4) == 0)
        g->size[S4D_Z] = 3 * (1 + draw(2));
    *o = s4d_options_default();
    o->recompute = (enum s4d_recompute)draw(3);
    o->micro_batch = 1 << draw(4);
    o->global_batch = (1 + draw(4)) * o->micro_batch * g->size[S4D_Z] * g->size[S4D_DATA];
    o->cached_layers = draw(2) ? draw(m->num_layers + 1) : draw(2) * m->num_layers;
    o->overlap = (struct s4d_overlap){.oar = draw(4) > 0,
                                      .ors = draw(4) > 0,
                                      .oag_forward = (enum s4d_prefetch)draw(3),
                                      .oag_backward = (enum s4d_prefetch)draw(3)};
    o->precision = types[draw(5)];
    o->gradient_type = draw(4) ? S4D_F32 : o->precision;
    o->gradient_reduce = draw(4) ? S4D_REDUCE_AT_END : S4D_REDUCE_BUCKETS;
    o->loss_scaling = o->precision == S4D_F16;
}

static double closed_form(const struct s4d_model *m, const struct s4d_grid *g,
                          const struct s4d_options *o)
{
    struct s4d_error err;
    struct s4d_counts counts;
    struct s4d_footprints *f = s4d_footprints_create(m);
    if (s4d_counts_create(&counts, m, g, o, &err))
        fail_msg("%s: %s", err.where, err.text);
    struct s4d_footprint_rows *rows = s4d_footprint_rows_create(f, &counts);
    double bytes = s4d_footprint_bytes(rows, g, o);
    s4d_footprint_rows_free(rows);
    s4d_counts_free(&counts);
    s4d_footprints_free(f);
    return bytes;
}

/* As many programs of the model as asked for, at its own number of layers, or so many. */
static void compare(const char *workload, int layers, int programs)
{
    struct s4d_error err;
    struct s4d_workload w;
    double least = 9, most = 0;
    if (s4d_workload_load(&w, workload, &err))
        fail_msg("%s: %s", err.where, err.text);
    w.model.num_layers = layers ? layers : w.model.num_layers;
    for (int done = 0; done < programs;) {
        struct s4d_grid g;
        struct s4d_options o;
        struct s4d_program p;
        char text[512];
        draw_program(&w.model, &g, &o);
        if (s4d_divides(&w.model, &g, &o, NULL))
            continue;
        assert_int_equal(s4d_build(&p, &w.model, &g, &o, &err), 0);
        s4d_plan(&p);
        double plan = (double)p.arena_bytes[S4D_DEVICE],
               part = closed_form(&w.model, &g, &o) / plan;
        s4d_program_free(&p);
        if (part < 1 || part > 1.05)
            fail_msg("%s, %d layers: %.4f of the plan: %s", workload, w.model.num_layers, part,
                     describe(&g, &o, text, sizeof text));
        least = part < least ? part : least;
        most = part > most ? part : most;
        done++;
    }
    print_message("%s, %d layers, %d programs: %.4f to %.4f of the plan\n", workload,
                  w.model.num_layers, programs, least, most);
    s4d_workload_free(&w);
}

static void test_between_plan_and_5_percent(void **state)
{
    (void)state;
    state_of_random = 20260801;
    print_message("seed %llu\n", (unsigned long long)state_of_random);
    compare("gpt-5b", 0, 40);
    compare("gpt-40b", S4D_FOOTPRINT_LAYERS, 60);
    compare("gpt-80b", 17, 60);
    compare("llama-3-8b", 0, 40);
    compare("llama-2-70b", S4D_FOOTPRINT_LAYERS, 60);
    compare("llama-3-405b", 13, 40);
}

/* 1.0526 of the depth where storages are placed by size alone, more than the closed form allows. */
static void test_gaps_of_one_order(void **state)
{
    (void)state;
    struct s4d_error err;
    struct s4d_workload w;
    struct s4d_program p;
    struct s4d_grid g = s4d_grid_make(2, 1, 2, 1);
    struct s4d_options o = s4d_options_default();
    assert_int_equal(s4d_workload_load(&w, "gpt-40b", &err), 0);
    o.recompute = S4D_RECOMPUTE_NONE;
    o.micro_batch = 2;
    o.global_batch = 12;
    o.cached_layers = 0;
    o.overlap = (struct s4d_overlap){.oar = true,
                                     .ors = true,
                                     .oag_forward = S4D_PREFETCH_ACROSS_LAYERS,
                                     .oag_backward = S4D_PREFETCH_ACROSS_LAYERS};
    o.precision = S4D_BF16;
    o.gradient_type = S4D_F32;
    for (int layers = S4D_FOOTPRINT_LAYERS; layers <= 38; layers += 13) {
        w.model.num_layers = layers;
        assert_int_equal(s4d_build(&p, &w.model, &g, &o, &err), 0);
        s4d_plan(&p);
        double part = closed_form(&w.model, &g, &o) / (double)p.arena_bytes[S4D_DEVICE];
        s4d_program_free(&p);
        assert_true(part >= 1 && part <= 1.05);
    }
    s4d_workload_free(&w);
}

/* The tokens of all micro-batches are on the device for the whole iteration, s + 1 of 4 bytes for
 * each sequence of a rank: 8196 for 2048. All else is of one micro-batch (from three on). So 48
 * instead of 16 sequences over 2 ranks of data and 2 of z, 8 more for each, add 8 x 8196 = 65568
 * bytes, and what is allowed for gaps. */
static void test_tokens_of_all_micro_batches(void **state)
{
    (void)state;
    struct s4d_error err;
    struct s4d_workload w;
    struct s4d_grid g = s4d_grid_make(2, 1, 2, 2);
    struct s4d_options o = s4d_options_default();
    assert_int_equal(s4d_workload_load(&w, "gpt-5b", &err), 0);
    assert_int_equal(w.model.seq_length, 2048);
    for (int b = 1; b <= 2; b++) { /* 4 and 12 micro-batches, of 1 and of 2 sequences */
        o.micro_batch = b;
        o.global_batch = 16 * b;
        double few = closed_form(&w.model, &g, &o);
        o.global_batch = 48 * b;
        double more = closed_form(&w.model, &g, &o) - few;
        assert_true(fabs(more - b * 65568 * (1 + S4D_PACKING)) < 1e-3);
    }
    s4d_workload_free(&w);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(s4d_without_layer("layers.12.mlp.up.weight"), "mlp.up.weight");
    assert_string_equal(s4d_without_layer("embedding.weight"), "embedding.weight");
    assert_string_equal(s4d_without_layer("layers.x"), "layers.x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_between_plan_and_5_percent),
        cmocka_unit_test(test_gaps_of_one_order),
        cmocka_unit_test(test_tokens_of_all_micro_batches),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
