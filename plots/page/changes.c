/* SPDX-License-Identifier: Apache-2.0 */
/* What else changed between nights: commits, versions, variables. */
#include <stdlib.h>
#include <string.h>

#include "plots/page/internal.h"
#include "support/memory.h"

enum { SHOWN = 20 }; /* of the latest */

struct change {
    int night; /* the later one's index */
    bool commit, environment;
};

static bool beside_a_step(const struct s4d_points *points, int night, const struct s4d_step *steps,
                          int n_steps)
{
    for (int i = 1; i < n_steps; i++)
        if (abs(points->v[night].day - steps[i].from) <= 1)
            return true;
    return false;
}

static void write_value(FILE *out, const json_t *value)
{
    char *text = !value                  ? s4d_strdup("not set")
                 : json_is_string(value) ? s4d_strdup(json_string_value(value))
                                         : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    s4d_write_escaped(out, text ? text : "");
    free(text);
}

static void write_pair(FILE *out, const char *path, const char *key, const json_t *a,
                       const json_t *b)
{
    fputs("<div><code>", out);
    s4d_write_escaped(out, path);
    s4d_write_escaped(out, key);
    fputs("</code> ", out);
    write_value(out, a);
    fputs(" → ", out);
    write_value(out, b);
    fputs("</div>", out);
}

/* Every leaf that is not the same; variables by their own name. */
static void write_differences(FILE *out, const char *path, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *v;
    for (int pass = 0; pass < 2; pass++)
        json_object_foreach((json_t *)(pass ? b : a), key, v)
        {
            const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
            if ((pass && x) || (x && y && json_equal((json_t *)x, (json_t *)y)))
                continue;
            if (json_is_object(v))
                write_differences(out, "", x, y);
            else
                write_pair(out, path, key, x, y);
        }
}

static int write_environment(FILE *out, struct s4d_store *store, int64_t a, int64_t b,
                             struct s4d_error *err)
{
    json_t *before = NULL, *after = NULL;
    int rc = s4d_store_environment(store, a, &before, err);
    if (rc == 0)
        rc = s4d_store_environment(store, b, &after, err);
    if (rc == 0)
        write_differences(out, "", before, after);
    json_decref(before);
    json_decref(after);
    return rc;
}

static int write_row(FILE *out, struct s4d_store *store, const struct s4d_points *points,
                     const struct change *c, bool beside, struct s4d_error *err)
{
    const struct s4d_night *before = &points->v[c->night - 1], *after = &points->v[c->night];
    fprintf(out, "<tr%s><th scope=\"row\">%s</th><td>", beside ? " class=\"beside\"" : "",
            s4d_short_date(after->day).text);
    if (c->commit) {
        fputs("<div>commit <code>", out);
        s4d_write_escaped(out, before->commit);
        fputs("</code> → <code>", out);
        s4d_write_escaped(out, after->commit);
        fputs("</code></div>", out);
    }
    int rc = c->environment
                 ? write_environment(out, store, before->environment, after->environment, err)
                 : 0;
    fputs("</td></tr>\n", out);
    return rc;
}

int s4d_write_changes(FILE *out, struct s4d_store *store, const struct s4d_points *points,
                      const struct s4d_step *steps, int n_steps, struct s4d_error *err)
{
    struct change *v = s4d_malloc(((size_t)points->n + 1) * sizeof *v);
    int n = 0, rc = 0, left_out = 0, n_beside = 0;
    for (int i = 1; i < points->n; i++) {
        struct change c = {i, strcmp(points->v[i].commit, points->v[i - 1].commit) != 0,
                           points->v[i].environment != points->v[i - 1].environment};
        if (c.commit || c.environment) {
            n_beside += beside_a_step(points, i, steps, n_steps);
            v[n++] = c;
        }
    }
    if (n > 0)
        fprintf(out,
                "<details%s><summary>Commit or environment changed on %d night%s</summary>\n"
                "<table class=\"changes\"><thead><tr><th scope=\"col\">Night</th>"
                "<th scope=\"col\">Changed since the night before</th></tr></thead><tbody>\n",
                n_beside ? " open" : "", n, n == 1 ? "" : "s");
    for (int i = n - 1; i >= 0 && rc == 0; i--) {
        bool beside = beside_a_step(points, v[i].night, steps, n_steps);
        if (n - 1 - i < SHOWN || beside)
            rc = write_row(out, store, points, &v[i], beside, err);
        else
            left_out++;
    }
    if (n > 0)
        fputs("</tbody></table>\n", out);
    if (left_out > 0)
        fprintf(out, "<p class=\"note\">%d earlier left out; scale4d track show has them.</p>\n",
                left_out);
    if (n > 0)
        fputs("</details>\n", out);
    free(v);
    return rc;
}
