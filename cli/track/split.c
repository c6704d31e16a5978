/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/track/split.h"

const char *const s4d_split_names[S4D_SPLIT_PARTS] = {
    [S4D_SPLIT_COMPUTE] = "compute",
    [S4D_SPLIT_X] = "x",
    [S4D_SPLIT_Y] = "y",
    [S4D_SPLIT_Z] = "z",
    [S4D_SPLIT_DATA] = "data",
    [S4D_SPLIT_OTHER] = "other",
    [S4D_SPLIT_SLOW_NODE] = "slow_node",
    [S4D_SPLIT_UNEXPLAINED] = "unexplained",
};

/* Of k causes: none; the first 1, 2, ... k - 1; the last 1, 2, ... k - 1; all. */
int s4d_split_masks(unsigned differ, unsigned *masks)
{
    int cause[S4D_SPLIT_CAUSES], k = 0, n = 0;
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++)
        if (differ >> i & 1)
            cause[k++] = i;
    masks[n++] = 0;
    for (int backwards = 0; backwards < 2; backwards++) {
        unsigned mask = 0;
        for (int i = 0; i + 1 < k; i++) {
            mask |= 1u << cause[backwards ? k - 1 - i : i];
            masks[n++] = mask;
        }
    }
    if (k > 0)
        masks[n++] = differ;
    return n;
}

void s4d_split(unsigned differ, const double *time_s, double part_s[S4D_SPLIT_CAUSES])
{
    int cause[S4D_SPLIT_CAUSES], k = 0;
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++) {
        part_s[i] = 0;
        if (differ >> i & 1)
            cause[k++] = i;
    }
    for (int backwards = 0; backwards < 2; backwards++) {
        double before_s = time_s[0];
        for (int i = 0; i < k; i++) {
            double after_s = i + 1 < k ? time_s[1 + backwards * (k - 1) + i] : time_s[2 * k - 1];
            part_s[cause[backwards ? k - 1 - i : i]] += (after_s - before_s) / 2;
            before_s = after_s;
        }
    }
}
