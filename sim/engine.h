/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated time, links and flows, over SimGrid (sim/engine_simgrid.cpp is the only file that knows
 * it).
 *
 * A flow crosses links with integer weights: at rate r it uses weight * r of each. Rates are
 * max-min fair. Routes are ours; latency is paid by the caller with a timer. A process can create
 * one engine in its life (SimGrid is a singleton, and outlives it: s4d_isolated in sim/isolate.h
 * runs each simulation in a child). Same calls, same times, to the last bit. */
#ifndef S4D_SIM_ENGINE_H
#define S4D_SIM_ENGINE_H

#ifdef __cplusplus
extern "C" {
#endif

struct s4d_engine;
typedef void (*s4d_callback)(void *context, int tag);

struct s4d_engine *s4d_engine_create(void);
void s4d_engine_destroy(struct s4d_engine *e);

int s4d_engine_link(struct s4d_engine *e,
                    double capacity_Bps); /* before seal; returns 0, 1, 2, ... */
int s4d_engine_flow(struct s4d_engine *e, const int *links, const int *weights,
                    int n); /* a path, usable many times */
void s4d_engine_seal(struct s4d_engine *e);

/* Moves bytes along the flow's path from now; calls back when the last byte has arrived. A flow may
 * be started again, also while an earlier start is still running. 0 < bytes < 2^60. */
void s4d_engine_start(struct s4d_engine *e, int flow, double bytes, s4d_callback done,
                      void *context, int tag);

/* Calls back at time t_s >= now. */
struct s4d_timer;
struct s4d_timer *s4d_engine_timer(struct s4d_engine *e, double t_s, s4d_callback fire,
                                   void *context, int tag);
void s4d_engine_cancel(struct s4d_engine *e, struct s4d_timer *timer);

double s4d_engine_now_s(const struct s4d_engine *e);
void s4d_engine_run(struct s4d_engine *e); /* until no event is left */
/* Of a watcher's call: what flows use of the link in the span of time that has just passed. */
double s4d_engine_usage_Bps(const struct s4d_engine *e, int link);
/* Calls back whenever time has advanced, before anything happens then; tag is 0. */
void s4d_engine_watch(struct s4d_engine *e, s4d_callback advanced, void *context);

#ifdef __cplusplus
}
#endif
#endif
