/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a change of iteration time each of its causes makes.
 *
 * Causes act on each other: communication that computing hid shows when computing gets faster. So
 * they are changed one after the other, from all as before to all as after, in one order and in
 * the reverse one, and each gets the mean of what it made in the two. The parts sum to the whole
 * exactly; of every pair of causes each gets half of what they do only together, which is Shapley's
 * value (1953) where no more than two act on each other. It costs two simulations a cause. */
#ifndef S4D_CLI_TRACK_SPLIT_H
#define S4D_CLI_TRACK_SPLIT_H

enum s4d_split_part {
    S4D_SPLIT_COMPUTE,
    S4D_SPLIT_X,
    S4D_SPLIT_Y,
    S4D_SPLIT_Z,
    S4D_SPLIT_DATA,
    S4D_SPLIT_OTHER,     /* communication over several axes at once */
    S4D_SPLIT_SLOW_NODE, /* the slowest node, or rank, against the others */
    S4D_SPLIT_CAUSES,
    S4D_SPLIT_UNEXPLAINED = S4D_SPLIT_CAUSES,
    S4D_SPLIT_PARTS
};
extern const char *const s4d_split_names[S4D_SPLIT_PARTS]; /* "compute", ..., "slow_node", ... */

/* Which simulations are needed: sets of causes as after (bits), all others as before; first the
 * empty set, last all of `differ`. masks has S4D_SPLIT_MASKS places; returns how many. */
enum { S4D_SPLIT_MASKS = 2 * S4D_SPLIT_CAUSES };
int s4d_split_masks(unsigned differ, unsigned *masks);
/* What each cause of `differ` makes of time_s[last] - time_s[0], in seconds; 0 of the others. */
void s4d_split(unsigned differ, const double *time_s, double part_s[S4D_SPLIT_CAUSES]);

#endif
