/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the verdict: each looks at one series and adds its findings. */
#ifndef S4D_PLOTS_TRACK_VERDICT_INTERNAL_H
#define S4D_PLOTS_TRACK_VERDICT_INTERNAL_H

#include "plots/track/reference.h"
#include "plots/track/verdict.h"

/* A number for people in the metric's unit: "412.1 TFLOP/s", "1.50 ms", "15.2 GiB". */
struct s4d_shown {
    char text[48];
};
struct s4d_shown s4d_metric_shown(const struct s4d_metric *metric, double value);

/* Whether a change to `part` of the level before is for the worse: +1, -1: for the better, 0: the
 * metric has no direction. */
int s4d_worse(const struct s4d_metric *metric, double before, double after);

/* Whether all is the same but model_version. */
bool s4d_series_but_model(const struct s4d_series *a, const struct s4d_series *b);

/* A finding without text; the verdict owns it. Pointers to others are lost. */
struct s4d_finding *s4d_finding_add(struct s4d_verdict *verdict, enum s4d_finding_kind kind,
                                    enum s4d_standing standing, const struct s4d_series *series);
/* Of a sorted list: puts findings of rates under those whose cause they show, and counts. */
void s4d_verdict_group(struct s4d_verdict *verdict);
/* Says it in one line, from its fields. */
void s4d_finding_say(struct s4d_finding *finding);

/* Names what else changed with it, and says the finding again. 0, or -1 with the store's error. */
int s4d_verdict_environment(struct s4d_finding *finding, struct s4d_store *store,
                            struct s4d_error *err);

/* Change points of a measured series whose last night is the verdict's. *nights: how many were
 * judged, of the metric with most. */
int s4d_verdict_changes(struct s4d_verdict *verdict, const struct s4d_series *series,
                        const struct s4d_history *history, int *nights, struct s4d_error *err);
void s4d_verdict_references(struct s4d_verdict *verdict, struct s4d_references *references,
                            const struct s4d_series *series, const struct s4d_history *history);
/* A simulated series against its own night before, or, on its first night, against that of the same
 * inputs with another model_version. */
int s4d_verdict_simulated(struct s4d_verdict *verdict, struct s4d_store *store,
                          const struct s4d_series *series, int *nights, struct s4d_error *err);

#endif
