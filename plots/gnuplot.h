/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing with gnuplot, an external program. */
#ifndef S4D_PLOTS_GNUPLOT_H
#define S4D_PLOTS_GNUPLOT_H

#include "support/error.h"

/* Runs the script once for each of STEM.png, STEM.svg and STEM.pdf; in it the variable `data` names
 * the data file, and terminal and output are set. 0, or -1: no gnuplot, or it failed (exit 69, with
 * what it said). */
int s4d_gnuplot(const char *script, const char *data, const char *stem, struct s4d_error *err);
/* The same, after these statements. */
int s4d_gnuplot_with(const char *statements, const char *script, const char *data, const char *stem,
                     struct s4d_error *err);
/* Runs a script once that sets terminal and outputs itself, below the variable `folder`. */
int s4d_gnuplot_folder(const char *script, const char *folder, struct s4d_error *err);

#endif
