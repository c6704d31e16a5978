/* SPDX-License-Identifier: Apache-2.0 */
/* The serial GPT of the tests is itself right: its gradients against central differences, a case
 * small enough to work by hand, and AdamW's first step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/numbers.h"
#include "tests/lib/reference.h"

enum { VOCABULARY = 11, SEQUENCE = 5, BATCH = 3 };

static struct s4d_model model(int kv_heads, bool tied)
{
    struct s4d_model m = {.num_layers = 2,
                          .hidden_size = 8,
                          .num_attention_heads = 4,
                          .num_key_value_heads = kv_heads,
                          .ffn_hidden_size = 12,
                          .vocab_size = VOCABULARY,
                          .seq_length = SEQUENCE,
                          .norm_epsilon = 1e-5,
                          .tie_word_embeddings = tied};
    return m;
}

static struct s4d_reference *random_reference(const struct s4d_model *m)
{
    struct s4d_reference *r = s4d_reference_create(m);
    for (int q = 0; q < r->n_params; q++)
        for (int64_t i = 0; i < r->params[q].n; i++)
            r->params[q].w[i] = 0.5 * s4d_normal_at(s4d_hash_text(r->params[q].name), (uint64_t)i);
    return r;
}

static void random_tokens(int32_t *tokens, int n)
{
    for (int i = 0; i < n; i++) {
        tokens[i] = (int32_t)(s4d_uniform_at(5, (uint64_t)i) * VOCABULARY);
        if (s4d_uniform_at(6, (uint64_t)i) < 0.2)
            tokens[i] = -1;
    }
}

/* Every element: (loss(w + e) - loss(w - e)) / 2e is the gradient to e^2. */
static void check_differences(int kv_heads, bool tied)
{
    struct s4d_model m = model(kv_heads, tied);
    struct s4d_reference *r = random_reference(&m);
    int32_t tokens[BATCH * (SEQUENCE + 1)];
    random_tokens(tokens, BATCH * (SEQUENCE + 1));
    double loss = s4d_reference_gradient(r, tokens, BATCH), e = 1e-5;
    assert_true(loss > 0 && loss == s4d_reference_loss(r, tokens, BATCH));
    for (int q = 0; q < r->n_params; q++) {
        struct s4d_reference_param *p = &r->params[q];
        double apart = 0, size = 0;
        for (int64_t i = 0; i < p->n; i++) {
            double w = p->w[i];
            p->w[i] = w + e;
            double above = s4d_reference_loss(r, tokens, BATCH);
            p->w[i] = w - e;
            double below = s4d_reference_loss(r, tokens, BATCH), slope = (above - below) / (2 * e);
            p->w[i] = w;
            apart += (slope - p->g[i]) * (slope - p->g[i]);
            size += slope * slope;
        }
        if (!(sqrt(apart) <= 1e-7 * sqrt(size)) || size == 0)
            fail_msg("%s: differs by %g of %g", p->name, sqrt(apart), sqrt(size));
    }
    s4d_reference_free(r);
}

static void test_differences(void **state)
{
    (void)state;
    check_differences(4, true);
    check_differences(4, false);
    check_differences(2, true);
}

/* One token, hidden size 2, everything zero but the last norm's bias (1, 0) and the embedding rows
 * (a, 0) and (0, 0) of a vocabulary of two: the norm of a constant row is its bias, so the logits
 * are (a, 0). With a = ln 3 and target 1 the loss is ln(3 + 1) - 0 = ln 4. */
static void test_by_hand(void **state)
{
    (void)state;
    struct s4d_model m = model(1, true);
    m.num_layers = 1;
    m.num_attention_heads = 1;
    m.hidden_size = m.ffn_hidden_size = m.vocab_size = 2;
    m.seq_length = 1;
    struct s4d_reference *r = s4d_reference_create(&m);
    s4d_reference_find(r, "transformer.ln_f.bias")->w[0] = 1;
    s4d_reference_find(r, "wte.weight")->w[0] = log(3);
    assert_true(fabs(s4d_reference_loss(r, (const int32_t[]){0, 1}, 1) - log(4)) < 1e-14);
    assert_null(s4d_reference_find(r, "lm_head.weight"));
    s4d_reference_free(r);
}

/* AdamW's first step: m / (1 - b1) = g, v / (1 - b2) = g^2, so w moves by lr (sign g + decay w)
 * when epsilon is 0. With all gradients zero but g = 3 and 4 the norm is 5; clipping only scales g,
 * which the first step does not see. */
static void test_first_step(void **state)
{
    (void)state;
    struct s4d_model m = model(4, true);
    struct s4d_reference *r = s4d_reference_create(&m);
    struct s4d_reference_param *w = s4d_reference_find(r, "wte.weight");
    struct s4d_reference_param *b = s4d_reference_find(r, "h.1.mlp.c_fc.bias");
    w->w[3] = 2;
    w->g[3] = 3;
    b->w[1] = 2;
    b->g[1] = -4;
    struct s4d_reference_adamw o = {0.1, 0.9, 0.95, 1e-300, 0.5, 1};
    assert_true(fabs(s4d_reference_update(r, &o) - 5) < 1e-14);
    assert_true(fabs(w->w[3] - (2 - 0.1 * (1 + 0.5 * 2))) < 1e-12);
    assert_true(fabs(b->w[1] - (2 + 0.1)) < 1e-12);    /* vectors do not decay */
    assert_true(fabs(w->v[3] - 0.05 * 9 / 25) < 1e-7); /* clipped: 3 / 5 */
    s4d_reference_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_first_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
