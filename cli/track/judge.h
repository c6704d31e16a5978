/* SPDX-License-Identifier: Apache-2.0 */
/* How a night is judged: the options that verdict and report have alike, so that the page says what
 * the verdict says. */
#ifndef S4D_CLI_TRACK_JUDGE_H
#define S4D_CLI_TRACK_JUDGE_H

#include "plots/track/verdict.h"

/* Over a struct s4d_verdict_options, which begins as s4d_verdict_defaults says. */
extern const struct s4d_option s4d_judge_table[];

#endif
