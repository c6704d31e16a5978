/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest of the known names. For options, keys, machines, workloads, kinds and
 * commands. */
#ifndef S4D_SUPPORT_NEAREST_H
#define S4D_SUPPORT_NEAREST_H

#include "support/error.h"

/* The name nearest to `name` by edit distance (insertions, deletions, substitutions and swaps of
 * neighbours, each 1; case and '-' against '_' cost nothing), the first of equals; NULL where none
 * is near: more than a third of the characters differ. A name that starts with `name` is near. */
const char *s4d_nearest(const char *name, const char *const *names, int n);

/* The distance itself; names are compared up to 63 characters. */
int s4d_edit_distance(const char *a, const char *b);

/* Hint for an unknown name: "did you mean gpt-20b?", else "known: a, b, c" (cut where it does not
 * fit). Returns -1. */
int s4d_hint_nearest(struct s4d_error *err, const char *name, const char *const *names, int n);

/* The same of data files (a machine, a workload); where NAME.yaml lies in this folder, that one. */
int s4d_hint_file(struct s4d_error *err, const char *name, const char *const *names, int n);

#endif
