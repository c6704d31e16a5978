/* SPDX-License-Identifier: Apache-2.0 */
/* The YAML tree: lines, sequences of mappings, and every refusal with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/file.h"
#include "support/yaml.h"

static struct s4d_yaml_node *parse(const char *text)
{
    struct s4d_yaml_node *root;
    struct s4d_error err;
    if (s4d_yaml_parse("m.yaml", text, strlen(text), &root, &err))
        fail_msg("%s: %s", err.where, err.text);
    return root;
}

static void refuses_bytes(const char *text, size_t n, const char *where, const char *part)
{
    struct s4d_yaml_node *root = (void *)1;
    struct s4d_error err;
    if (s4d_yaml_parse("m.yaml", text, n, &root, &err) == 0)
        fail_msg("taken: %s", text);
    assert_null(root);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, where);
    if (!strstr(err.text, part))
        fail_msg("'%s' is not in '%s'", part, err.text);
}

static void refuses(const char *text, const char *where, const char *part)
{
    refuses_bytes(text, strlen(text), where, part);
}

static void tree(void **state)
{
    (void)state;
    struct s4d_yaml_node *root = parse("# a machine\n"
                                       "name: perlmutter\n"
                                       "node:\n"
                                       "  links:\n"
                                       "    - {from: 0, to: 1}\n"
                                       "    - from: 2\n"
                                       "      to: \"3\"\n"
                                       "  empty: []\n"
                                       "text: >-\n"
                                       "  two\n"
                                       "  words\n"
                                       "nothing: # 3 % of it\n");
    assert_int_equal(root->kind, S4D_YAML_MAPPING);
    assert_int_equal(root->n, 4);
    assert_null(root->key);
    assert_string_equal(root->child[0]->key, "name");
    assert_string_equal(root->child[0]->text, "perlmutter");
    assert_int_equal(root->child[0]->line, 2);
    const struct s4d_yaml_node *node = s4d_yaml_get(root, "node");
    const struct s4d_yaml_node *links = s4d_yaml_get(node, "links");
    assert_int_equal(links->kind, S4D_YAML_SEQUENCE);
    assert_int_equal(links->n, 2);
    assert_int_equal(links->child[0]->line, 5);
    assert_null(links->child[0]->key);
    assert_int_equal(links->child[1]->kind, S4D_YAML_MAPPING);
    const struct s4d_yaml_node *to = s4d_yaml_get(links->child[1], "to");
    assert_string_equal(to->text, "3");
    assert_int_equal(to->line, 7);
    assert_string_equal(to->file, "m.yaml");
    assert_int_equal(s4d_yaml_get(node, "empty")->n, 0);
    assert_string_equal(s4d_yaml_get(root, "text")->text, "two words");
    assert_string_equal(s4d_yaml_get(root, "nothing")->text, "");
    assert_null(s4d_yaml_get(root, "name "));
    assert_null(s4d_yaml_get(to, "to")); /* of a scalar */

    struct s4d_error err;
    assert_int_equal(s4d_yaml_fail(to, &err, "expected %d", 4), -1);
    assert_string_equal(err.where, "m.yaml:7: to");
    assert_string_equal(err.text, "expected 4");
    assert_int_equal(s4d_yaml_fail(links->child[0], &err, "x"), -1);
    assert_string_equal(err.where, "m.yaml:5");
    s4d_yaml_free(root);
}

static void refusals(void **state)
{
    (void)state;
    refuses("", "m.yaml:1", "found nothing");
    refuses("# only this\n", "m.yaml:2", "found nothing");
    refuses("---\n", "m.yaml:2", "found nothing");
    refuses("a: 1\nb: 2\na: 3\n", "m.yaml:3", "key 'a' is repeated; first on line 1");
    refuses("x:\n  - {q: 1, q: 1}\n", "m.yaml:2", "key 'q' is repeated");
    refuses("a: &x 1\n", "m.yaml:1", "anchor");
    refuses("a: 1\n&x b: 1\n", "m.yaml:2", "anchor");
    refuses("a: *x\n", "m.yaml:1", "alias");
    refuses("a: !!int 3\n", "m.yaml:1", "tag");
    refuses("a: 1\nb: !new {c: 1}\n", "m.yaml:2", "tag");
    refuses("a: 1\n---\nb: 1\n", "m.yaml:2", "one document");
    refuses("%YAML 1.1\n---\na: 1\n", "m.yaml:1", "directive");
    refuses("# x\r\n%TAG ! b\n---\na: 1\n", "m.yaml:2", "directive");
    refuses("# x\xe2\x80\xa8%TAG ! b\n---\na: 1\n", "m.yaml:1", "directive");
    refuses("a: 1\n? [b, c]\n: 2\n", "m.yaml:2", "as key");
    refuses("a: 1\nb: \"x\n", "m.yaml:3", "bad YAML");
    refuses("a: {b: 1\n", "m.yaml:2", "bad YAML"); /* truncated */
    refuses("a:\n\t- 1\n", "m.yaml:2", "bad YAML");
    refuses("a: \"x\\0y\"\n", "m.yaml:1", "NUL");
    refuses_bytes("a: 1\nb\0c: 2\n", 12, "m.yaml:2", "0x00");
    refuses("a: 1\nb: \xff\xfe\n", "m.yaml:2", "UTF-8");
    refuses("\xff\xfe"
            "a",
            "m.yaml:1", "UTF-8"); /* a UTF-16 mark */
}

/* The classic bomb: nine levels of nine references each would be 3.8e8 values. */
static void bomb(void **state)
{
    (void)state;
    refuses("a: &a [x,x,x,x,x,x,x,x,x]\n"
            "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
            "m.yaml:1", "anchor");
}

/* 64 levels pass, 65 do not, in both styles; depth of 10^5 neither crashes nor takes long. */
static void depth(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *text = malloc(2 * DEEP + 1);
    for (int levels = 64; levels <= 65; levels++) {
        memset(text, '[', (size_t)levels);
        memset(text + levels, ']', (size_t)levels);
        text[2 * levels] = '\0';
        if (levels == 64)
            s4d_yaml_free(parse(text));
        else
            refuses(text, "m.yaml:1", "64 levels");
    }
    memset(text, '[', DEEP);
    text[DEEP] = '\0';
    refuses(text, "m.yaml:1", "64 levels");
    size_t n = 0;
    for (int i = 0; i < 65; i++)
        n += (size_t)sprintf(text + n, "%*sa:\n", i, "");
    refuses(text, "m.yaml:65", "64 levels");
    free(text);
}

/* Many keys: sorted for repeats, so neither square time nor a false repeat. */
static void wide(void **state)
{
    (void)state;
    enum { KEYS = 200000 };
    char *text = malloc(KEYS * 12 + 20);
    size_t n = 0;
    for (int i = 0; i < KEYS; i++)
        n += (size_t)sprintf(text + n, "k%d: 1\n", i);
    struct s4d_yaml_node *root = parse(text);
    assert_int_equal(root->n, KEYS);
    assert_int_equal(root->child[KEYS - 1]->line, KEYS);
    s4d_yaml_free(root);
    sprintf(text + n, "k77: 1\n");
    refuses(text, "m.yaml:200001", "first on line 78");
    free(text);
}

static void files(void **state)
{
    (void)state;
    struct s4d_yaml_node *root;
    struct s4d_error err;
    assert_int_equal(s4d_yaml_read("/no/such.yaml", &root, &err), -1);
    assert_string_equal(err.where, "/no/such.yaml");
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(s4d_yaml_read("/tmp", &root, &err), -1);
    assert_non_null(strstr(err.text, "folder"));
    assert_int_equal(s4d_yaml_read("/dev/zero", &root, &err), -1);
    assert_non_null(strstr(err.text, "16 MiB"));

    char folder[] = "/tmp/s4d-yaml-XXXXXX", file[64], other[64];
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/b.yaml", folder);
    snprintf(other, sizeof other, "%s/a.yaml", folder);
    FILE *f = fopen(file, "w");
    fputs("a: 1\n", f);
    fclose(f);
    fclose(fopen(other, "w"));
    assert_int_equal(s4d_yaml_read(file, &root, &err), 0);
    assert_string_equal(root->file, file);
    s4d_yaml_free(root);
    assert_int_equal(s4d_yaml_read(other, &root, &err), -1); /* empty */
    char **names;
    int n = s4d_file_names(folder, &names);
    assert_int_equal(n, 2);
    assert_string_equal(names[0], "a");
    assert_string_equal(names[1], "b");
    s4d_names_free(names, n);
    unlink(file);
    unlink(other);
    rmdir(folder);
    assert_int_equal(s4d_file_names(folder, &names), 0);
    s4d_names_free(names, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree),  cmocka_unit_test(refusals), cmocka_unit_test(bomb),
        cmocka_unit_test(depth), cmocka_unit_test(wide),     cmocka_unit_test(files),
    };
    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
