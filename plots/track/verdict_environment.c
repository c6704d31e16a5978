/* SPDX-License-Identifier: Apache-2.0 */
/* What changed around the program on the night of a change: variables, versions, contents of files.
 * A change whose commit is the same has its cause there, or in the machine. */
#include <stdlib.h>
#include <string.h>

#include "plots/track/verdict_internal.h"
#include "support/memory.h"

enum { NAMED = 5 }; /* of more only how many */

/* Leaves of a that b has not, or has otherwise. both: also those that b has otherwise. */
static void differing(struct s4d_texts *names, const json_t *a, const json_t *b, bool both)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)a, key, v)
    {
        json_t *other = json_object_get(b, key);
        if (json_is_object(v) && (!other || json_is_object(other)))
            differing(names, v, other, both);
        else if (!other || (both && !json_equal(v, other)))
            s4d_texts_add(names, key);
    }
}

static char *joined(const struct s4d_texts *names)
{
    char *text = s4d_strdup("");
    for (int i = 0; i < names->n && i < NAMED; i++) {
        char *longer = s4d_asprintf("%s%s%s", text, i ? ", " : "", names->v[i]);
        free(text);
        text = longer;
    }
    if (names->n > NAMED) {
        char *longer = s4d_asprintf("%s and %d more", text, names->n - NAMED);
        free(text);
        text = longer;
    }
    return text;
}

int s4d_verdict_environment(struct s4d_finding *f, struct s4d_store *store, struct s4d_error *err)
{
    json_t *before = NULL, *since = NULL;
    struct s4d_texts names = {0};
    if (f->environment_before == f->environment_since || f->before < 0)
        return 0;
    int rc = s4d_store_environment(store, f->environment_before, &before, err);
    if (rc == 0)
        rc = s4d_store_environment(store, f->environment_since, &since, err);
    if (rc == 0) {
        differing(&names, before, since, true);
        differing(&names, since, before, false);
    }
    if (names.n > 0) {
        f->environment = joined(&names);
        s4d_finding_say(f);
    }
    s4d_texts_free(&names);
    json_decref(before);
    json_decref(since);
    return rc;
}
