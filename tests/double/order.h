/* SPDX-License-Identifier: Apache-2.0 */
/* What order.c, events.c and graph.c share: streams, events, and work that is captured. */
#ifndef S4D_TESTS_DOUBLE_ORDER_H
#define S4D_TESTS_DOUBLE_ORDER_H

#include "tests/double/double.h"

/* An order of preference among n that holds for a while. Zeroed: a new one is drawn. */
struct s4d_double_order {
    int left, first, stride, n;
};
/* It holds for less by a step, or a new one is drawn: true. The i-th of the n; a skew, mostly 0. */
bool s4d_double_hold(struct s4d_double_order *order, int n, int by);
int s4d_double_ith(const struct s4d_double_order *order, int i, int skew);
int s4d_double_skew(int n);

/* Nodes of a graph: those that what is captured next comes after. */
struct s4d_double_ends {
    int *v, n, cap;
};

/* A handle that CUDA hands out is an address here, never used again after it was destroyed. */
struct CUstream_st {
    struct item *head, **tail;
    uint64_t done, appended;
    bool live, used;                    /* used: since a sleeper was chosen */
    int queue;                          /* of the GPU's */
    struct s4d_double_capture *capture; /* NULL: it does not capture */
    int lane;                           /* in that */
    bool launches;                      /* graphs */
    struct s4d_double_ends ends;
};
/* A record of an event, which comes once. */
struct s4d_double_moment {
    int users;
    bool came, of_graph;
    int64_t ticks;
};
struct CUevent_st {
    struct s4d_double_moment *latest; /* NULL: none yet */
    struct CUgraph_st *captured;      /* where it was recorded last, if that was in a capture */
    struct s4d_double_ends ends;
    bool live;
};

/* order.c: a turn's work on an item that has more to do. */
void s4d_double_went_on(void);
void s4d_double_new(void); /* the host hears that an event has come */

/* events.c */
struct s4d_double_moment *s4d_double_expect(cudaEvent_t event); /* its latest record from now on */
/* Steps, of a struct s4d_double_moment *: it comes, once; it is waited for. */
bool s4d_double_come(void *data);
bool s4d_double_wait(void *data);

/* graph.c: streams that capture. `event`: of an external record. */
void s4d_double_capture(cudaStream_t stream, bool (*step)(void *data), const void *data,
                        size_t bytes, cudaEvent_t event);
void s4d_double_capture_record(cudaStream_t stream, cudaEvent_t event);
cudaError_t s4d_double_capture_wait(cudaStream_t stream, cudaEvent_t event);
bool s4d_double_is_origin(cudaStream_t stream);     /* of the capture that it is in */
void s4d_double_capture_leave(cudaStream_t stream); /* it is destroyed */
bool s4d_double_launch_step(void *data);            /* a step, of what a launch appended */
bool s4d_double_launch_has(const void *data, s4d_double_is is, const void *of);

#endif
