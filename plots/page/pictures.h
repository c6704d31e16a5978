/* SPDX-License-Identifier: Apache-2.0 */
/* The report's pictures: described one after the other, drawn by one gnuplot, taken for the page.
 */
#ifndef S4D_PLOTS_PAGE_PICTURES_H
#define S4D_PLOTS_PAGE_PICTURES_H

#include <stdio.h>

#include "plots/track/change_points.h"
#include "plots/track/store.h"

struct s4d_pictures {
    char *folder; /* of our own, removed with everything in it */
    FILE *script;
    int n;
};
/* A folder and a script. 0, or -1 (exit 74). */
int s4d_pictures_begin(struct s4d_pictures *pictures, struct s4d_error *err);
/* Draws all that were described: once. 0, or -1 (exit 69, 74). */
int s4d_pictures_draw(struct s4d_pictures *pictures, struct s4d_error *err);
/* A drawn picture as inline SVG. 0, or -1 (exit 69). */
int s4d_picture_take(const struct s4d_pictures *pictures, int picture, FILE *out, const char *class,
                     const char *label, struct s4d_error *err);
void s4d_pictures_end(struct s4d_pictures *pictures);

/* What numbers are divided by so that they have few digits before the point, and the unit then. */
struct s4d_unit {
    double scale;
    char text[24];
};

/* What a picture of one metric shows beside its nights. Levels are in the metric's unit. */
struct s4d_step {
    int from, to; /* days, both included */
    double value;
    double change; /* from the step before it, a part; NAN: the first */
};
struct s4d_picture {
    const struct s4d_points *points; /* n >= 1 */
    int recent; /* so many last nights have a panel of their own, with every sample */
    const struct s4d_step *steps;
    int n_steps;
    double lower, upper; /* of the band; NAN: none */
    double simulated;    /* NAN: none, or too far off to be in the picture */
};
/* Of the older nights how many are in a panel of their own; 0: there is one panel. */
int s4d_picture_split(const struct s4d_picture *picture);
/* Returns the picture's number. *outside: samples that lie above or below what is shown;
 * *unit: of the vertical axis, its text the metric's with a prefix. */
int s4d_picture_history(struct s4d_pictures *pictures, const struct s4d_picture *picture,
                        int *outside, struct s4d_unit *unit);
/* The medians of the last nights as a line. */
int s4d_picture_spark(struct s4d_pictures *pictures, const struct s4d_points *points, int nights);

#endif
