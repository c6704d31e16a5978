/* SPDX-License-Identifier: Apache-2.0 */
/* Hugging Face's config.json in place of a YAML: what files in use say, defaults, and refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "workloads/hf_config.h"

static int read_config(const char *text, struct s4d_workload *w, struct s4d_error *err)
{
    memset(w, 0, sizeof *w);
    int rc = s4d_workload_config(w, "config.json", text, strlen(text), err);
    if (rc)
        s4d_workload_free(w);
    return rc;
}

static struct s4d_workload good(const char *text)
{
    struct s4d_workload w;
    struct s4d_error err;
    if (read_config(text, &w, &err))
        fail_msg("%s: %s", err.where, err.text);
    return w;
}

static void refuses(const char *text, const char *where, const char *said, const char *hint)
{
    struct s4d_workload w;
    struct s4d_error err;
    if (read_config(text, &w, &err) == 0)
        fail_msg("taken: %s", text);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, where);
    assert_string_equal(err.text, said);
    assert_string_equal(err.hint, hint);
}

static struct s4d_workload yaml(const char *name)
{
    struct s4d_workload w;
    struct s4d_error err;
    if (s4d_workload_load(&w, name, &err))
        fail_msg("%s: %s", err.where, err.text);
    return w;
}

/* The two models are the same but for their names. */
static void same(struct s4d_workload *a, struct s4d_workload *b)
{
    memset(a->model.name, 0, sizeof a->model.name);
    memset(b->model.name, 0, sizeof b->model.name);
    json_t *x = json_object(), *y = json_object();
    s4d_workload_record(a, x);
    s4d_workload_record(b, y);
    json_object_del(x, "source");
    json_object_del(y, "source");
    char *s = json_dumps(x, JSON_SORT_KEYS), *t = json_dumps(y, JSON_SORT_KEYS);
    assert_string_equal(s, t);
    free(s);
    free(t);
    json_decref(x);
    json_decref(y);
    s4d_workload_free(a);
    s4d_workload_free(b);
}

static void gpt2(void **state)
{
    (void)state;
    /* The defaults of GPT2Config are GPT-2 small. */
    struct s4d_workload a = good("{\"model_type\": \"gpt2\"}"), b = yaml("gpt2-124m");
    assert_string_equal(a.model.name, "gpt2");
    same(&a, &b);
    a = good("{\"model_type\": \"gpt2\", \"_name_or_path\": \"openai-community/gpt2-xl\",\n"
             "\"n_embd\": 1600, \"n_head\": 25, \"n_layer\": 48, \"n_inner\": null}");
    assert_string_equal(a.model.name, "gpt2-xl");
    assert_int_equal(a.model.ffn_hidden_size, 6400);
    assert_true(s4d_workload_parameters(&a.model) == 1557611200); /* as published: GPT-2 XL */
    s4d_workload_free(&a);
    a = good("{\"model_type\": \"gpt2\", \"n_inner\": 1024, \"seq_length\": 64,\n"
             "\"_name_or_path\": \"a b\", \"tie_word_embeddings\": false}");
    assert_int_equal(a.model.ffn_hidden_size, 1024);
    assert_int_equal(a.model.seq_length, 64);
    assert_string_equal(a.model.name, "gpt2"); /* "a b" is no name */
    assert_true(!a.model.tie_word_embeddings);
    s4d_workload_free(&a);
}

/* LlamaConfig() and MistralConfig() of huggingface/transformers, where nothing is said. */
static void defaults(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int kv_heads, ffn, seq_length;
    } types[] = {{"{\"model_type\": \"llama\"}", 32, 11008, 2048},
                 {"{\"model_type\": \"mistral\", \"sliding_window\": null}", 8, 14336, 131072}};
    for (int i = 0; i < 2; i++) {
        struct s4d_workload w = good(types[i].text);
        const struct s4d_model *m = &w.model;
        assert_int_equal(m->num_layers, 32);
        assert_int_equal(m->hidden_size, 4096);
        assert_int_equal(m->num_attention_heads, 32);
        assert_int_equal(m->num_key_value_heads, types[i].kv_heads);
        assert_int_equal(m->ffn_hidden_size, types[i].ffn);
        assert_int_equal(m->vocab_size, 32000);
        assert_int_equal(m->seq_length, types[i].seq_length);
        assert_true(m->norm_epsilon == 1e-6 && m->init_std == 0.02 && m->rope_theta == 10000);
        assert_true(!m->tie_word_embeddings);
        s4d_workload_free(&w);
    }
}

static const char llama3[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false,\n"
    "\"attention_dropout\": 0.0, \"bos_token_id\": 128000, \"eos_token_id\": 128001,\n"
    "\"hidden_act\": \"silu\", \"hidden_size\": 4096, \"initializer_range\": 0.02,\n"
    "\"intermediate_size\": 14336, \"max_position_embeddings\": 8192,\n"
    "\"model_type\": \"llama\", \"num_attention_heads\": 32, \"num_hidden_layers\": 32,\n"
    "\"num_key_value_heads\": 8, \"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05,\n"
    "\"rope_scaling\": null, \"rope_theta\": 500000.0, \"tie_word_embeddings\": false,\n"
    "\"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.40.0.dev0\",\n"
    "\"use_cache\": true, \"vocab_size\": 128256}\n";

static void llama(void **state)
{
    (void)state;
    struct s4d_workload a = good(llama3), b = yaml("llama-3-8b");
    same(&a, &b);
    /* Llama 3.1's scaling, in the older and the newer form. */
    static const char *const forms[] = {
        "\"rope_theta\": 500000, \"rope_scaling\": {\"factor\": 8.0, \"low_freq_factor\": 1.0,"
        "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192,"
        "\"rope_type\": \"llama3\"}",
        "\"rope_parameters\": {\"rope_theta\": 500000, \"factor\": 8.0, \"low_freq_factor\": 1.0,"
        "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192,"
        "\"rope_type\": \"llama3\"}"};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"model_type\": \"llama\", \"head_dim\": 64,\n%s}", forms[i]);
        a = good(text);
        assert_true(a.model.rope_theta == 500000 && a.model.rope_scaling_factor == 8);
        assert_true(a.model.rope_low_freq_factor == 1 && a.model.rope_high_freq_factor == 4);
        assert_int_equal(a.model.rope_original_max_position_embeddings, 8192);
        assert_int_equal(a.model.head_dim, 64);
        assert_int_equal(a.model.num_key_value_heads, 32);
        s4d_workload_free(&a);
    }
    a = good("{\"model_type\": \"llama\", \"rope_parameters\": {\"rope_type\": \"default\"}}");
    assert_true(a.model.rope_theta == 10000 && a.model.rope_scaling_factor == 0);
    s4d_workload_free(&a);
}

static void mistral(void **state)
{
    (void)state;
    struct s4d_workload a = good("{\"model_type\": \"mistral\", \"sliding_window\": null,\n"
                                 "\"max_position_embeddings\": 32768}");
    assert_int_equal(a.model.num_key_value_heads, 8);
    assert_int_equal(a.model.ffn_hidden_size, 14336);
    assert_int_equal(a.model.seq_length, 32768);
    /* Mistral 7B as published: 7,241,732,096 parameters. */
    assert_true(s4d_workload_parameters(&a.model) == 7241732096);
    s4d_workload_free(&a);
    /* A window as long as the sequence changes nothing. */
    a = good("{\"model_type\": \"mistral\", \"seq_length\": 4096}");
    s4d_workload_free(&a);
    refuses(
        "{\"model_type\": \"mistral\"}", "config.json: sliding_window",
        "expected null, or at least the sequence length, got 4096 (the default)",
        "attention is over the whole sequence here: null, or a seq_length of at most the window");
    refuses(
        "{\"model_type\": \"mistral\",\n\"sliding_window\": 1024}", "config.json:2: sliding_window",
        "expected null, or at least the sequence length, got 1024",
        "attention is over the whole sequence here: null, or a seq_length of at most the window");
}

static void bad_files(void **state)
{
    (void)state;
    refuses("", "config.json:1:0", "no JSON: 'unexpected token near end of file'", "");
    refuses("{\"a\": 1,\n \"b\": }", "config.json:2:7", "no JSON: 'unexpected token near '}''", "");
    refuses("{\"a\": 1, \"a\": 2}", "config.json:1:12",
            "no JSON: 'duplicate object key near '\"a\"''", "");
    refuses("3", "config.json", "expected an object {...}", "");
    refuses("{}", "config.json: model_type", "unknown model_type (a string is expected)",
            "known: gpt2, llama, mistral");
    refuses("{\n\"model_type\": \"bert\"}", "config.json:2: model_type",
            "unknown model_type 'bert'", "known: gpt2, llama, mistral");
    refuses("{\"model_type\": \"gpt2\",\n\"n_layer\": \"12\"}", "config.json:2: n_layer",
            "expected an integer in [1, 10000], got '\"12\"'", "write 4096, not 4k or 1e9");
    refuses("{\"model_type\": \"gpt2\",\n\"n_layer\": [12]}", "config.json:2: n_layer",
            "expected an integer in [1, 10000], got 'a list'", "write 4096, not 4k or 1e9");
    refuses("{\"model_type\": \"gpt2\",\n\"n_layer\": 0}", "config.json:2: n_layer",
            "expected an integer in [1, 10000], got '0'", "");
    refuses("{\"model_type\": \"gpt2\",\n\n\"n_head\": 7}", "config.json:3: n_head",
            "expected a divisor of hidden_size (768), got 7", "nearest are 6 and 8");
    refuses("{\"model_type\": \"gpt2\",\n\"activation_function\": \"relu\"}",
            "config.json:2: activation_function",
            "expected gelu_new or gelu_pytorch_tanh, got 'relu'",
            "no layer kind does anything else: scale4d layers");
    refuses("{\"model_type\": \"llama\",\n\"attention_bias\": true}",
            "config.json:2: attention_bias", "expected false, got 'true'",
            "no layer kind does anything else: scale4d layers");
    refuses("{\"model_type\": \"llama\",\n\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}}",
            "config.json:2: rope_scaling", "expected rope_type default or llama3, got '\"linear\"'",
            "");
    refuses("{\"model_type\": \"llama\",\n\"rope_scaling\": {\"type\": \"llama3\", \"factor\": 2}}",
            "config.json:2: rope_scaling", "expected low_freq_factor, got none", "");
    refuses("{\"model_type\": \"llama\",\n\"rope_scaling\": 3}", "config.json:2: rope_scaling",
            "expected an object, got 3", "");
    refuses("{\"model_type\": \"gpt2\",\n\"rope_scaling\": {}}", "config.json:2: rope_scaling",
            "expected a model with rotary positions, got an object", "");
}

/* Through the loader: by its ending. */
static void loaded(void **state)
{
    (void)state;
    char file[] = "/tmp/s4d-config-XXXXXX.json";
    struct s4d_workload w;
    struct s4d_error err;
    FILE *f = fdopen(mkstemps(file, 5), "w");
    fputs(llama3, f);
    fclose(f);
    assert_int_equal(s4d_workload_load(&w, file, &err), 0);
    assert_string_equal(w.file, file);
    assert_int_equal(strlen(w.hash), 16);
    assert_true(s4d_workload_parameters(&w.model) == 8030261248);
    s4d_workload_free(&w);
    unlink(file);
    assert_int_equal(s4d_workload_load(&w, "none.json", &err), -1);
    assert_string_equal(err.where, "none.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2),    cmocka_unit_test(defaults),  cmocka_unit_test(llama),
        cmocka_unit_test(mistral), cmocka_unit_test(bad_files), cmocka_unit_test(loaded),
    };
    return cmocka_run_group_tests_name("hf_config", tests, NULL, NULL);
}
