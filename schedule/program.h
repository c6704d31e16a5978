/* SPDX-License-Identifier: Apache-2.0 */
/* The program: the operations that one GPU performs in one training iteration.
 *
 * All ranks of a stage run the same list; what differs between ranks is an s4d_expr. One program is
 * one iteration; iterations chain through persistent storages and streams, without a barrier: in a
 * stream an op starts after the one before it has completed, across the iteration's end too, and
 * after every op it waits for; but for ops of one batch, see struct s4d_op. The list itself is a
 * legal issue order. A program knows no clock, no network, no device. */
#ifndef S4D_SCHEDULE_PROGRAM_H
#define S4D_SCHEDULE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/grid.h"    /* for: s4d_axes, struct s4d_expr, struct s4d_grid */
#include "schedule/model.h"   /* for: struct s4d_model */
#include "schedule/op.h"      /* for: enum s4d_op_kind, the constants of each kind */
#include "schedule/options.h" /* for: struct s4d_options */
#include "support/memory.h"   /* for: struct s4d_arena */

enum s4d_place { S4D_DEVICE, S4D_PINNED_HOST };
enum s4d_role {
    S4D_ROLE_PARAMETER, /* working weights, compute type */
    S4D_ROLE_MASTER,    /* fp32 weights (also the working ones in fp32 training) */
    S4D_ROLE_MOMENT,
    S4D_ROLE_GRADIENT, /* fp32 accumulators */
    S4D_ROLE_ACTIVATION,
    S4D_ROLE_WORKSPACE, /* gathered weights, partial sums, weight gradients before reduction */
    S4D_ROLE_MESSAGE,
    S4D_ROLE_SCALAR,
    S4D_ROLE_INPUT,
    S4D_ROLES
};
extern const char *const s4d_role_names[S4D_ROLES];

/* A range of memory. The memory plan sets offset (bytes from the start of the arena of its place).
 */
struct s4d_storage {
    const char *name;
    int64_t bytes;
    enum s4d_place place;
    enum s4d_role role;
    bool persistent; /* keeps its contents from one iteration to the next; never shares bytes */
    int64_t offset;  /* -1 before s4d_plan */
};

/* A typed view of a storage. Row-major unless strides say otherwise; offset and strides in
 * elements. */
enum { S4D_DIMS = 4 };
struct s4d_tensor {
    const char *name;
    int storage;
    enum s4d_type type;
    struct s4d_expr offset;
    int dims;
    int64_t shape[S4D_DIMS], stride[S4D_DIMS];
};

enum s4d_access { S4D_READ = 1, S4D_WRITE = 2, S4D_ACCUMULATE = 3 /* read and write */ };
struct s4d_operand {
    int tensor; /* -1: this optional operand is absent */
    enum s4d_access access;
};

/* Streams. One per communicating axis set (z has two), so one communicator per (group, stream). */
enum s4d_stream {
    S4D_STREAM_COMPUTE,
    S4D_STREAM_X,
    S4D_STREAM_Y,
    S4D_STREAM_Z_GATHER,
    S4D_STREAM_Z_SCATTER,
    S4D_STREAM_DATA,
    S4D_STREAM_Z_DATA,
    S4D_STREAM_X_Y_Z,
    S4D_STREAM_P2P_FORWARD,
    S4D_STREAM_P2P_BACKWARD,
    S4D_STREAM_COPY_IN,
    S4D_STREAM_COPY_OUT,
    S4D_STREAM_HOST,
    S4D_STREAMS
};
struct s4d_stream_info {
    const char *name;
    s4d_axes axes; /* of its communicator; 0: none */
};
extern const struct s4d_stream_info s4d_streams[S4D_STREAMS];

enum s4d_wait_kind {
    S4D_WAIT_DATA,   /* reads what that op wrote */
    S4D_WAIT_MEMORY, /* overwrites what that op used; or bounds how many buffers are in use */
    S4D_WAIT_ORDER   /* an overlap option forbids running beside it */
};
/* The op may start once op `position` of `stream` has completed, of this iteration or of the one
 * before. */
struct s4d_wait {
    int iteration; /* 0 or -1; -1 is met in the first iteration */
    enum s4d_stream stream;
    int position;
    enum s4d_wait_kind kind;
};

enum s4d_phase {
    S4D_PHASE_INPUT,
    S4D_PHASE_FORWARD,
    S4D_PHASE_RECOMPUTE,
    S4D_PHASE_BACKWARD,
    S4D_PHASE_GRADIENT, /* reductions over data replicas */
    S4D_PHASE_OPTIMIZER,
    S4D_PHASES
};
extern const char *const s4d_phase_names[S4D_PHASES];

struct s4d_label {
    enum s4d_phase phase;
    int layer;        /* -1: none */
    int micro_batch;  /* -1: none */
    const char *name; /* "mlp.up", "head", ... */
};

/* A batch is posted together: ops that communicate, neighbours in the list and in one stream. They
 * start together, once the op before them in their stream has completed and the waits of all of
 * them are met, and complete together, with the last of them: to wait for one is to wait for all,
 * and none may write what another uses. By itself a send may hold up its stream until the peer
 * receives, and a receive until the peer sends: of ranks that wait for each other so, none goes on.
 * In a batch they go on side by side. */
struct s4d_op {
    enum s4d_op_kind kind;
    enum s4d_stream stream;
    int position; /* in its stream, from 0 */
    int batch;    /* 0: posted by itself; else the number of its batch, which ascend in the list */
    struct s4d_label label;
    struct s4d_operand operand[S4D_OPERANDS]; /* in the order of s4d_op_kinds[kind].operand */
    union s4d_constants c;                    /* of its kind, schedule/op.h */
    int n_waits;
    struct s4d_wait *waits; /* waits implied by others are left out */
    double flops;           /* what one rank really does */
    double model_flops; /* its share of the formula's count: summed over ranks it is the formula */
    int64_t bytes_read, bytes_written; /* device memory traffic of a kernel; 0 for collectives */
};

/* A parameter block of one rank: rows x sum(part_cols) of the whole matrix's rows x cols, flattened
 * and, where sharded_z, cut in Gz equal shards padded with zeros. A vector has rows = 1. */
enum { S4D_PARTS = 3 };
enum s4d_initialiser { S4D_INIT_ZERO, S4D_INIT_ONE, S4D_INIT_NORMAL };
struct s4d_param {
    const char *name; /* "layers.3.mlp.up.weight" */
    /* The Hugging Face tensor it is saved as, "h.3.mlp.c_fc.weight": rows x sum(part_cols), or its
     * transpose. Where hf_part_name[0] is set every part is a tensor of its own by that name, rows
     * x part_cols[i] or transposed, and hf_name only says what they are together. */
    const char *hf_name, *hf_part_name[S4D_PARTS];
    bool hf_transposed; /* (out, in), as torch.nn.Linear; false: (in, out), as GPT-2's Conv1D */
    int64_t rows, part_cols[S4D_PARTS]; /* of the whole tensor; parts lie side by side in the
                                           columns (q, k, v) */
    int parts;
    int layer;              /* transformer layer; -1 outside */
    int64_t padded_rows;    /* rows rounded up to a multiple of Grow (vocabulary); rows otherwise */
    int row_axis, col_axis; /* the axis that splits rows, columns (each part by itself); -1: none */
    bool sharded_z;
    int64_t block_elements; /* of one (x, y) block */
    int64_t shard_elements; /* of this rank's shard, padding included; = block_elements unless
                               sharded_z */
    int64_t flat_offset;    /* elements, in the flat buffers of its class (sharded or replicated) */
    int master, working,
        gradient; /* tensors: 1-d views of this rank's shard; working = master in f32, f64 */
    enum s4d_initialiser init;
    double init_std;
    s4d_axes replicated; /* ranks that differ in these axes hold the same elements */
    s4d_axes summed;     /* its gradient is summed over these: {data} or {z, data} */
    bool decay;          /* weight decay applies (matrices) */
};

struct s4d_program {
    /* Of a pipe: whose ranks run it (their coordinate); and the programs of all its stages, by
     * stage, this one among them (borrowed). NULL: this one is what all ranks run. */
    int stage;
    const struct s4d_program *const *stages;
    struct s4d_model model;
    struct s4d_grid grid;
    struct s4d_options options;
    int micro_batches; /* an iteration, = B / (Gz Gdata b) */
    int64_t tokens;    /* T = b s, of one rank and micro-batch */
    struct s4d_storage *storages;
    int n_storages, cap_storages;
    struct s4d_tensor *tensors;
    int n_tensors, cap_tensors;
    struct s4d_op *ops;
    int n_ops, cap_ops;
    struct s4d_param *params;
    int n_params, cap_params;
    int stream_length[S4D_STREAMS]; /* ops in each stream */
    int loss;      /* scalar tensor: the mean loss of the iteration, after all reductions */
    int grad_norm; /* scalar tensor, -1 without clipping and loss scaling */
    int lr, step, loss_scale, denominator, found_inf; /* scalar tensors; -1 where not used */
    int tokens_host;         /* i32 tensor (micro-batches * b, s + 1) that read-tokens fills */
    int64_t arena_bytes[2];  /* of each place, set by the memory plan; -1 before */
    struct s4d_arena memory; /* owns names, waits */
};

void s4d_program_free(struct s4d_program *program);

/* What ranks at this coordinate of the pipe run. */
const struct s4d_program *s4d_stage_program(const struct s4d_program *program, int stage);
/* The list indices of the first and the last op of op's batch; op itself where it has none. */
int s4d_batch_first(const struct s4d_program *program, int op);
int s4d_batch_last(const struct s4d_program *program, int op);

/* The element of the whole tensor (row * cols + col, parts side by side) that element i of the
 * shard of the rank at `coordinate` holds; -1 for padding. Initial weights, saving and loading all
 * go through this map. */
int64_t s4d_param_global_index(const struct s4d_program *p, const struct s4d_param *param,
                               const int coordinate[S4D_AXES], int64_t i);
int64_t s4d_param_cols(const struct s4d_param *param); /* of the whole tensor: sum of part_cols */

int64_t s4d_tensor_elements(const struct s4d_tensor *t);
/* The first byte and one past the last byte of the storage that any rank's view may touch. */
void s4d_tensor_range(const struct s4d_program *p, int tensor, int64_t *first, int64_t *last);

#endif
