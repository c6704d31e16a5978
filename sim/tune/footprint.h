/* SPDX-License-Identifier: Apache-2.0 */
/* The device memory of a program in closed form: what says whether a configuration fits before
 * anything of its length is built.
 *
 * Persistent storages are counted exactly. The others lie as deep as those that are in use at the
 * same op, and that depth is linear in the number of layers at every op: two short
 * programs, one a layer longer, give, for each op where it may be greatest, how many storages of
 * each kind are in use, and how many more for a layer more. Sizes come from sim/tune/counts.h. What
 * the memory plan (schedule/plan.h) loses by packing is covered by a part of the result,
 * S4D_PACKING; a test holds the whole between the plan and the plan plus 5 %. */
#ifndef S4D_SIM_TUNE_FOOTPRINT_H
#define S4D_SIM_TUNE_FOOTPRINT_H

#include "sim/tune/counts.h"

/* Added for packing, a part of what is not persistent. */
#define S4D_PACKING 0.0495
/* Models with fewer layers are planned instead: the plan of so short a program is quick. */
enum { S4D_FOOTPRINT_LAYERS = 12 };

struct s4d_footprints;
struct s4d_footprints *s4d_footprints_create(const struct s4d_model *model);
void s4d_footprints_free(struct s4d_footprints *f);

/* What a part x, y with one choice of recompute has in common: found once for many z, b, caches. */
struct s4d_footprint_rows;
struct s4d_footprint_rows *s4d_footprint_rows_create(struct s4d_footprints *f,
                                                     const struct s4d_counts *c);
void s4d_footprint_rows_free(struct s4d_footprint_rows *r);

/* Bytes of the arena on a device: of a grid with these x, y, and options with this recompute. */
double s4d_footprint_bytes(struct s4d_footprint_rows *r, const struct s4d_grid *grid,
                           const struct s4d_options *options);

#endif
