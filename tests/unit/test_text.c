/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside: quoted, printed where a terminal would obey it, read as a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/csv.h"
#include "support/quote.h"

static void quoted(void **state)
{
    (void)state;
    static const char x[] =
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; /* 66 */
    assert_string_equal(s4d_quote("").text, "''");
    assert_string_equal(s4d_quote("a\033[31m\xc3\xa9\n").text, "'a?[31m??"
                                                               "?'");
    char text[80], longer[80];
    snprintf(text, sizeof text, "'%s'", x);
    assert_string_equal(s4d_quote(x).text, text);
    snprintf(longer, sizeof longer, "%sy", x);
    snprintf(text, sizeof text, "'%.63s...'", x);
    assert_string_equal(s4d_quote(longer).text, text);
}

/* What is not printable by UTF-8: C0 and C1 controls, line and paragraph separators, and what turns
 * the direction of text. Its neighbours are. */
static void unprintable(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"", 0},
        {"\x1f", 1},
        {" ", 0},
        {"~", 0},
        {"\x7f", 1},
        {"\xc2\x80", 2},
        {"\xc2\x9f", 2},
        {"\xc2\xa0", 0},
        {"\xe2\x80\xa7", 0},
        {"\xe2\x80\xa8", 3},
        {"\xe2\x80\xae", 3},
        {"\xe2\x80\xaf", 0},
        {"\xe2\x81\xa5", 0},
        {"\xe2\x81\xa6", 3},
        {"\xe2\x81\xa9", 3},
        {"\xe2\x81\xaa", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (s4d_unprintable(cases[i].text) != cases[i].bytes)
            fail_msg("case %zu", i);
}

/* What s4d_error_print writes to standard error. */
static char *printed(const struct s4d_error *err, int *exit)
{
    static char text[4096];
    FILE *to = tmpfile();
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    dup2(fileno(to), STDERR_FILENO);
    *exit = s4d_error_print(err);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(to);
    text[fread(text, 1, sizeof text - 1, to)] = '\0';
    fclose(to);
    return text;
}

static void errors_for_a_terminal(void **state)
{
    (void)state;
    int exit;
    struct s4d_error err;
    s4d_fail(&err, S4D_EXIT_DATA, "a\nb\033.yaml:3", "it said:\n%s", "\xc3\xa9\033[2J\t.\n.");
    assert_string_equal(printed(&err, &exit),
                        "scale4d: a?b?.yaml:3: it said:\n\xc3\xa9?[2J?.\n.\n");
    assert_int_equal(exit, S4D_EXIT_DATA);
    s4d_fail(&err, S4D_EXIT_USAGE, NULL, "no");
    s4d_hint(&err, "try\a %d", 7);
    assert_string_equal(printed(&err, &exit), "scale4d: no\n  hint: try? 7\n");
    assert_int_equal(exit, S4D_EXIT_USAGE);
}

static int join(void *context, char *const field[], const char *where, struct s4d_error *err)
{
    char *text = context;
    (void)where;
    if (strcmp(field[0], "bad") == 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "no %s", field[1]);
    sprintf(text + strlen(text), "<%s|%s>", field[0], field[1]);
    return 0;
}

/* Reads the table, of which n bytes are the file; the rows, or the error. */
static const char *table(const char *bytes, size_t n)
{
    static char text[2048];
    char file[] = "/tmp/test_text.XXXXXX";
    struct s4d_error err = {0};
    FILE *out = fdopen(mkstemp(file), "w");
    fwrite(bytes, 1, n, out);
    fclose(out);
    text[0] = '\0';
    if (s4d_csv_read(file, "a,b", join, text, &err))
        snprintf(text, sizeof text, "%s: %s",
                 strncmp(err.where, file, strlen(file)) == 0 ? err.where + strlen(file) : err.where,
                 err.text);
    unlink(file);
    return text;
}

static void tables(void **state)
{
    (void)state;
    static const struct {
        const char *text, *rows;
    } cases[] = {
        {"a,b\n1,2\n", "<1|2>"},
        {"a,b\r\n1,2\r\n\r\n# no row\n3,", "<1|2><3|>"},
        {"a,b\n\"x, y\",\"say \"\"no\"\"\"\n", "<x, y|say \"no\">"},
        {"a,b\n", ""},
        {"", ": the file is empty"},
        {"a,c\n", ":1: expected the header a,b"},
        {"a,b\n1\n", ":2: expected 2 columns, got 1"},
        {"a,b\n\n1,2,3\n", ":3: expected 2 columns, got 3"},
        {"a,b\n\"1,2\n", ":2: a quote is not closed"},
        {"a,b\n1,2\nbad,luck\n3,4\n", ":3: no luck"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(table(cases[i].text, strlen(cases[i].text)), cases[i].rows);
    static const char nul[] = "a,b\n1,2\n3\0,4\n5,6\n";
    assert_string_equal(table(nul, sizeof nul - 1), ":3: the line holds a zero byte");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quoted),
        cmocka_unit_test(unprintable),
        cmocka_unit_test(errors_for_a_terminal),
        cmocka_unit_test(tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
