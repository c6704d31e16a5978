/* SPDX-License-Identifier: Apache-2.0 */
/* What the interpreter's own files share. */
#ifndef S4D_TESTS_INTERPRETER_INTERNAL_H
#define S4D_TESTS_INTERPRETER_INTERNAL_H

#include "tests/lib/interpreter.h"

/* At the head of a stream; of a batch the first. It follows from the ops that are done, and is
 * asked for much more often. */
struct s4d_head {
    int op, iteration; /* op -1: the stream has finished */
};

struct s4d_interpreter {
    const struct s4d_program *p; /* of one of the stages */
    struct s4d_interpreter_options options;
    int ranks;
    int (*coordinate)[S4D_AXES];
    const struct s4d_program **programs; /* by rank */
    unsigned char **arenas;              /* [rank * 2 + place], if planned */
    unsigned char **bytes;               /* [rank * n_storages + storage] */
    int n_storages;                      /* the most that a stage has */

    struct s4d_stage {
        int *op_at[S4D_STREAMS]; /* list index by position */
        int *touched;            /* [op * S4D_OPERANDS]: the storages it uses, once each, then -1 */
        int *uses;               /* ops of an iteration that use a storage */
    } * stages;
    bool **met;     /* [rank][op]: it has happened, and others of its batch have not yet */
    int iterations; /* run or running */
    int *used;      /* [(iteration * ranks + rank) * n_storages + storage]: of those, completed */

    int64_t *done;          /* [rank * S4D_STREAMS + stream]: ops completed since the start */
    struct s4d_head *heads; /* of the same */
    double *priority;       /* of the same */
    uint64_t random;

    double *loss, *grad_norm; /* by iteration; NaN before */
    bool failed;
    struct s4d_error error;
};

static inline const struct s4d_program *s4d_rank_program(const struct s4d_interpreter *in, int rank)
{
    return in->programs[rank];
}

static inline const struct s4d_stage *s4d_rank_stage(const struct s4d_interpreter *in, int rank)
{
    return &in->stages[in->coordinate[rank][S4D_PIPE]];
}

static inline const struct s4d_op *s4d_rank_op(const struct s4d_interpreter *in, int rank, int op)
{
    return &in->programs[rank]->ops[op];
}

static inline int s4d_post_end(const struct s4d_program *p, int op)
{
    return p->ops[op].batch == 0 ? op : s4d_batch_last(p, op);
}

static inline bool s4d_is_message(const struct s4d_op *op)
{
    return s4d_op_kinds[op->kind].op_class == S4D_CLASS_MESSAGE;
}

static inline bool s4d_is_collective(const struct s4d_op *op)
{
    return s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE;
}

/* Who runs what at once: an op by itself, a collective's members, a send and its receive. */
struct s4d_meeting {
    int n, *rank, *op, iteration;
};

/* interpreter_posts.c. After ops are done, or iterations added: */
void s4d_head_find(struct s4d_interpreter *in, int rank, int stream);
/* The op at the head of a stream, and its iteration; -1 when the stream has finished. */
int s4d_head_of(const struct s4d_interpreter *in, int rank, int stream, int *iteration);
/* Something may run now on this rank's stream, of a batch any of its ops; a collective is taken by
 * its group's first member, a message by its sender. */
bool s4d_runnable(const struct s4d_interpreter *in, int rank, int stream, struct s4d_meeting *m);
/* Nothing can run: follows what each op waits for until it comes round, and reports the last. */
void s4d_stuck(struct s4d_interpreter *in, int rank, int stream, struct s4d_meeting *m);

/* One op on one rank, in one iteration. */
struct s4d_turn {
    struct s4d_interpreter *in;
    int rank, op, iteration;
    double *scratch[2 * S4D_OPERANDS];
    int n_scratch;
};

/* interpreter_memory.c */
void s4d_memory_create(struct s4d_interpreter *in);
void s4d_memory_free(struct s4d_interpreter *in);
void s4d_memory_before(struct s4d_interpreter *in, int rank, int op, int iteration);
void s4d_memory_after(struct s4d_interpreter *in, int rank, int op, int iteration);
/* Operand k, all elements in row-major order; NULL if absent. A fault where it is not declared as
 * read. */
double *s4d_turn_load(struct s4d_turn *t, int k);
double *s4d_turn_new(struct s4d_turn *t, int64_t n); /* NaNs */
void s4d_turn_store(struct s4d_turn *t, int k, const double *values);
int64_t s4d_turn_elements(const struct s4d_turn *t, int k); /* 0 if absent */
int64_t s4d_turn_columns(const struct s4d_turn *t, int k);  /* of the last dimension */
void s4d_turn_end(struct s4d_turn *t);

/* interpreter_kernels.c */
const union s4d_constants *s4d_turn_constants(const struct s4d_turn *t);
int64_t s4d_turn_value(const struct s4d_turn *t, const struct s4d_expr *e); /* on this rank */
/* A fault, and false, unless operand k has n elements. */
bool s4d_turn_expect(struct s4d_turn *t, int k, int64_t n);
double s4d_turn_scalar(struct s4d_turn *t, int k, double absent);
typedef void (*s4d_kernel)(struct s4d_turn *t);
extern const s4d_kernel s4d_layer_kernels[S4D_OP_KINDS], s4d_llama_kernels[S4D_OP_KINDS],
    s4d_training_kernels[S4D_OP_KINDS];
void s4d_kernel_run(struct s4d_turn *t);

/* interpreter_collectives.c: the same op on every member of one group, in group order. */
void s4d_collective_run(struct s4d_turn *members, int n);
/* The send of one rank, then the receive of another. */
void s4d_message_run(struct s4d_turn *peers);

/* interpreter_state.c: initial weights and scalars. */
void s4d_state_create(struct s4d_interpreter *in);

/* interpreter.c: the first fault is kept. */
void s4d_fault(struct s4d_interpreter *in, int rank, int op, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
