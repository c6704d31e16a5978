/* SPDX-License-Identifier: Apache-2.0 */
/* Which machines are of one class. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "real/host_class.h"

static void is_without(const char *host, const char *expected)
{
    char text[64];
    strcpy(text, host);
    assert_string_equal(s4d_host_without_digits(text), expected);
}

static void test_digits(void **state)
{
    (void)state;
    is_without("n017.cluster.org", "n");
    is_without("nid001234", "nid");
    is_without("frontier-login2", "frontier-login");
    is_without("vm", "vm");
    is_without("", "");
    is_without("0a1b2c3d4e5f", "");       /* a container's */
    is_without("0a1b2c3d4e5g", "abcdeg"); /* not hexadecimal */
    is_without("0a1b2c3d4e5", "abcde");   /* eleven digits */
    is_without("0a1b2c3d4e5f.docker", "");
}

/* What is given goes over the environment, that over what the host looks like; other nodes of a
 * cluster are of the same class, other numbers of devices are not. */
static void test_class(void **state)
{
    (void)state;
    char *given, *set, *a, *b, *c;
    setenv("SCALE4D_HOST_CLASS", "variable", 1);
    given = s4d_host_class("option", "host", 4, "n1");
    set = s4d_host_class(NULL, "host", 4, "n1");
    setenv("SCALE4D_HOST_CLASS", "", 1);
    a = s4d_host_class(NULL, "host", 4, "n017.cluster");
    b = s4d_host_class(NULL, "host", 4, "n2");
    c = s4d_host_class(NULL, "host", 8, "n2");
    assert_string_equal(given, "option");
    assert_string_equal(set, "variable");
    assert_string_equal(a, b);
    assert_string_not_equal(b, c);
    assert_string_equal(strstr(a, " x4"), " x4 n");
    free(given);
    free(set);
    free(a);
    free(b);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
