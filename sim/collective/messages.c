/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective/messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/collective/channels.h"
#include "support/memory.h"

enum { WINDOW = 2 };

struct need_of {
    int user;
    struct s4d_need need;
};

struct building {
    struct s4d_messages *m;
    struct need_of *needs;
    int n_needs, cap_needs, cap_edges;
    bool *down; /* by edge */
    int cap_down;
};

static void add_need(struct building *b, int user, int edge, int lag)
{
    s4d_push(b->needs, b->n_needs, b->cap_needs, (struct need_of){user, {edge, lag}});
}

/* An edge among edges first to end - 1 that ends where e begins, in the same direction; from
 * `after` on. -1: none. */
static int into(const struct building *b, int e, bool down, int after, int end)
{
    for (int i = after; i < end; i++)
        if (b->m->edge[i].to == b->m->edge[e].from && b->down[i] == down)
            return i;
    return -1;
}

/* Every edge follows the one before it on its ring; returns the longest ring's edges. */
static int go_round(struct building *b, int first, int end)
{
    int longest = 0, *before = s4d_malloc((size_t)(end - first) * sizeof *before);
    for (int e = first; e < end; e++) {
        before[e - first] = into(b, e, false, first, end);
        S4D_ASSERT(before[e - first] >= 0, "a ring is open at %d", b->m->edge[e].from);
        add_need(b, e, before[e - first], 1);
    }
    for (int e = first; e < end; e++) {
        int length = 0, at = e;
        for (; before[at - first] >= 0; length++) { /* once round, leaving marks */
            int next = before[at - first];
            before[at - first] = -1;
            at = next;
        }
        longest = length > longest ? length : longest;
    }
    free(before);
    return longest;
}

/* What feeds an edge: those into its end in its direction; at the root those that came up. */
static bool feeds_down(const struct building *b, int e, int first, int end)
{
    return b->down[e] && into(b, e, true, first, end) >= 0;
}

static int depth(const struct building *b, int e, int first, int end, int *known)
{
    if (known[e - first] > 0)
        return known[e - first];
    bool down = feeds_down(b, e, first, end);
    int most = 0;
    for (int f = into(b, e, down, first, end); f >= 0; f = into(b, e, down, f + 1, end)) {
        int d = depth(b, f, first, end, known);
        most = d > most ? d : most;
    }
    return known[e - first] = most + 1;
}

static int go_along(struct building *b, int first, int end)
{
    int longest = 0, *known = s4d_calloc((size_t)(end - first), sizeof *known);
    for (int e = first; e < end; e++) {
        bool down = feeds_down(b, e, first, end);
        for (int f = into(b, e, down, first, end); f >= 0; f = into(b, e, down, f + 1, end)) {
            add_need(b, e, f, 0);
            add_need(b, f, e, WINDOW);
        }
        int d = depth(b, e, first, end, known);
        longest = d > longest ? d : longest;
    }
    free(known);
    return longest;
}

/* Adds a channel's edges and what they need of each other; returns the steps on its longest way. */
static int add_channel(struct building *b, const struct s4d_channel *channel, enum s4d_order order,
                       int times)
{
    struct s4d_messages *m = b->m;
    int first = m->n, steps = 1;
    for (int i = 0; i < channel->n_edges; i++) {
        const struct s4d_edge *e = &channel->edge[i];
        int n_down = m->n;
        s4d_push(b->down, n_down, b->cap_down, e->down);
        s4d_push(m->edge, m->n, b->cap_edges,
                 (struct s4d_message_edge){
                     .from = e->from, .to = e->to, .share = channel->share, .steps = 1});
    }
    if (order == S4D_AROUND) {
        steps = times * (go_round(b, first, m->n) - 1);
        for (int e = first; e < m->n; e++)
            m->edge[e].steps = steps;
    } else if (order == S4D_ALONG) {
        steps = go_along(b, first, m->n);
    }
    return steps;
}

/* Edges of this phase wait for what the phase before brings them. */
static void join_phases(struct building *b, int before, int first, int end)
{
    for (int e = first; e < end; e++)
        for (int i = before; i < first; i++)
            if (s4d_end_device(b->m->edge[i].to) == s4d_end_device(b->m->edge[e].from))
                add_need(b, e, i, S4D_LAG_ALL);
}

static int by_user(const void *a, const void *b)
{
    const struct need_of *x = a, *y = b;
    return (x->user > y->user) - (x->user < y->user);
}

static int by_needed(const void *a, const void *b)
{
    const struct need_of *x = a, *y = b;
    if (x->need.edge != y->need.edge)
        return (x->need.edge > y->need.edge) - (x->need.edge < y->need.edge);
    return by_user(a, b);
}

/* The lists, and where each edge's begin. */
static void make_lists(struct building *b)
{
    struct s4d_messages *m = b->m;
    size_t n = (size_t)b->n_needs;
    s4d_push(m->edge, m->n, b->cap_edges, (struct s4d_message_edge){.from = 0});
    m->need = s4d_malloc(n * sizeof *m->need + 1);
    m->user = s4d_malloc(n * sizeof *m->user + 1);
    if (n > 0)
        qsort(b->needs, n, sizeof *b->needs, by_user);
    for (int e = 0, at = 0; e < m->n; e++) {
        m->edge[e].needs = at;
        for (; at < b->n_needs && b->needs[at].user == e; at++)
            m->need[at] = b->needs[at].need;
    }
    if (n > 0)
        qsort(b->needs, n, sizeof *b->needs, by_needed);
    for (int e = 0, at = 0; e < m->n; e++) {
        m->edge[e].users = at;
        for (; at < b->n_needs && b->needs[at].need.edge == e; at++)
            m->user[at] = b->needs[at].user;
    }
    m->n--;
}

void s4d_messages_create(struct s4d_messages *m, const struct s4d_channels *ch, enum s4d_op_kind op,
                         const struct s4d_cost *cost)
{
    struct building b = {.m = m};
    *m = (struct s4d_messages){0};
    /* A ring reduces on its first time round, gathers on the second. */
    int times = op == S4D_OP_ALL_REDUCE && cost->first_phase == cost->last_phase ? 2 : 1;
    for (int phase = cost->first_phase, before = 0; phase <= cost->last_phase; phase++) {
        int first = m->n, longest = 0;
        for (int i = 0; i < ch->n; i++) {
            if (ch->channel[i].phase != phase)
                continue;
            int steps = add_channel(&b, &ch->channel[i], ch->algorithm->order, times);
            longest = steps > longest ? steps : longest;
        }
        join_phases(&b, before, first, m->n);
        before = first;
        m->steps += longest;
    }
    make_lists(&b);
    free(b.needs);
    free(b.down);
}

void s4d_messages_free(struct s4d_messages *m)
{
    free(m->edge);
    free(m->need);
    free(m->user);
    *m = (struct s4d_messages){0};
}

int s4d_edge_passes(const struct s4d_message_edge *e, const struct s4d_cost *cost,
                    const struct s4d_passes *passes)
{
    if (passes->fixed > 0)
        return passes->fixed;
    double block_B = cost->volume_B * e->share / e->steps;
    return (int)fmin(1 << 20, fmax(1, ceil(block_B / passes->chunk_B)));
}

double s4d_messages_count(const struct s4d_messages *m, const struct s4d_cost *cost,
                          const struct s4d_passes *passes)
{
    double sum = 0;
    for (int e = 0; e < m->n; e++)
        sum += (double)m->edge[e].steps * s4d_edge_passes(&m->edge[e], cost, passes);
    return sum;
}

struct s4d_edge_state {
    int done, all; /* messages */
    bool busy;
};

static bool may_send(const struct s4d_sending *s, int e)
{
    const struct s4d_message_edge *edge = &s->messages->edge[e];
    const struct s4d_edge_state *state = &s->state[e];
    if (state->busy || state->done == state->all)
        return false;
    for (int i = edge->needs; i < edge[1].needs; i++) {
        const struct s4d_need *need = &s->messages->need[i];
        const struct s4d_edge_state *other = &s->state[need->edge];
        int least = need->lag == S4D_LAG_ALL ? other->all : state->done + 1 - need->lag;
        if (other->done < least)
            return false;
    }
    return true;
}

static void arrived(void *context, int e);

static void send(void *context, int e)
{
    struct s4d_sending *s = context;
    const struct s4d_message_edge *edge = &s->messages->edge[e];
    s4d_engine_start(s->engine, edge->flow, s->volume_B * edge->share / s->state[e].all, arrived, s,
                     e);
}

static void try_edge(struct s4d_sending *s, int e)
{
    if (!may_send(s, e))
        return;
    s->state[e].busy = true;
    if (s->latency_s > 0 && s->state[e].done < s->messages->edge[e].steps)
        s4d_engine_timer(s->engine, s4d_engine_now_s(s->engine) + s->latency_s, send, s, e);
    else
        send(s, e);
}

static void arrived(void *context, int e)
{
    struct s4d_sending *s = context;
    const struct s4d_messages *m = s->messages;
    s->state[e].busy = false;
    s->left -= ++s->state[e].done == s->state[e].all;
    if (s->left == 0) {
        s->ended(s->context, s->tag);
        return;
    }
    try_edge(s, e);
    for (int i = m->edge[e].users; i < m->edge[e + 1].users; i++)
        try_edge(s, m->user[i]);
}

void s4d_sending_start(struct s4d_sending *s, struct s4d_engine *e, const struct s4d_messages *m,
                       const struct s4d_cost *cost, const struct s4d_passes *passes,
                       s4d_callback ended, void *context, int tag)
{
    S4D_ASSERT(m->n > 0, "a collective without edges");
    struct s4d_edge_state *state = s4d_realloc(s->state, (size_t)m->n * sizeof *state);
    *s = (struct s4d_sending){.messages = m,
                              .engine = e,
                              .volume_B = cost->volume_B,
                              .latency_s = (cost->latency_s - cost->fill_s) / m->steps,
                              .state = state,
                              .left = m->n,
                              .ended = ended,
                              .context = context,
                              .tag = tag};
    for (int i = 0; i < m->n; i++)
        state[i] = (struct s4d_edge_state){.all = m->edge[i].steps *
                                                  s4d_edge_passes(&m->edge[i], cost, passes)};
    for (int i = 0; i < m->n; i++)
        try_edge(s, i);
}

void s4d_sending_free(struct s4d_sending *s)
{
    free(s->state);
    *s = (struct s4d_sending){0};
}
