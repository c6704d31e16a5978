/* SPDX-License-Identifier: Apache-2.0 */
/* Busy and exposed time of one rank. */
#include "sim/account.h"

#include <string.h>

void s4d_account_init(struct s4d_account *a)
{
    *a = (struct s4d_account){.met_s = -1, .met_stream = S4D_STREAM_COMPUTE};
}

void s4d_account_open(struct s4d_account *a, double now_s)
{
    memset(a->busy_s, 0, sizeof a->busy_s);
    memset(a->exposed_s, 0, sizeof a->exposed_s);
    a->gemm_s = 0;
    for (int s = 0; s < S4D_STREAMS; s++)
        a->since_s[s] = now_s;
}

static void leave_busy(struct s4d_account *a, double now_s, enum s4d_stream stream)
{
    double span_s = now_s - a->since_s[stream];
    a->busy_s[stream] += span_s;
    if (stream == S4D_STREAM_COMPUTE) {
        a->exposed_s[stream] += span_s;
        a->gemm_s += a->gemm ? span_s : 0;
    }
    a->busy[stream] = false;
    a->since_s[stream] = now_s;
}

void s4d_account_close(struct s4d_account *a, double now_s, enum s4d_stream stream)
{
    if (a->closed)
        return;
    if (!a->busy[S4D_STREAM_COMPUTE])
        a->exposed_s[stream] += now_s - a->since_s[S4D_STREAM_COMPUTE];
    for (int s = 0; s < S4D_STREAMS; s++)
        if (a->busy[s])
            leave_busy(a, now_s, (enum s4d_stream)s);
    a->closed = true;
}

void s4d_account_start(struct s4d_account *a, double now_s, enum s4d_stream stream, bool gemm)
{
    if (a->closed)
        return;
    if (stream == S4D_STREAM_COMPUTE) {
        if (a->met_stream != S4D_STREAM_COMPUTE)
            a->exposed_s[a->met_stream] += now_s - a->since_s[stream];
        a->gemm = gemm;
        a->met_s = -1;
        a->met_stream = S4D_STREAM_COMPUTE;
    }
    a->busy[stream] = true;
    a->since_s[stream] = now_s;
}

void s4d_account_end(struct s4d_account *a, double now_s, enum s4d_stream stream)
{
    if (!a->closed)
        leave_busy(a, now_s, stream);
}

/* Two waits that end together (to rounding) have a fixed winner, so that the parts do not depend on
 * the order of simultaneous events. */
void s4d_account_met(struct s4d_account *a, double now_s, enum s4d_stream stream)
{
    bool together = now_s - a->met_s <= 1e-9 * now_s;
    if (together && (int)stream >= a->met_stream && a->met_stream != S4D_STREAM_COMPUTE)
        return;
    a->met_s = now_s;
    a->met_stream = stream;
}
