/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of scale4d track: one file each (cli/track/NAME.c), one row in cli/track.c's
 * table. */
#ifndef S4D_CLI_TRACK_TRACK_H
#define S4D_CLI_TRACK_TRACK_H

#include <stdio.h>

#include "plots/track/store.h"
#include "support/option.h"

struct s4d_track_command {
    const char *name, *summary;
    /* argv[0] is "scale4d track NAME". Returns the exit code; prints its own errors. */
    int (*run)(int argc, char **argv);
};
extern const struct s4d_track_command s4d_track_add, s4d_track_list, s4d_track_show,
    s4d_track_export, s4d_track_annotate, s4d_track_prune, s4d_track_check;
extern const struct s4d_track_command s4d_track_verdict, s4d_track_report, s4d_track_predict;

/* Of every subcommand: --store FILE, into a char * at the beginning of the command's struct. */
extern const struct s4d_option s4d_track_store_option[];

/* What a user calls a series: its number, or a part of its label that no other has. *at: its place
 * in the list. 0, or -1 (exit 65). */
int s4d_track_series(const struct s4d_series_list *list, const char *text, int *at,
                     struct s4d_error *err);
/* YYYY-MM-DD, or today (UTC; of SOURCE_DATE_EPOCH where that is set), as a day; for struct
 * s4d_option's parse, into an int. */
int s4d_track_parse_night(const char *text, void *field, struct s4d_error *err);
/* The same option's default, for --help. */
void s4d_track_format_night(const void *field, char *text, int size);
/* The option, of a struct's int. */
#define S4D_TRACK_NIGHT_OPTION(at, words)                                                          \
    {                                                                                              \
        .name = "night", .argument = "DATE", .type = S4D_OPT_PARSE,                                \
        .parse = s4d_track_parse_night, .format = s4d_track_format_night, .offset = (at),          \
        .help = words                                                                              \
    }
/* Says so where the night that was judged is the store's last, and of the future: a record with a
 * wrong date would hide all nights until then. */
void s4d_track_warn_future(int asked, int judged);
/* A series as JSON: {id, label, host_class, ..., options, nights, records, first, last}. New
 * reference. */
json_t *s4d_track_series_json(const struct s4d_series *series);

#endif
