/* SPDX-License-Identifier: Apache-2.0 */
/* Options as a record has them. */
#include <math.h>
#include <stdint.h>

#include "support/option_field.h"

/* JSON has no infinity and no NaN: null. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *list(const struct s4d_texts *texts)
{
    json_t *array = json_array();
    for (int i = 0; i < texts->n; i++)
        json_array_append_new(array, json_string(texts->v[i]));
    return array;
}

static json_t *shown(const struct s4d_option *o, const void *field)
{
    char text[512];
    return s4d_option_show(o, field, text, sizeof text) ? json_string(text) : json_null();
}

static json_t *value_of(const struct s4d_option *o, const void *field)
{
    switch (o->type) {
    case S4D_OPT_FLAG:
        return json_boolean(*(const bool *)field);
    case S4D_OPT_INT:
        return json_integer(*(const int *)field);
    case S4D_OPT_SIZE:
        return json_integer(*(const int64_t *)field);
    case S4D_OPT_NUMBER:
    case S4D_OPT_BANDWIDTH:
    case S4D_OPT_TIME:
    case S4D_OPT_RATE:
        return real(*(const double *)field);
    case S4D_OPT_TEXT:
        return *(char *const *)field ? json_string(*(char *const *)field) : json_null();
    case S4D_OPT_LIST:
        return list(field);
    case S4D_OPT_CHOICE:
    case S4D_OPT_PARSE:
        break;
    }
    return shown(o, field);
}

void s4d_options_record(const struct s4d_option_group *groups, const void *config, json_t *record)
{
    for (const struct s4d_option_group *g = groups; g->options; g++) {
        for (const struct s4d_option *o = g->options; o->name; o++) {
            if (o->type == S4D_OPT_PARSE && !o->format)
                continue;
            char key[80];
            const void *field = (const char *)config + g->offset + o->offset;
            json_object_set_new(record, s4d_option_key(o, key, sizeof key), value_of(o, field));
        }
    }
}
