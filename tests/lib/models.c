/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/models.h"

#include <string.h>

#include "schedule/build.h"

static void make_llama(struct s4d_model *m)
{
    m->num_attention_heads = 8;
    m->num_key_value_heads = 4;
    m->hidden_size = 32;
    m->ffn_hidden_size = 48;
    m->tie_word_embeddings = false;
    m->rope_theta = 10000;
    strcpy(m->positions, "rotary");
    strcpy(m->norm, "rmsnorm");
    strcpy(m->attention, "grouped-query");
    strcpy(m->mlp, "swiglu-mlp");
}

struct s4d_case s4d_test_case(enum s4d_test_model model, int x, int y, int z, int data)
{
    struct s4d_case c = s4d_case_default(4, x, y, z, data);
    c.model.vocab_size = 45;
    c.run.perturb = 0;
    if (model == S4D_TEST_LLAMA)
        make_llama(&c.model);
    return c;
}

static const int grids[][4] = {{1, 1, 1, 1}, {2, 2, 2, 2}, {4, 1, 1, 2}, {1, 4, 1, 1},
                               {1, 1, 8, 1}, {4, 2, 2, 1}, {2, 1, 3, 1}, {1, 2, 5, 1}};

_Static_assert(sizeof grids / sizeof grids[0] == S4D_TEST_GRIDS, "models.h says how many");

void s4d_test_program(struct s4d_program *p, enum s4d_test_model model, int grid)
{
    struct s4d_error err;
    const int *g = grids[grid];
    struct s4d_case c = s4d_test_case(model, g[0], g[1], g[2], g[3]);
    c.options.global_batch = 240;
    S4D_ASSERT(s4d_build(p, &c.model, &c.grid, &c.options, &err) == 0, "%s: %s", err.where,
               err.text);
}
