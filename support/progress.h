/* SPDX-License-Identifier: Apache-2.0 */
/* A progress line on a terminal: shown only where standard error is a terminal and CI is not set;
 * erased when done. */
#ifndef S4D_SUPPORT_PROGRESS_H
#define S4D_SUPPORT_PROGRESS_H

void s4d_progress(const char *what, int done,
                  int of); /* "simulating 3/10", drawn at most 10 times a second */
void s4d_progress_end(void);

#endif
