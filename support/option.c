/* SPDX-License-Identifier: Apache-2.0 */
/* One option: its field set from text and shown as text, by type. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/nearest.h"
#include "support/option_field.h"
#include "support/quote.h"
#include "support/units.h"

static int set_flag(void *field, const char *text, struct s4d_error *err)
{
    bool value = strcmp(text, "true") == 0;
    if (!value && strcmp(text, "false") != 0)
        return s4d_fail(err, S4D_EXIT_DATA, "", "expected true or false, got %s",
                        s4d_quote(text).text);
    *(bool *)field = value;
    return 0;
}

static int set_int(const struct s4d_option *o, void *field, const char *text, struct s4d_error *err)
{
    int64_t min = o->min < INT_MIN ? INT_MIN : (int64_t)o->min;
    int64_t max = o->max > INT_MAX ? INT_MAX : (int64_t)o->max, value;
    if (s4d_parse_int(text, min, max, &value, err))
        return -1;
    *(int *)field = (int)value;
    return 0;
}

/* From YAML a size has a unit. */
static int parse_whole_bytes(const char *text, int64_t *bytes, struct s4d_error *err)
{
    double value;
    if (s4d_parse_bytes(text, &value, err))
        return -1;
    if (value != floor(value) || value >= 9.2e18)
        return s4d_fail(err, S4D_EXIT_DATA, "", "expected a whole number of bytes, got %s",
                        s4d_quote(text).text);
    *bytes = (int64_t)value;
    return 0;
}

/* Whether an option of a quantity or size has a range: one of zeros is none. */
static bool has_range(const struct s4d_option *o)
{
    return o->min != 0 || o->max != 0;
}

static int set_size(const struct s4d_option *o, void *field, const char *text,
                    enum s4d_option_source source, struct s4d_error *err)
{
    int64_t bytes;
    if (source == S4D_FROM_ARGV ? s4d_parse_size(text, &bytes, err)
                                : parse_whole_bytes(text, &bytes, err))
        return -1;
    if (has_range(o) && ((double)bytes < o->min || (double)bytes > o->max))
        return s4d_fail(err, S4D_EXIT_DATA, "", "expected %.0f to %.0f bytes, got %s", o->min,
                        o->max, s4d_quote(text).text);
    *(int64_t *)field = bytes;
    return 0;
}

static int set_choice(const struct s4d_option *o, void *field, const char *text,
                      struct s4d_error *err)
{
    char list[512] = "";
    size_t at = 0;
    int n = 0;
    for (; o->choices[n]; n++) {
        if (strcmp(o->choices[n], text) == 0) {
            *(int *)field = n;
            return 0;
        }
        if (at < sizeof list)
            at +=
                (size_t)snprintf(list + at, sizeof list - at, "%s%s", n ? ", " : "", o->choices[n]);
    }
    s4d_fail(err, S4D_EXIT_DATA, "", "expected one of %s, got %s", list, s4d_quote(text).text);
    const char *near = s4d_nearest(text, o->choices, n);
    return near ? s4d_hint(err, "did you mean %s?", near) : -1;
}

static int set_text(char **field, const char *text)
{
    char *old = *field;
    *field = s4d_strdup(text);
    free(old);
    return 0;
}

void s4d_texts_add(struct s4d_texts *list, const char *text)
{
    s4d_push(list->v, list->n, list->cap, s4d_strdup(text));
}

void s4d_texts_free(struct s4d_texts *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->v[i]);
    free(list->v);
    *list = (struct s4d_texts){.n = 0};
}

/* A number with a unit in the option's range. */
static int set_quantity(const struct s4d_option *o, void *field, const char *text,
                        int (*parse)(const char *, double *, struct s4d_error *),
                        struct s4d_error *err)
{
    double value;
    if (parse(text, &value, err))
        return -1;
    if (has_range(o) && (value < o->min || value > o->max))
        return s4d_fail(err, S4D_EXIT_DATA, "", "expected %g to %g in SI units, got %s", o->min,
                        o->max, s4d_quote(text).text);
    *(double *)field = value;
    return 0;
}

int s4d_option_set(const struct s4d_option *o, void *field, const char *text,
                   enum s4d_option_source source, struct s4d_error *err)
{
    switch (o->type) {
    case S4D_OPT_FLAG:
        return set_flag(field, text, err);
    case S4D_OPT_INT:
        return set_int(o, field, text, err);
    case S4D_OPT_NUMBER:
        return s4d_parse_number(text, o->min, o->max, field, err);
    case S4D_OPT_SIZE:
        return set_size(o, field, text, source, err);
    case S4D_OPT_BANDWIDTH:
        return set_quantity(o, field, text, s4d_parse_bandwidth, err);
    case S4D_OPT_TIME:
        return set_quantity(o, field, text, s4d_parse_time, err);
    case S4D_OPT_RATE:
        return set_quantity(o, field, text, s4d_parse_flops, err);
    case S4D_OPT_TEXT:
        return set_text(field, text);
    case S4D_OPT_LIST:
        s4d_texts_add(field, text);
        return 0;
    case S4D_OPT_CHOICE:
        return set_choice(o, field, text, err);
    case S4D_OPT_PARSE:
        break;
    }
    if (err)
        err->where[0] = err->hint[0] = '\0';
    return o->parse(text, field, err);
}

static bool show_size(int64_t bytes, char *text, int size)
{
    int shift = 0;
    while (shift < 30 && bytes && (bytes >> shift) % 1024 == 0)
        shift += 10;
    static const char *const letters[] = {"", "K", "M", "G"};
    snprintf(text, (size_t)size, "%" PRId64 "%s", bytes >> shift, letters[shift / 10]);
    return true;
}

static bool show_quantity(const struct s4d_option *o, double value, char *text, int size)
{
    if (!(value > 0) || !isfinite(value))
        return false;
    if (o->type == S4D_OPT_BANDWIDTH)
        s4d_format_bandwidth(value, text, size);
    else if (o->type == S4D_OPT_TIME)
        s4d_format_time(value, text, size);
    else
        s4d_format_flops(value, text, size);
    return true;
}

static bool show_number(double value, const struct s4d_option *o, char *text, int size)
{
    bool shown = value >= o->min && value <= o->max;
    if (shown)
        s4d_format_number(value, text, size);
    return shown;
}

bool s4d_option_show(const struct s4d_option *o, const void *field, char *text, int size)
{
    switch (o->type) {
    case S4D_OPT_INT:
        return show_number(*(const int *)field, o, text, size);
    case S4D_OPT_NUMBER:
        return show_number(*(const double *)field, o, text, size);
    case S4D_OPT_SIZE:
        return show_size(*(const int64_t *)field, text, size);
    case S4D_OPT_BANDWIDTH:
    case S4D_OPT_TIME:
    case S4D_OPT_RATE:
        return show_quantity(o, *(const double *)field, text, size);
    case S4D_OPT_TEXT:
        snprintf(text, (size_t)size, "%s", *(char *const *)field ? *(char *const *)field : "");
        return text[0] != '\0';
    case S4D_OPT_CHOICE:
        if (*(const int *)field < 0)
            return false;
        snprintf(text, (size_t)size, "%s", o->choices[*(const int *)field]);
        return true;
    case S4D_OPT_PARSE:
        text[0] = '\0';
        if (o->format)
            o->format(field, text, size);
        return text[0] != '\0';
    case S4D_OPT_FLAG:
    case S4D_OPT_LIST:
        break;
    }
    return false;
}

const char *s4d_option_key(const struct s4d_option *o, char *text, int size)
{
    snprintf(text, (size_t)size, "%s", o->name);
    for (char *c = text; *c; c++) {
        if (*c == '-')
            *c = '_';
    }
    return text;
}

void *s4d_option_field(const struct s4d_option_group *group, const struct s4d_option *o,
                       void *config)
{
    return (char *)config + group->offset + o->offset;
}

int s4d_option_flatten(const struct s4d_option_group *groups, void *config,
                       const struct s4d_option ***option, void ***field)
{
    int n = 0, cap = 0, m = 0, cap_field = 0;
    *option = NULL;
    *field = NULL;
    for (const struct s4d_option_group *g = groups; g->options; g++) {
        for (const struct s4d_option *o = g->options; o->name; o++) {
            for (int i = 0; i < n; i++)
                S4D_ASSERT(strcmp((*option)[i]->name, o->name), "option %s is there twice",
                           o->name);
            s4d_push(*option, n, cap, o);
            s4d_push(*field, m, cap_field, s4d_option_field(g, o, config));
        }
    }
    return n;
}

void s4d_options_free(const struct s4d_option_group *groups, void *config)
{
    for (const struct s4d_option_group *g = groups; g->options; g++) {
        for (const struct s4d_option *o = g->options; o->name; o++) {
            void *field = s4d_option_field(g, o, config);
            if (o->type == S4D_OPT_TEXT) {
                free(*(char **)field);
                *(char **)field = NULL;
            } else if (o->type == S4D_OPT_LIST) {
                s4d_texts_free(field);
            }
        }
    }
}
