/* SPDX-License-Identifier: Apache-2.0 */
/* Where one rank's time goes: how long each stream works, and what its compute stream waits for.
 *
 * The compute stream either works or is idle; an idle interval is charged to the stream of the wait
 * that ended last. So the parts sum to the time since the window was opened. */
#ifndef S4D_SIM_ACCOUNT_H
#define S4D_SIM_ACCOUNT_H

#include <stdbool.h>

#include "schedule/program.h" /* for: S4D_STREAMS */

struct s4d_account {
    double busy_s[S4D_STREAMS], exposed_s[S4D_STREAMS], gemm_s;
    double since_s[S4D_STREAMS]; /* when the running op started; of compute: or it became idle */
    bool busy[S4D_STREAMS], gemm;
    double met_s; /* when the newest wait of the idle compute stream ended, and its stream */
    int met_stream;
    bool closed;
};

void s4d_account_init(struct s4d_account *a);
/* Forgets what was before: the window starts now, in the middle of whatever runs. */
void s4d_account_open(struct s4d_account *a, double now_s);
/* What runs is counted up to now, and nothing later. Idle time since the last compute op is the
 * stream's. */
void s4d_account_close(struct s4d_account *a, double now_s, enum s4d_stream stream);

void s4d_account_start(struct s4d_account *a, double now_s, enum s4d_stream stream, bool gemm);
void s4d_account_end(struct s4d_account *a, double now_s, enum s4d_stream stream);
/* A wait of the next compute op, for an op of that stream, has just been met. */
void s4d_account_met(struct s4d_account *a, double now_s, enum s4d_stream stream);

#endif
