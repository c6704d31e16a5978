/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the stages of a pipe, written by hand: what they send, receive and post together is
 * exact arithmetic on small numbers, so that every executor can be compared with sums. */
#ifndef S4D_TESTS_PIPE_H
#define S4D_TESTS_PIPE_H

#include "schedule/program.h"

/* Every rank has `own`, n numbers, and adds what it receives.
 * ring   every stage sends its numbers to the next, the last to the first (channel ends), and
 *        receives those of the one before: own[s] += own[s - 1]. Posted one by one, all wait.
 * both   to the next, and the first n / 4 in bf16 to the one before, at once on one stream:
 *        own[s] += own[s - 1], own[s][.. n / 4] += own[s + 1]
 * lines  the same on the two streams of their channels, by themselves: first what is received
 *        from before is added, then sent on; and the other way round: own[s] = sum of own[.. s],
 *        then own[s][.. n / 4] = sum of own[s ..] of what that gave
 * sums   no messages: two all-reduces over y in one batch: own = sum, and that of its first n / 4
 *        in bf16, which is added to them */
enum pipe_pattern { PIPE_RING, PIPE_BOTH, PIPE_LINES, PIPE_SUMS, PIPE_PATTERNS };
extern const char *const pipe_names[PIPE_PATTERNS];

enum { PIPE_STAGES = 8, PIPE_OWN = 0 /* tensor */ };
struct pipe {
    int stages, n;
    struct s4d_program program[PIPE_STAGES];
    const struct s4d_program *list[PIPE_STAGES];
};

/* Ordered and planned, in place: *pipe must stay where it is. n: a multiple of 4. batched: as
 * above; else every op is posted by itself, sends first. */
void pipe_make(struct pipe *pipe, enum pipe_pattern pattern, const struct s4d_grid *grid, int n,
               bool batched);
void pipe_free(struct pipe *pipe);

/* What own[i] of a rank is at first; and own of all ranks, n numbers each, after some iterations
 * (sums: as long as sums in bf16 are exact, or y is 2). */
float pipe_initial(int rank, int i);
void pipe_expected(enum pipe_pattern pattern, const struct s4d_grid *grid, int n, int iterations,
                   float *own);

#endif
