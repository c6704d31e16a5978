/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/rates.h"

#include <string.h>

#include "support/error.h" /* for: S4D_ASSERT */

const char *const s4d_rate_names[S4D_RATE_NAMES] = {
    "gemm",     "attention", "kernel", "compute", "x",     "y",
    "z-gather", "z-scatter", "data",   "z-data",  "x-y-z", "z",
};
static const struct {
    unsigned classes, streams; /* bits */
} parts[S4D_RATE_NAMES] = {
    {.classes = 1u << S4D_CLASS_GEMM},
    {.classes = 1u << S4D_CLASS_ATTENTION},
    {.classes = 1u << S4D_CLASS_KERNEL},
    {.classes = 1u << S4D_CLASS_GEMM | 1u << S4D_CLASS_ATTENTION | 1u << S4D_CLASS_KERNEL},
    {.streams = 1u << S4D_STREAM_X},
    {.streams = 1u << S4D_STREAM_Y},
    {.streams = 1u << S4D_STREAM_Z_GATHER},
    {.streams = 1u << S4D_STREAM_Z_SCATTER},
    {.streams = 1u << S4D_STREAM_DATA},
    {.streams = 1u << S4D_STREAM_Z_DATA},
    {.streams = 1u << S4D_STREAM_X_Y_Z},
    {.streams = 1u << S4D_STREAM_Z_GATHER | 1u << S4D_STREAM_Z_SCATTER},
};

static int find(const char *name)
{
    int i = 0;
    while (i < S4D_RATE_NAMES && strcmp(s4d_rate_names[i], name) != 0)
        i++;
    return i;
}

void s4d_rates_plain(struct s4d_rates *r)
{
    for (int i = 0; i <= S4D_CLASS_HOST; i++)
        r->op_class[i] = 1;
    for (int i = 0; i < S4D_STREAMS; i++)
        r->stream[i] = 1;
}

bool s4d_rates_know(const char *name)
{
    return find(name) < S4D_RATE_NAMES;
}

void s4d_rates_apply(struct s4d_rates *r, const char *name, double part)
{
    int at = find(name);
    S4D_ASSERT(at < S4D_RATE_NAMES && part > 0, "%s %g", name, part);
    for (int i = 0; i <= S4D_CLASS_HOST; i++)
        if (parts[at].classes >> i & 1)
            r->op_class[i] *= part;
    for (int i = 0; i < S4D_STREAMS; i++)
        if (parts[at].streams >> i & 1)
            r->stream[i] *= part;
}
