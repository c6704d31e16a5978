/* SPDX-License-Identifier: Apache-2.0 */
/* One table of options feeds the command line (argp), --help, YAML keys, and the run record, so
 * they cannot drift apart.
 *
 * An option named "micro-batch" is --micro-batch on the command line and micro_batch in YAML and in
 * records. A table is an array that ends with a row without a name; a command takes several tables
 * that fill one struct. */
#ifndef S4D_SUPPORT_OPTION_H
#define S4D_SUPPORT_OPTION_H

#include <jansson.h>
#include <stddef.h>

#include "support/error.h"
#include "support/yaml.h" /* for: struct s4d_yaml_node */

enum s4d_option_type {
    S4D_OPT_FLAG,   /* bool; no argument on the command line, true or false in YAML */
    S4D_OPT_INT,    /* int in [min, max]; plain decimal digits only: "4k" and "1e9" are errors */
    S4D_OPT_NUMBER, /* double in [min, max]; a plain decimal number */
    /* The next four in [min, max] unless both are 0. */
    S4D_OPT_SIZE, /* int64_t bytes; command line: plain or K M G (binary), YAML: needs a unit */
    S4D_OPT_BANDWIDTH, /* double bytes/s, "25 GB/s", "200 Gb/s" */
    S4D_OPT_TIME,      /* double seconds, "2 us" */
    S4D_OPT_RATE,      /* double FLOP/s, "312 TFLOP/s" */
    S4D_OPT_TEXT,      /* char *, owned by the struct */
    S4D_OPT_LIST,      /* struct s4d_texts; may be given several times */
    S4D_OPT_CHOICE,    /* int, index into choices (ends with NULL) */
    S4D_OPT_PARSE      /* parse(text, field, err) fills the field */
};

struct s4d_texts {
    char **v;
    int n, cap;
    const char *usage; /* of a command's arguments: what its usage line calls them, "OLD NEW" */
};
void s4d_texts_add(struct s4d_texts *list, const char *text); /* a copy of it */
void s4d_texts_free(struct s4d_texts *list);                  /* texts and list; left empty */

struct s4d_option {
    const char *name; /* NULL ends a table */
    int key;          /* short option letter, or 0 */
    const char *argument;
    enum s4d_option_type type;
    size_t offset; /* of the field in the struct */
    double min, max;
    const char *const *choices;
    int (*parse)(const char *text, void *field, struct s4d_error *err);
    const char *help;
    /* Of S4D_OPT_PARSE: the field as text that parse would take, into text of the given size; for
     * defaults in --help and for records. NULL: not shown. */
    void (*format)(const void *field, char *text, int size);
    /* What --name alone stands for; a value then comes as --name=VALUE only. NULL: none. Of options
     * without a letter. */
    const char *bare;
};

struct s4d_option_group {
    const char *title; /* "Schedule options", as --help shows it */
    const struct s4d_option *options;
    size_t offset; /* of this group's struct in the command's struct */
};

/* Parses a command line into *config with argp. groups ends with a group without options.
 * *positional gets the other arguments (NULL: none allowed; s4d_texts_free). An abbreviated option
 * is an error. --help shows the values in *config as defaults. argv is left as it is. Returns 0; -1
 * with *err (exit 64); 1 when --help or --usage was printed. */
int s4d_options_argv(const struct s4d_option_group *groups, const char *summary, int argc,
                     char **argv, void *config, struct s4d_texts *positional,
                     struct s4d_error *err);

/* Sets from a YAML mapping; an unknown key is an error with file:line that names the nearest key.
 * skip (ends with NULL) lists keys that belong to someone else. */
int s4d_options_yaml(const struct s4d_option_group *groups, const struct s4d_yaml_node *mapping,
                     const char *const *skip, void *config, struct s4d_error *err);

/* Adds every option to a record under its YAML key, in table order: flags, integers and numbers as
 * such, quantities in SI units, choices by name, lists as arrays, an absent text as null; parsed
 * ones as their format writes them. */
void s4d_options_record(const struct s4d_option_group *groups, const void *config, json_t *record);

void s4d_options_free(const struct s4d_option_group *groups, void *config); /* texts and lists */

#endif
