/* SPDX-License-Identifier: Apache-2.0 */
/* Which grids other systems have, as those of ours. */
#include "sim/tune/space.h"

static bool any(const struct s4d_grid *g)
{
    return g->size[S4D_X] > 0;
}

static bool is_sharded(const struct s4d_grid *g)
{
    return g->size[S4D_X] == 1 && g->size[S4D_Y] == 1;
}

static bool is_fsdp(const struct s4d_grid *g)
{
    return is_sharded(g) && g->size[S4D_DATA] == 1;
}

static bool is_megatron(const struct s4d_grid *g)
{
    return g->size[S4D_Y] == 1 && g->size[S4D_Z] == 1;
}

const struct s4d_strategy s4d_strategies[] = {
    {"4d", "every grid", any},
    {"fsdp", "weights sharded over all GPUs: z alone (FSDP, ZeRO-3)", is_fsdp},
    {"hsdp", "weights sharded over z, copies over data (hybrid sharding)", is_sharded},
    {"megatron-tp", "tensor parallelism over x, copies over data (Megatron-LM)", is_megatron},
    {NULL, NULL, NULL},
};
