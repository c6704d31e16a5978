/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/track/attribution.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/memory.h"

const char *const s4d_exposed_names[S4D_EXPOSED] = {"compute", "x", "y", "z", "data", "other"};
static const enum s4d_split_part of_exposed[S4D_EXPOSED] = {
    S4D_SPLIT_COMPUTE, S4D_SPLIT_X, S4D_SPLIT_Y, S4D_SPLIT_Z, S4D_SPLIT_DATA, S4D_SPLIT_OTHER};

/* --- by rates ------------------------------------------------------------------------------- */

/* Whose part a stream's collectives are: as exposed_s counts them. */
static enum s4d_split_part part_of_stream(int stream)
{
    switch (stream) {
    case S4D_STREAM_X:
        return S4D_SPLIT_X;
    case S4D_STREAM_Y:
        return S4D_SPLIT_Y;
    case S4D_STREAM_Z_GATHER:
    case S4D_STREAM_Z_SCATTER:
        return S4D_SPLIT_Z;
    case S4D_STREAM_DATA:
    case S4D_STREAM_Z_DATA:
        return S4D_SPLIT_DATA;
    default:
        return S4D_SPLIT_OTHER;
    }
}

static unsigned differing(const struct s4d_night_state *a, const struct s4d_night_state *b)
{
    unsigned differ = 0;
    if (memcmp(a->rates.op_class, b->rates.op_class, sizeof a->rates.op_class) != 0)
        differ |= 1u << S4D_SPLIT_COMPUTE;
    for (int s = 0; s < S4D_STREAMS; s++)
        if (a->rates.stream[s] != b->rates.stream[s])
            differ |= 1u << part_of_stream(s);
    if (a->slow != b->slow || a->slow_rank != b->slow_rank)
        differ |= 1u << S4D_SPLIT_SLOW_NODE;
    return differ;
}

/* The causes of `after` as after, all else as before. */
static struct s4d_night_state mix(const struct s4d_night_state *before,
                                  const struct s4d_night_state *after, unsigned mask)
{
    struct s4d_night_state state = mask >> S4D_SPLIT_SLOW_NODE & 1 ? *after : *before;
    state.rates = mask >> S4D_SPLIT_COMPUTE & 1 ? after->rates : before->rates;
    for (int s = 0; s < S4D_STREAMS; s++)
        state.rates.stream[s] = (mask >> part_of_stream(s) & 1 ? after : before)->rates.stream[s];
    return state;
}

/* A part that was measured only on one side cannot be a cause. */
static void keep_common(struct s4d_night_rates *a, struct s4d_night_rates *b)
{
    double *of[][2] = {{&a->gemm_flops_per_s, &b->gemm_flops_per_s},
                       {&a->gemm_s, &b->gemm_s},
                       {&a->attention_s, &b->attention_s},
                       {&a->kernels_s, &b->kernels_s}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (isnan(*of[i][0]) || isnan(*of[i][1]))
            *of[i][0] = *of[i][1] = NAN;
    for (int s = 0; s < S4D_STREAMS; s++)
        if (isnan(a->busbw_Bps[s]) || isnan(b->busbw_Bps[s]))
            a->busbw_Bps[s] = b->busbw_Bps[s] = NAN;
}

/* All as before, but the rates of one cause off by their standard errors. */
static struct s4d_night_state off_by(const struct s4d_night_state *before,
                                     const struct s4d_rate_noise *error, enum s4d_split_part cause)
{
    struct s4d_night_state state = *before;
    double *class = state.rates.op_class;
    if (cause == S4D_SPLIT_COMPUTE) {
        class[S4D_CLASS_GEMM] /= 1 + error->gemm;
        class[S4D_CLASS_ATTENTION] /= 1 + error->attention;
        class[S4D_CLASS_KERNEL] /= 1 + error->kernels;
    }
    if (cause == S4D_SPLIT_SLOW_NODE)
        state.slow /= 1 + error->slowest;
    for (int s = 0; s < S4D_STREAMS; s++)
        if (part_of_stream(s) == cause)
            state.rates.stream[s] /= 1 + error->busbw[s];
    return state;
}

static int simulate(struct s4d_attribution *a, const struct s4d_replay *r, struct s4d_error *err)
{
    unsigned masks[S4D_SPLIT_MASKS];
    struct s4d_night_state before = s4d_replay_state(r, &a->before),
                           after = s4d_replay_state(r, &a->after),
                           states[S4D_SPLIT_MASKS + S4D_SPLIT_CAUSES];
    double time_s[S4D_SPLIT_MASKS + S4D_SPLIT_CAUSES], part_s[S4D_SPLIT_CAUSES];
    struct s4d_rate_noise error = s4d_rate_errors(&a->before, &a->after);
    if (!a->before.slowest.host[0] || !a->after.slowest.host[0])
        before.slow = after.slow = 1;
    unsigned differ = differing(&before, &after);
    int n = s4d_split_masks(differ, masks);
    for (int i = 0; i < n; i++)
        states[i] = mix(&before, &after, masks[i]);
    int at[S4D_SPLIT_CAUSES] = {0}, all = n; /* where each cause is off; 0: nowhere */
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++) {
        states[all] = off_by(&before, &error, (enum s4d_split_part)i);
        if (differing(&before, &states[all]))
            at[i] = all++;
    }
    if (s4d_replay_times(r, states, all, time_s, err))
        return -1;
    s4d_split(differ, time_s, part_s);
    a->simulated_s[0] = time_s[0];
    a->simulated_s[1] = time_s[n - 1];
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++)
        a->part[i] = part_s[i] / time_s[0];
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++)
        a->error[i] = fabs(time_s[at[i]] / time_s[0] - 1);
    snprintf(a->machine, sizeof a->machine, "%s", r->made ? "made of the rates" : r->machine.name);
    return 0;
}

static int by_rates(struct s4d_attribution *a, const json_t *record,
                    const struct s4d_replay_options *options, struct s4d_error *err)
{
    struct s4d_replay replay;
    keep_common(&a->before, &a->after);
    if (s4d_replay_open(&replay, record, &a->before, options, err))
        return -1;
    int rc = simulate(a, &replay, err);
    s4d_replay_free(&replay);
    return rc;
}

/* --- by the records themselves -------------------------------------------------------------- */

static bool by_exposed(struct s4d_attribution *a)
{
    double before_s = a->exposed[0].iteration_s;
    if (a->exposed[0].records == 0 || a->exposed[1].records == 0 || !(before_s > 0))
        return false;
    for (int i = 0; i < S4D_EXPOSED; i++)
        a->part[of_exposed[i]] = (a->exposed[1].part_s[i] - a->exposed[0].part_s[i]) / before_s;
    return true;
}

static void finish(struct s4d_attribution *a)
{
    double sum = 0, squares = a->ratio_error * a->ratio_error;
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++) {
        sum += a->part[i];
        squares += a->error[i] * a->error[i];
    }
    a->part[S4D_SPLIT_UNEXPLAINED] = a->ratio - 1 - sum;
    a->error[S4D_SPLIT_UNEXPLAINED] = a->by == S4D_BY_RATES ? sqrt(squares) : 0;
}

void s4d_attribute(struct s4d_attribution *a, const json_t *record,
                   const struct s4d_replay_options *options)
{
    struct s4d_error err = {0};
    const char *kind = json_string_value(json_object_get(record, "kind"));
    a->by = S4D_BY_NOTHING;
    a->simulated_s[0] = a->simulated_s[1] = NAN;
    if (isnan(a->ratio))
        return;
    if (strcmp(kind ? kind : "", "simulate") == 0)
        a->note[0] = '\0'; /* that what was simulated changed is a matter of commits */
    else if (a->before.records == 0 || a->after.records == 0)
        snprintf(a->note, sizeof a->note, "no rates were measured %s",
                 a->before.records + a->after.records == 0 ? "in these nights"
                 : a->before.records == 0                  ? "before the change"
                                                           : "since the change");
    else if (by_rates(a, record, options, &err) == 0)
        a->by = S4D_BY_RATES;
    else
        snprintf(a->note, sizeof a->note, "not simulated: %.120s%s%.240s", err.where,
                 err.where[0] ? ": " : "", err.text);
    if (a->by == S4D_BY_NOTHING && by_exposed(a))
        a->by = S4D_BY_EXPOSED;
    if (a->by != S4D_BY_NOTHING)
        finish(a);
}
