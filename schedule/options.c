/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults, and the overlap option's text. */
#include "schedule/options.h"

#include <stdio.h>
#include <string.h>

#include "schedule/op.h" /* for: enum s4d_type */

const char *const s4d_recompute_names[3] = {"none", "selective", "full"};
const char *const s4d_prefetch_names[3] = {"none", "within-layer", "across-layers"};

static const struct {
    const char *name;
    struct s4d_overlap overlap;
} presets[] = {
    {"all", {true, true, S4D_PREFETCH_ACROSS_LAYERS, S4D_PREFETCH_ACROSS_LAYERS}},
    {"none", {false, false, S4D_PREFETCH_NONE, S4D_PREFETCH_NONE}},
    /* What the scripts of the published runs did (design: gathers block in the forward pass, and
     * are prefetched inside a recomputed layer in the backward). */
    {"axonn-sc24", {true, true, S4D_PREFETCH_NONE, S4D_PREFETCH_WITHIN_LAYER}},
};
enum { PRESETS = sizeof presets / sizeof presets[0] };

struct s4d_options s4d_options_default(void)
{
    return (struct s4d_options){
        .recompute = S4D_RECOMPUTE_FULL,
        .overlap = presets[0].overlap,
        .precision = S4D_BF16,
        .gradient_type = S4D_F32,
        .gradient_reduce = S4D_REDUCE_AT_END,
        .learning_rate = 1e-4,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .adam_epsilon = 1e-8,
        .weight_decay = 0.1,
        .clip_norm = 1.0,
    };
}

static bool is(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && strncmp(text, word, n) == 0;
}

/* "VALUE" of a prefetch, n characters: false when it is none of the three. */
static bool prefetch_find(const char *text, size_t n, enum s4d_prefetch *prefetch)
{
    for (int i = 0; i < 3; i++)
        if (is(text, n, s4d_prefetch_names[i])) {
            *prefetch = (enum s4d_prefetch)i;
            return true;
        }
    return false;
}

static bool overlap_item(const char *item, size_t n, struct s4d_overlap *o)
{
    static const char forward[] = "oag-forward=", backward[] = "oag-backward=";
    const size_t nf = sizeof forward - 1, nb = sizeof backward - 1;
    if (is(item, n, "oar"))
        return o->oar = true;
    if (is(item, n, "ors"))
        return o->ors = true;
    if (is(item, n, "oag")) {
        o->oag_forward = o->oag_backward = S4D_PREFETCH_ACROSS_LAYERS;
        return true;
    }
    if (n > nf && strncmp(item, forward, nf) == 0)
        return prefetch_find(item + nf, n - nf, &o->oag_forward);
    if (n > nb && strncmp(item, backward, nb) == 0)
        return prefetch_find(item + nb, n - nb, &o->oag_backward);
    return false;
}

int s4d_overlap_parse(const char *text, struct s4d_overlap *overlap, struct s4d_error *err)
{
    for (int i = 0; i < PRESETS; i++)
        if (strcmp(text, presets[i].name) == 0) {
            *overlap = presets[i].overlap;
            return 0;
        }
    struct s4d_overlap o = presets[1].overlap;
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        if (!overlap_item(p, n, &o)) {
            s4d_fail(err, S4D_EXIT_USAGE, "--overlap",
                     "expected all, none, axonn-sc24, or a list of oar, ors, oag, "
                     "oag-forward=VALUE and oag-backward=VALUE, got '%.*s'",
                     (int)(n < 80 ? n : 80), p);
            return s4d_hint(err, "VALUE is none, within-layer or across-layers");
        }
        p += n;
        if (!*p)
            break;
    }
    *overlap = o;
    return 0;
}

void s4d_overlap_format(const struct s4d_overlap *o, char *text, int size)
{
    snprintf(text, (size_t)size, "%s%soag-forward=%s,oag-backward=%s", o->oar ? "oar," : "",
             o->ors ? "ors," : "", s4d_prefetch_names[o->oag_forward],
             s4d_prefetch_names[o->oag_backward]);
}
