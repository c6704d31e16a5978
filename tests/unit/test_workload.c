/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: every file of the folder, the models' numbers, and what a file may not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/file.h"
#include "workloads/workload.h"

static struct s4d_workload load(const char *name)
{
    struct s4d_workload w;
    struct s4d_error err;
    if (s4d_workload_load(&w, name, &err))
        fail_msg("%s: %s: %s", name, err.where, err.text);
    return w;
}

/* The table of the papers: layers, hidden size, heads. */
static void gpt_family(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int layers, hidden, heads;
        double parameters;
    } models[] = {
        /* 12 l h^2 + 13 l h (biases and norms) + V h + s h + 2 h: 5b: 12*24*4096^2 = 4831838208,
         * 13*24*4096 = 1277952, (51200+2048)*4096 = 218103808, 2*4096 = 8192 */
        {"gpt-5b", 24, 4096, 32, 5051228160}, {"gpt-10b", 32, 5120, 40, 0},
        {"gpt-20b", 32, 7168, 56, 0},         {"gpt-40b", 38, 9216, 72, 0},
        {"gpt-60b", 56, 9216, 72, 0},         {"gpt-80b", 42, 12288, 96, 0},
        {"gpt-160b", 84, 12288, 96, 0},       {"gpt-320b", 96, 16384, 128, 0},
        {"gpt-640b", 192, 16384, 128, 0},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct s4d_workload w = load(models[i].name);
        const struct s4d_model *m = &w.model;
        assert_string_equal(m->name, models[i].name);
        assert_int_equal(m->num_layers, models[i].layers);
        assert_int_equal(m->hidden_size, models[i].hidden);
        assert_int_equal(m->num_attention_heads, models[i].heads);
        assert_int_equal(m->num_key_value_heads, models[i].heads);
        assert_int_equal(m->ffn_hidden_size, 4 * models[i].hidden);
        assert_int_equal(m->vocab_size, 51200);
        assert_int_equal(m->seq_length, 2048);
        assert_true(m->norm_epsilon == 1e-5 && m->init_std == 0.02 && m->tie_word_embeddings);
        double l = m->num_layers, h = m->hidden_size;
        double closed = 12 * l * h * h + 13 * l * h + (51200 + 2048 + 2) * h;
        assert_true(s4d_workload_parameters(m) == closed);
        if (models[i].parameters > 0)
            assert_true(closed == models[i].parameters);
        /* The name says the size: 5b is 4.5 to 5.5 billion. */
        double billions = atof(models[i].name + 4);
        assert_true(closed > 0.9e9 * billions && closed < 1.1e9 * billions);
        s4d_workload_free(&w);
    }
}

static void small_models(void **state)
{
    (void)state;
    struct s4d_workload w = load("gpt2-124m");
    assert_int_equal(w.model.vocab_size, 50257);
    assert_int_equal(w.model.seq_length, 1024);
    assert_int_equal(w.model.ffn_hidden_size, 3072);
    /* The published count of GPT-2 small: 50257*768 + 1024*768 + 12*7087872 + 1536. */
    assert_true(s4d_workload_parameters(&w.model) == 124439808);
    s4d_workload_free(&w);
    assert_null(w.file);
    w = load("gpt-tiny");
    assert_int_equal(w.model.num_layers, 2);
    assert_int_equal(w.model.hidden_size, 64);
    assert_int_equal(w.model.num_attention_heads, 4);
    assert_int_equal(w.model.vocab_size, 256);
    assert_int_equal(w.model.seq_length, 32);
    json_t *record = json_object();
    s4d_workload_record(&w, record);
    assert_int_equal(json_object_size(record), 18); /* 12 values and 6 kinds */
    assert_string_equal(json_string_value(json_object_get(record, "name")), "gpt-tiny");
    assert_string_equal(json_string_value(json_object_get(record, "mlp")), "gelu-mlp");
    json_decref(record);
    /* 12*2*64^2 + 13*2*64 + (256+32+2)*64 = 98304 + 1664 + 18560 */
    assert_true(s4d_workload_parameters(&w.model) == 118528);
    s4d_workload_free(&w);
}

/* Layers, hidden size, heads, key-value heads, inner width, vocabulary, and the published counts of
 * parameters: 2 V h + l (2 h (q + kv) + 3 h f + 2 h) + h with q = h and kv = kv_heads h / heads. By
 * hand for 7b: 2*32000*4096 = 262144000; a layer 4*4096^2 + 3*4096*11008 + 2*4096 = 202383360; 32
 * of them 6476267520; + 4096. */
static void llama_family(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int layers, hidden, heads, kv_heads, ffn, vocab, seq;
        double theta, parameters;
    } models[] = {
        {"llama-2-7b", 32, 4096, 32, 32, 11008, 32000, 4096, 1e4, 6738415616},
        {"llama-2-70b", 80, 8192, 64, 8, 28672, 32000, 4096, 1e4, 68976648192},
        {"llama-3-8b", 32, 4096, 32, 8, 14336, 128256, 8192, 5e5, 8030261248},
        {"llama-3-70b", 80, 8192, 64, 8, 28672, 128256, 8192, 5e5, 70553706496},
        {"llama-3-405b", 126, 16384, 128, 8, 53248, 128256, 8192, 5e5, 405853388800},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct s4d_workload w = load(models[i].name);
        const struct s4d_model *m = &w.model;
        assert_int_equal(m->num_layers, models[i].layers);
        assert_int_equal(m->hidden_size, models[i].hidden);
        assert_int_equal(m->num_attention_heads, models[i].heads);
        assert_int_equal(m->num_key_value_heads, models[i].kv_heads);
        assert_int_equal(m->ffn_hidden_size, models[i].ffn);
        assert_int_equal(m->vocab_size, models[i].vocab);
        assert_int_equal(m->seq_length, models[i].seq);
        assert_true(m->rope_theta == models[i].theta && m->rope_scaling_factor == 0);
        assert_true(!m->tie_word_embeddings);
        assert_true(s4d_workload_parameters(m) == models[i].parameters);
        s4d_workload_free(&w);
    }
}

/* Every file of the folder loads, under its own name, with a source. */
static void all_files(void **state)
{
    (void)state;
    char **names;
    int n = s4d_workload_names(&names);
    assert_true(n >= 17);
    for (int i = 0; i < n; i++) {
        struct s4d_workload w = load(names[i]);
        assert_string_equal(w.model.name, names[i]);
        assert_true(w.source && strlen(w.source) > 10);
        assert_int_equal(strlen(w.hash), 16);
        s4d_workload_free(&w);
    }
    s4d_names_free(names, n);
}

static const char good[] = "name: t\nsource: a test\nnum_layers: 2\nhidden_size: 64\n"
                           "num_attention_heads: 4\nffn_hidden_size: 256\nvocab_size: 256\n"
                           "seq_length: 32\nnorm_epsilon: 0.00001\ntie_word_embeddings: true\n"
                           "embedding: vocabulary-parallel\npositions: learned\nnorm: layernorm\n"
                           "attention: multi-head\nmlp: gelu-mlp\nhead: cross-entropy\n";

/* The good file with its line that starts with `key` replaced, loaded. */
static int load_changed(const char *key, const char *line, struct s4d_workload *w,
                        struct s4d_error *err)
{
    char file[] = "/tmp/s4d-workload-XXXXXX.yaml";
    int fd = mkstemps(file, 5);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    const char *at = strstr(good, key);
    assert_non_null(at);
    fwrite(good, 1, (size_t)(at - good), f);
    fputs(line, f);
    fputs(strchr(at, '\n') + 1, f);
    fclose(f);
    int rc = s4d_workload_load(w, file, err);
    unlink(file);
    return rc;
}

static void refuses(const char *key, const char *line, const char *where, const char *text,
                    const char *hint)
{
    struct s4d_workload w;
    struct s4d_error err;
    if (load_changed(key, line, &w, &err) == 0)
        fail_msg("taken: %s", line);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_null(w.file); /* empty, nothing to free */
    const char *after = strstr(err.where, ".yaml");
    assert_non_null(after);
    assert_string_equal(after, where);
    assert_string_equal(err.text, text);
    assert_string_equal(err.hint, hint);
}

static void bad_files(void **state)
{
    (void)state;
    refuses("hidden_size", "hidden_size: 4k\n", ".yaml:4: hidden_size",
            "expected an integer in [1, 1048576], got '4k'", "write 4096, not 4k or 1e9");
    refuses("hidden_size", "hidden_size: 66\n", ".yaml:5: num_attention_heads",
            "expected a divisor of hidden_size (66), got 4", "nearest are 3 and 6");
    refuses("num_att", "num_attention_heads: 4\nnum_key_value_heads: 3\n",
            ".yaml:6: num_key_value_heads", "expected a divisor of num_attention_heads (4), got 3",
            "nearest are 2 and 4");
    refuses("num_att", "num_attention_heads: 128\n", ".yaml:5: num_attention_heads",
            "expected a divisor of hidden_size (64), got 128", "at most 64");
    refuses("ffn", "", ".yaml:1", "missing key ffn_hidden_size",
            "add ffn_hidden_size: inner width of the MLP");
    refuses("seq_length", "seq_length: 32\nseq_len: 3\n", ".yaml:9: seq_len",
            "unknown key 'seq_len'", "did you mean seq_length?");
    refuses("mlp", "mlp: gelu-mpl\n", ".yaml:15: mlp",
            "expected a layer kind for mlp, got 'gelu-mpl'", "did you mean gelu-mlp?");
    refuses("mlp", "mlp: layernorm\n", ".yaml:15: mlp",
            "expected a layer kind for mlp, got 'layernorm'", "known: gelu-mlp, swiglu-mlp");
    refuses("name", "name: a b\n", ".yaml:1: name",
            "expected a name of 1 to 63 letters, digits, '-', '_' or '.', got 'a b'", "");
    refuses("norm_eps", "norm_epsilon: 1e-5\n", ".yaml:9: norm_epsilon",
            "expected a number in [0.000000000001, 1], got '1e-5'",
            "write a plain decimal: 0.00001, not 1e-5");
    refuses("tie", "tie_word_embeddings: 1\n", ".yaml:10: tie_word_embeddings",
            "expected true or false, got '1'", "");
}

/* A key of one layer kind stands only with it; one that the kind needs must be there. */
static void owned_keys(void **state)
{
    (void)state;
    refuses("seq_length", "seq_length: 32\nrope_theta: 10000\n", ".yaml:9: rope_theta",
            "a key of positions: rotary, but this model has learned", "");
    refuses("seq_length", "seq_length: 32\nhead_dim: 32\n", ".yaml:9: head_dim",
            "a key of attention: grouped-query, but this model has multi-head", "");
    refuses("seq_length", "seq_length: 32\ngoldfish_h: 4\n", ".yaml:9: goldfish_h",
            "a key of head: goldfish-cross-entropy, but this model has cross-entropy", "");
    refuses("positions", "positions: rotary\n", ".yaml:1", "missing key rope_theta",
            "add rope_theta: base of the rotary frequencies");
    refuses("head:", "head: goldfish-cross-entropy\ngoldfish_k: 1\n", ".yaml:17: goldfish_k",
            "expected an integer in [2, 1048576], got '1'", "");
    refuses("head:", "head: goldfish-cross-entropy\ngoldfish_k: 4\n", ".yaml:1",
            "missing key goldfish_h",
            "add goldfish_h: tokens that choose whether the next is dropped");
}

static void optional_keys(void **state)
{
    (void)state;
    struct s4d_workload w;
    struct s4d_error err;
    assert_int_equal(load_changed("num_layers",
                                  "num_layers: 3\nnum_key_value_heads: 2\n"
                                  "init_std: 0.01\n",
                                  &w, &err),
                     0);
    assert_int_equal(w.model.num_layers, 3);
    assert_int_equal(w.model.num_key_value_heads, 2);
    assert_true(w.model.init_std == 0.01);
    s4d_workload_free(&w);
}

static void unknown_names(void **state)
{
    (void)state;
    struct s4d_workload w;
    struct s4d_error err;
    assert_int_equal(s4d_workload_load(&w, "gpt-5bb", &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.text, "unknown workload 'gpt-5bb'");
    assert_string_equal(err.hint, "did you mean gpt-5b?");
    assert_int_equal(s4d_workload_load(&w, "", &err), -1);
    assert_int_equal(s4d_workload_load(&w, "./none.yaml", &err), -1);
    assert_string_equal(err.where, "./none.yaml");
    assert_int_equal(s4d_workload_load(&w, "../gpt-5b", &err), -1);

    setenv("SCALE4D_WORKLOADS", "/no/such/folder", 1);
    assert_int_equal(s4d_workload_load(&w, "gpt-5b", &err), -1);
    assert_string_equal(err.hint, "there is no workload in /no/such/folder");
    unsetenv("SCALE4D_WORKLOADS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt_family),    cmocka_unit_test(small_models),
        cmocka_unit_test(all_files),     cmocka_unit_test(bad_files),
        cmocka_unit_test(optional_keys), cmocka_unit_test(unknown_names),
        cmocka_unit_test(llama_family),  cmocka_unit_test(owned_keys),
    };
    return cmocka_run_group_tests_name("workload", tests, NULL, NULL);
}
