/* SPDX-License-Identifier: Apache-2.0 */
/* One line for mail or chat: what a verdict says, else a line a run with the numbers people know.
 */
#include <stdlib.h>
#include <string.h>

#include "plots/format/format.h"
#include "plots/track/store.h" /* for: s4d_date */
#include "support/quote.h"     /* for: one line, whatever a name or message holds */
#include "support/units.h"

/* The figures people ask for, in their order; the first that is there stands for the run. */
static const struct figure {
    const char *name;
    const char *(*format)(double value, char *text, int size);
} figures[] = {{"flops_per_s", s4d_format_flops},
               {"iteration_time_s", s4d_format_time},
               {"busbw_Bps", s4d_format_bandwidth},
               {"gemm_flops_per_s", s4d_format_flops}};

static void write_numbers(const struct s4d_outcome *o, FILE *out)
{
    const char *between = ": ";
    char text[64];
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        for (int k = 0; k < o->n; k++)
            if (strcmp(o->v[k].name, figures[i].name) == 0) {
                fprintf(out, "%s%s%s", between,
                        strcmp(o->v[k].name, "gemm_flops_per_s") == 0 ? "GEMM " : "",
                        figures[i].format(o->v[k].value, text, sizeof text));
                between = ", ";
            }
}

int s4d_write_summary(const struct s4d_outcomes *outcomes, FILE *out, struct s4d_error *err)
{
    (void)err;
    if (outcomes->text) {
        s4d_print_line(outcomes->text, out);
        putc('\n', out);
        return 0;
    }
    for (int i = 0; i < outcomes->n; i++) {
        const struct s4d_outcome *o = &outcomes->v[i];
        fprintf(out, "%s ", s4d_date(o->night).text);
        s4d_print_line(o->label, out);
        write_numbers(o, out);
        if (o->failure) {
            fputs(": FAILED: ", out);
            s4d_print_line(o->failure, out);
        }
        putc('\n', out);
    }
    return 0;
}
