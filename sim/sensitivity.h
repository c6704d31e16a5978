/* SPDX-License-Identifier: Apache-2.0 */
/* Which numbers of a machine a result hangs on: each entry halved and doubled by itself, and the
 * same job simulated again. */
#ifndef S4D_SIM_SENSITIVITY_H
#define S4D_SIM_SENSITIVITY_H

#include "sim/simulate.h"

enum { S4D_HALVED, S4D_DOUBLED, S4D_VARIED };
extern const double s4d_variation[S4D_VARIED]; /* 0.5, 2 */

struct s4d_varied {
    bool same;            /* the entry cannot be varied this way (unlimited, 0, at its limit) */
    double iteration_s;   /* NAN: same, or not simulated */
    struct s4d_error why; /* exit 0, or why it cannot be simulated */
};
struct s4d_sensitive {
    char *key;
    const char *source; /* the machine's */
    enum s4d_tag tag;
    double value; /* NAN: a curve or table, scaled as a whole */
    struct s4d_varied varied[S4D_VARIED];
    double effect; /* the larger |iteration / base - 1|; 0 where nothing was simulated */
};
struct s4d_sensitivity {
    struct s4d_result base;
    struct s4d_sensitive *entry; /* descending effect, then as the machine lists them */
    int n, cap;
};

/* Simulates s as it is, then with every entry of the machine whose tag is in `tags` (a bit a tag)
 * halved and doubled: s->workers children at once. A grid that is chosen (grid_auto) is chosen once
 * and kept; a micro-batch that is chosen is chosen anew, so that memory counts. Of a SimGrid
 * platform the bandwidths of all its links are one entry more, "links.net.*". 0 (free it), or -1:
 * as s4d_simulate. */
int s4d_sensitivity(const struct s4d_simulation *s, unsigned tags, struct s4d_sensitivity *result,
                    struct s4d_error *err);
void s4d_sensitivity_free(struct s4d_sensitivity *result);

#endif
