/* SPDX-License-Identifier: Apache-2.0 */
/* What s4d_check has found out about a program: shared by its order (check.c), its storages
 * (check_uses.c) and its memory plan (check_plan.c); nobody else's. Ops are numbered over two
 * iterations: iteration * n + list index. */
#ifndef S4D_SCHEDULE_CHECK_STATE_H
#define S4D_SCHEDULE_CHECK_STATE_H

#include "schedule/program.h"

/* An operand's bytes, in its storage from `first` to before `last`. */
struct use {
    int64_t first, last;
    int op, operand;
    bool read, write;
};
struct uses {
    struct use *v;
    int n, cap;
};

struct checking {
    const struct s4d_program *p;
    int n;                /* ops of one iteration */
    int *at[S4D_STREAMS]; /* list index by position */
    int *known;           /* [op][stream]: the latest op of the stream that is surely done before
                             op starts; -1: none */
    struct uses *uses;    /* by storage, once s4d_check_uses was there */
    struct s4d_error *err;
};

static inline int s4d_known(const struct checking *c, int op, enum s4d_stream stream)
{
    return c->known[(size_t)op * S4D_STREAMS + stream];
}

/* Whether a is surely done before b starts. */
static inline bool s4d_done_before(const struct checking *c, int a, int b)
{
    return s4d_known(c, b, c->p->ops[a % c->n].stream) >= a;
}

/* check_uses.c: finds c->uses, free with s4d_uses_free; whether those of one storage race, and
 * whether what is read has been written. 0, or -1 (exit 70). */
int s4d_check_uses(struct checking *c);
void s4d_uses_free(struct checking *c);

/* check_plan.c: of a program with a memory plan, whether storages lie in the arena, and share bytes
 * of it only one after the other. 0, or -1 (exit 70). */
int s4d_check_plan(const struct checking *c);

#endif
