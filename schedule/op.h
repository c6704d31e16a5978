/* SPDX-License-Identifier: Apache-2.0 */
/* Op kinds: operands, constants and the exact arithmetic of each.
 *
 * Letters: T tokens of the micro-batch (b sequences of s), h the rank's share of a width, one row a
 * token. Every tensor is stored in its own element type; arithmetic is in fp32 (fp64 for f64
 * tensors). Types change only in a cast, an add or an op's output. Where an operand is marked (in
 * place) it may be the same tensor as the output. No op needs the host: learning rate, step, loss
 * scale, denominator, clip factor and found-inf are one-element device tensors of type f32 (f64 in
 * f64 programs). */
#ifndef S4D_SCHEDULE_OP_H
#define S4D_SCHEDULE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedule/grid.h" /* for: struct s4d_expr, s4d_axes */

enum s4d_type { S4D_F64, S4D_F32, S4D_BF16, S4D_F16, S4D_I64, S4D_I32, S4D_U16, S4D_U8, S4D_TYPES };
extern const char *const s4d_type_names[S4D_TYPES];
extern const int s4d_type_bytes[S4D_TYPES];

enum s4d_op_kind {
    /* D = op(A) op(B) + beta C with C = D: operands a, b, d (d accumulates if beta is 1). op(A) is
     * m x k, op(B) k x n, D m x n; leading dimensions are the views' row strides. c.gemm */
    S4D_OP_GEMM,

    /* Softmax attention of b sequences, heads x head_dim, causal: operands qkv, out, lse.
     * qkv (T, (heads + 2 kv_heads) head_dim) = [q | k | v]; out (T, heads head_dim); lse (b heads,
     * s) f32 is the log of the sum of exponentials of each row of scale q k^T, masked j > i. out =
     * softmax(scale q k^T) v. */
    S4D_OP_ATTENTION_FORWARD,
    /* operands qkv, out, lse, d_out, d_qkv; all of d_qkv is written. */
    S4D_OP_ATTENTION_BACKWARD,

    /* LayerNorm over the whole width `c.norm.width`, of which this rank holds h columns.
     * partial: operands x (T,h), sums (T,2): [sum x, sum x^2].
     * apply: x, sums (all-reduced), gain (h) f32, bias (h) f32, y: mean = S0/width, var = S1/width
     * - mean^2, r = 1/sqrt(var + epsilon), xhat = (x - mean) r, y = xhat gain + bias. */
    S4D_OP_NORM_PARTIAL,
    S4D_OP_NORM_APPLY,
    /* backward partial: x, sums, gain, dy, back_sums (T,2), d_gain (h) accumulated, d_bias (h)
     * accumulated: dxhat = dy gain; back_sums = [sum dxhat, sum dxhat xhat]; d_gain += sum_T dy
     * xhat; d_bias += sum_T dy. backward apply: x, sums, gain, dy, back_sums (all-reduced),
     * residual (optional, (T,h)), dx: dx = r (dxhat - B0/width - xhat B1/width) [+ residual]. (dy,
     * residual in place) */
    S4D_OP_NORM_BACKWARD_PARTIAL,
    S4D_OP_NORM_BACKWARD_APPLY,

    /* RMSNorm (arXiv 1910.07467) over the width `c.norm.width`, as LayerNorm without mean and bias.
     * partial: operands x (T,h), sums (T,1): sum x^2. apply: x, sums (all-reduced), gain (h) f32,
     * y: r = 1/sqrt(S/width + epsilon), xhat = x r, y = xhat gain. */
    S4D_OP_RMS_PARTIAL,
    S4D_OP_RMS_APPLY,
    /* backward partial: x, sums, gain, dy, back_sums (T,1), d_gain (h) accumulated: dxhat = dy
     * gain; B = sum dxhat xhat; d_gain += sum_T dy xhat. backward apply: x, sums, gain, dy,
     * back_sums (all-reduced), residual (optional, (T,h)), dx: dx = r (dxhat - xhat B/width) [+
     * residual]. (dy, residual in place) */
    S4D_OP_RMS_BACKWARD_PARTIAL,
    S4D_OP_RMS_BACKWARD_APPLY,

    /* Rotary positions (arXiv 2104.09864), half-split as Hugging Face's Llama has them: operand x
     * (T, heads head_dim) accumulated (a view of q|k: rows are further apart than their columns).
     * With d = head_dim, for i < d/2 of each head of token t: angle = (t mod seq) f(i), f(i) =
     * s4d_rotary_frequency; (x[i], x[i + d/2]) becomes (x[i] cos - x[i + d/2] sin, x[i + d/2] cos +
     * x[i] sin); inverse: angle = -(t mod seq) f(i), which is the backward. Frequency and angle are
     * in fp64 whatever the types. c.rotary */
    S4D_OP_ROTARY,

    /* y = f(x + bias): operands x (T,h), bias (h) f32 optional, y (in place). f:
       c.activation.function. */
    S4D_OP_ACTIVATION_FORWARD,
    /* operands x, bias optional, dy, dx: dx = dy f'(x + bias) (dy in place). */
    S4D_OP_ACTIVATION_BACKWARD,

    /* Gated linear unit (arXiv 2002.05202), x (T,2h) = [gate | up]: operands x, y (T,h): y =
     * f(gate) up. f: c.activation.function. */
    S4D_OP_GATED_FORWARD,
    /* operands x (T,2h), dy (T,h), dx (T,2h): dx = [dy up f'(gate) | dy f(gate)] (x in place). */
    S4D_OP_GATED_BACKWARD,

    /* y += bias on every row: operands bias (h) f32, y (T,h) accumulated. */
    S4D_OP_BIAS,
    /* out += sum over rows of x: operands x (T,h), out (h) accumulated. */
    S4D_OP_COLUMN_SUM,
    /* out = a + b [+ bias]: operands a (T,h), b (T,h), bias (h) f32 optional, out (in place on a or
       b). */
    S4D_OP_RESIDUAL,

    /* x = W[token - first] where first <= token < first + rows held, else 0: operands tokens (b,s)
     * i32, w (rows,h), x (T,h). c.embedding.first is the vocabulary row of row 0. */
    S4D_OP_EMBEDDING_FORWARD,
    /* d_w[token - first] += dx for own tokens: operands tokens, dx (T,h), d_w (rows,h) accumulated.
     */
    S4D_OP_EMBEDDING_BACKWARD,
    /* x[t] += p[t mod s]: operands p (s,h) f32, x (T,h) accumulated. */
    S4D_OP_POSITION_FORWARD,
    /* d_p[t mod s] += dx[t]: operands dx (T,h), d_p (s,h) accumulated. */
    S4D_OP_POSITION_BACKWARD,

    /* Goldfish loss (arXiv 2406.10209 sec. 3): targets that are kept, the others -1. Operands
     * tokens (rows, s + 1) i32, targets (rows, s) i32: target j of a row is token j + 1, unless j +
     * 1 >= context and s4d_goldfish_hash(tokens j + 1 - context .. j, context) is a multiple of k:
     * then it is -1. c.goldfish */
    S4D_OP_GOLDFISH,
    /* out = number of targets that are kept, those >= 0: operands targets (any, any) i32, out
       scalar. */
    S4D_OP_TOKEN_COUNT,
    /* Vocabulary-parallel cross entropy (Megatron-LM, arXiv 1909.08053 sec. 3). Columns from
     * c.loss.valid on are padding: they count as minus infinity. c.loss.first is the vocabulary row
     * of column 0. max: logits (T,v), max (T). After a max all-reduce: sum: logits, max, targets
     * (b,s), sums (T,2): [sum over valid exp(logit - max), target's logit if held, else 0]. After a
     * sum all-reduce: backward: logits, max, sums, targets, denominator, loss_scale (optional),
     * loss scalar accumulated, d_logits (in place on logits): for kept targets loss += log(S0) +
     * max - S1; d = (exp(logit - max)/S0 - [column is the target]) * loss_scale / denominator; 0
     * for padding columns and for targets that are not kept. */
    S4D_OP_LOSS_MAX,
    S4D_OP_LOSS_SUM,
    S4D_OP_LOSS_BACKWARD,
    /* loss = sum / denominator, the reported mean: operands sum, denominator, loss. */
    S4D_OP_LOSS_MEAN,

    S4D_OP_ADD,  /* out += x, elementwise, converting: operands x, out accumulated */
    S4D_OP_CAST, /* out = x, converting: operands x, out */
    S4D_OP_COPY, /* out = x, same type: operands x, out */
    S4D_OP_ZERO, /* out = 0: operand out */

    /* out[0] = sum over the first c.norm2.valid elements of (x / loss_scale)^2 [+ out[0] if
     * accumulated]; out[1] = 1 if any of those elements is not finite, else 0 [or stays 1]:
     * operands x, loss_scale optional, out (2). The valid count makes each parameter count once. */
    S4D_OP_SQUARED_NORM,
    /* parts (members,2), gathered in rank order: norm = sqrt(sum of parts[i][0] in that order);
     * found_inf = any parts[i][1]; clip = min(1, clip_norm / (norm + 1e-6)), 1 if clip_norm is 0:
     * operands parts, norm, found_inf, clip. c.clip */
    S4D_OP_CLIP_FACTOR,
    /* step += 1 unless found_inf: operands found_inf optional, step accumulated. */
    S4D_OP_STEP,
    /* AdamW (arXiv 1711.05101) on n elements, nothing at all where found_inf is set: operands
     * gradient, loss_scale optional, clip optional, found_inf optional, lr, step, m accumulated, v
     * accumulated, master accumulated, working (optional, written): g = gradient / loss_scale *
     * clip; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; master -= lr * ((m / (1 - b1^step)) /
     * (sqrt(v / (1 - b2^step)) + epsilon) + weight_decay * master); working = master. c.adamw */
    S4D_OP_ADAMW,
    /* Dynamic loss scale: on found_inf scale = max(scale / 2, 1), good = 0; else good += 1 and
     * after c.scale.interval good steps scale *= 2, good = 0: operands found_inf, loss_scale
     * accumulated, good accumulated. */
    S4D_OP_SCALE_UPDATE,

    /* Collectives over the group of c.collective.axes. in = out or disjoint for all-reduce.
     * all-gather: out holds the members' blocks in group order; in may be the view at the own
     * block. reduce-scatter: in has members blocks, out is the sum of the own block, never inside
     * in. Operands in, out. c.collective.count elements per member: of the buffer for an
     * all-reduce, of one block for the other two. */
    S4D_OP_ALL_REDUCE,
    S4D_OP_ALL_GATHER,
    S4D_OP_REDUCE_SCATTER,

    /* A message of c.message.count elements to, or from, the rank whose coordinates differ by
     * c.message.peer in pipe and in no other axis: operand in, or out. Messages of one channel
     * between two ranks match in the order of their lists. c.message */
    S4D_OP_SEND,
    S4D_OP_RECEIVE,

    /* Host stream: fills the pinned tensor tokens (micro-batches * b, s + 1) i32 with this
     * iteration's sequences [c.read_tokens.first, + micro-batches * b) of the global batch: operand
     * tokens. */
    S4D_OP_READ_TOKENS,
    S4D_OP_HOST_TO_DEVICE, /* operands host, device: same shape and type */
    S4D_OP_DEVICE_TO_HOST, /* operands device, host */
    S4D_OP_KINDS
};

enum s4d_op_class {
    S4D_CLASS_GEMM,
    S4D_CLASS_ATTENTION,
    S4D_CLASS_KERNEL,
    S4D_CLASS_COLLECTIVE,
    S4D_CLASS_MESSAGE, /* send and receive */
    S4D_CLASS_COPY,
    S4D_CLASS_HOST
};

/* A constant of an op kind: where it lies in the union. */
enum s4d_constant_type {
    S4D_CONSTANT_INT, /* int64_t */
    S4D_CONSTANT_REAL,
    S4D_CONSTANT_BOOL,
    S4D_CONSTANT_FUNCTION, /* enum s4d_function */
    S4D_CONSTANT_EXPR      /* struct s4d_expr */
};
struct s4d_constant {
    const char *name;
    enum s4d_constant_type type;
    size_t offset;
};

enum { S4D_OPERANDS = 10 };
struct s4d_op_info {
    const char *name; /* "gemm", "all-gather" */
    enum s4d_op_class op_class;
    int n_operands;
    struct {
        const char *name; /* "a", "qkv", ... */
        char access; /* 'r' read, 'w' write, 'a' accumulate, 'b' accumulate or write (see the op's
                        operand) */
        bool optional;
        /* Type, a blank, shape. Types: f any float, a the accumulator's (f32, or f64), i i32, =
         * that of the first operand, ? any. Shapes: two letters are rows and columns (the last
         * dimension), one letter is a number of elements; a letter takes its value where it is
         * first met and keeps it; a digit is itself; - is checked elsewhere or not at all. */
        const char *contract;
    } operand[S4D_OPERANDS];
    const struct s4d_constant *constants; /* ends with a NULL name; NULL: none, or those of a
                                             collective or a message */
};
extern const struct s4d_op_info s4d_op_kinds[S4D_OP_KINDS];
bool s4d_communicates(enum s4d_op_kind kind); /* a collective, a send or a receive */
enum { S4D_COMMUNICATIONS = S4D_OP_RECEIVE - S4D_OP_ALL_REDUCE + 1 }; /* kinds that do */

enum s4d_function {
    S4D_GELU_TANH, /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    S4D_SILU,      /* x / (1 + exp(-x)) */
    S4D_FUNCTIONS
};
extern const char *const s4d_function_names[S4D_FUNCTIONS];
enum s4d_reduction { S4D_SUM, S4D_MAX };

/* Of messages: from each stage of the pipe to the next one, to the one before, and between the
 * first and the last. */
enum s4d_pipe_channel { S4D_CHANNEL_FORWARD, S4D_CHANNEL_BACKWARD, S4D_CHANNEL_ENDS, S4D_CHANNELS };
extern const char *const s4d_channel_names[S4D_CHANNELS];

union s4d_constants {
    struct {
        int64_t m, n, k;
        bool transpose_a, transpose_b;
        double beta; /* 0 or 1 */
    } gemm;
    struct {
        int64_t batch, seq, heads, kv_heads, head_dim;
        double scale;
        bool causal;
    } attention;
    struct {
        int64_t width;
        double epsilon;
    } norm;
    struct {
        enum s4d_function function;
    } activation;
    struct {
        int64_t seq, heads, head_dim;
        double theta;
        double factor, low, high, original; /* Llama-3's frequency scaling; factor 0: none */
        bool inverse;
    } rotary;
    struct {
        int64_t k, context;
    } goldfish;
    struct {
        struct s4d_expr first;
    } embedding;
    struct {
        struct s4d_expr first, valid;
    } loss;
    struct {
        struct s4d_expr valid;
        bool accumulate;
    } norm2;
    struct {
        double clip_norm;
    } clip;
    struct {
        double beta1, beta2, epsilon, weight_decay;
    } adamw;
    struct {
        int64_t interval;
    } scale;
    struct {
        s4d_axes axes;
        enum s4d_reduction reduction;
        enum s4d_type type; /* on the wire = of both operands */
        int64_t count;
        int members;
    } collective;
    struct {
        enum s4d_pipe_channel channel;
        int peer;           /* its coordinate in pipe less the own */
        enum s4d_type type; /* = of the operand */
        int64_t count;
    } message;
    struct {
        struct s4d_expr first;
    } read_tokens;
};

/* Radians a token that pair i of a head turns by: f = theta^(-2i / head_dim). With frequency
 * scaling (Llama 3.1; Hugging Face's modeling_rope_utils.py, "llama3"), with wavelength w = 2 pi /
 * f: f where w < original / high, f / factor where w > original / low, and between them (1 - m) f /
 * factor + m f with m = (original / w - low) / (high - low). */
double s4d_rotary_frequency(const union s4d_constants *c, int64_t i);
/* Of n tokens: 64-bit FNV-1a over their little-endian 32-bit words, a word at a time (h = (h xor
 * token) * 0x100000001b3 from 0xcbf29ce484222325), then murmur3's 64-bit finaliser, so that every
 * bit of every token reaches the low bits. */
uint64_t s4d_goldfish_hash(const int32_t *tokens, int64_t n);

/* Bytes the library is asked to move, as nccl-tests counts them: the buffer of an all-reduce,
 * members * count for the other two collectives, the message of a send or a receive. */
int64_t s4d_collective_bytes(const union s4d_constants *c, enum s4d_op_kind kind);
/* nccl-tests' factor from algorithm bandwidth (these bytes / time) to bus bandwidth:
 * 2(p-1)/p for all-reduce, (p-1)/p for all-gather and reduce-scatter, 1 for send and receive. */
double s4d_bus_factor(enum s4d_op_kind kind, int members);

#endif
