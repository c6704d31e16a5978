/* SPDX-License-Identifier: Apache-2.0 */
/* What gnuplot's svg terminal wrote, made fit for a page of HTML: colours become classes, so that
 * the page's style draws it in light, dark and print; what the page says once (fonts, markers, ids)
 * goes, and coordinates keep one decimal. */
#ifndef S4D_PLOTS_PAGE_SVG_H
#define S4D_PLOTS_PAGE_SVG_H

#include <stdio.h>

/* Colours of the script, and the classes that they become. */
enum s4d_ink {
    S4D_INK_GRID = 1,
    S4D_INK_RANGE,
    S4D_INK_SAMPLES, /* its points without lines are drawn as dots */
    S4D_INK_MEDIAN,
    S4D_INK_CHANGE,
    S4D_INK_BAND,
    S4D_INK_SIMULATED,
    S4D_INK_LEVEL,
    S4D_INK_RESTART,
    S4D_INK_OLDER,
    S4D_INKS
};
extern const char *const s4d_ink_names[S4D_INKS];

/* Writes <svg class="..." role="img" aria-label="..."> from a whole file of the terminal. label is
 * plain text. */
void s4d_svg_inline(FILE *out, const char *svg, const char *class, const char *label);

#endif
