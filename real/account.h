/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank's time goes, iteration by iteration, as the simulator counts it: an idle interval of
 * the compute stream is charged to the stream of the wait that ended last; what no wait explains is
 * the executor's own. */
#ifndef S4D_REAL_ACCOUNT_H
#define S4D_REAL_ACCOUNT_H

#include "real/device.h"

struct s4d_account_iteration {
    double busy_s[S4D_STREAMS];
    double exposed_s[S4D_STREAMS]; /* idle compute time by the stream waited for; of compute itself:
                                      computing */
    double issue_s;                /* idle compute time while no wait was open */
    double gemm_s, gemm_flops;
};

struct s4d_real_account {
    const struct s4d_program *p;
    int max_iterations;
    struct s4d_account_iteration *iterations;
    int *op_at[S4D_STREAMS]; /* list index by position */
    double *end_s[2];        /* of every op, this and the last iteration */
    double last_compute_s;
};

void s4d_real_account_init(struct s4d_real_account *a, const struct s4d_program *p,
                           int max_iterations);
void s4d_real_account_fini(struct s4d_real_account *a);
/* As struct s4d_device_observer has it; self is the account. */
int s4d_real_account_ran(void *self, const struct s4d_call *call, int iteration, double start_s,
                         double end_s, struct s4d_error *err);

#endif
