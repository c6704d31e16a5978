/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/linear_program.h"

#include "schedule/builder.h"
#include "schedule/layers/linear.h"

/* Input and output gradient are kept from iteration to iteration, as a test's data would be. */
struct s4d_program linear_program(struct s4d_grid grid, const char *overlap, bool transposed)
{
    struct s4d_program p = {.grid = grid,
                            .options = s4d_options_default(),
                            .micro_batches = 1,
                            .tokens = 4,
                            .arena_bytes = {-1, -1}};
    struct s4d_error err;
    S4D_ASSERT(s4d_overlap_parse(overlap, &p.options.overlap, &err) == 0, "%s", overlap);
    p.options.recompute = S4D_RECOMPUTE_NONE;
    struct s4d_builder b;
    struct s4d_linear l;
    const int64_t k = 32, n = 64, rows = 4;
    int64_t k_here = k / grid.size[transposed ? S4D_X : S4D_Y],
            n_here = n / grid.size[transposed ? S4D_Y : S4D_X];
    s4d_builder_init(&b, &p);
    s4d_linear_declare(&b, &l,
                       &(struct s4d_linear_shape){.name = "fc",
                                                  .label = "fc",
                                                  .hf = "fc",
                                                  .k = k,
                                                  .part_cols = {n},
                                                  .parts = 1,
                                                  .transposed = transposed,
                                                  .bias = true,
                                                  .init_std = 0.02});
    s4d_finish_params(&b);
    int in = s4d_add_storage(&b, "I", rows * k_here * 2, S4D_ROLE_INPUT, true);
    int d_out = s4d_add_storage(&b, "dO", rows * n_here * 2, S4D_ROLE_INPUT, true);
    in = s4d_add_tensor(&b, "I", in, S4D_BF16, 0, rows, k_here);
    d_out = s4d_add_tensor(&b, "dO", d_out, S4D_BF16, 0, rows, n_here);
    b.label = (struct s4d_label){S4D_PHASE_FORWARD, 0, 0, "fc"};
    S4D_COMPUTE(&b, S4D_OP_ZERO, p.params[l.bias].gradient);
    s4d_linear_forward(&b, &l, in);
    b.label.phase = S4D_PHASE_BACKWARD;
    s4d_linear_backward(&b, &l, d_out);
    s4d_flush_gradients(&b, -2);
    s4d_emit_gradient_all_reduce(&b, 0, b.sharded_elements);
    s4d_all_reduce(&b, S4D_AXIS(S4D_Z) | S4D_AXIS(S4D_DATA), p.params[l.bias].gradient, S4D_SUM);
    s4d_place_gathers(&b);
    s4d_order(&p, b.edges, b.n_edges);
    s4d_builder_fini(&b);
    return p;
}
