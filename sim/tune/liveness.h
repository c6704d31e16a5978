/* SPDX-License-Identifier: Apache-2.0 */
/* Which storages are in use at the same time, op by op of the list, and how that grows with the
 * layers of a program. */
#ifndef S4D_SIM_TUNE_LIVENESS_H
#define S4D_SIM_TUNE_LIVENESS_H

#include "schedule/program.h"

/* Storages of one kind have one size. A block is a whole weight matrix of this rank (or its
 * gradient), a shard its part over z; a message the gradients on their way over data, of all
 * layers, of one layer, of what lies outside. */
enum s4d_kind {
    S4D_KIND_ACTIVATION,
    S4D_KIND_BLOCK,
    S4D_KIND_SHARD,
    S4D_KIND_INPUT,
    S4D_KIND_MESSAGE,
    S4D_KIND_MESSAGE_LAYER,
    S4D_KIND_MESSAGE_OUTSIDE
};
struct s4d_storage_kind {
    enum s4d_kind what;
    const char *name; /* of an activation or input the storage's; of a block or shard the
                         parameter's without its layer; owned by the outline */
};

/* How many of each kind are in use at one op; how many more in a program with one layer more, and
 * with one of its layers more cached (instead of not). */
struct s4d_outline_row {
    int *count, *layer, *cached;
};
struct s4d_outline {
    int layers; /* of the program that count is of */
    struct s4d_storage_kind *kind;
    int n_kinds, cap_kinds;
    struct s4d_outline_row *row; /* those that no other has at least as much of everything as */
    int n_rows, cap_rows;
    struct s4d_arena memory;
};

/* longer: as base with one layer more, which is its layer `at`; cached (or NULL): the same with one
 * cached layer more, its layer `cached_at`. */
struct s4d_outline *s4d_outline_make(const struct s4d_program *base,
                                     const struct s4d_program *longer, int at,
                                     const struct s4d_program *cached, int cached_at);
void s4d_outline_free(struct s4d_outline *o);

/* "layers.3.mlp.up.weight" -> "mlp.up.weight". */
const char *s4d_without_layer(const char *name);

#endif
