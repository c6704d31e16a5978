/* SPDX-License-Identifier: Apache-2.0 */
/* The report's parts that no browser sees: gnuplot's SVG made fit for a page, levels between
 * changes, words. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plots/page/internal.h"
#include "plots/page/svg.h"

/* --- svg ------------------------------------------------------------------------------------ */

static char *inlined(const char *svg, const char *label)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    s4d_svg_inline(out, svg, "c", label);
    fclose(out);
    return text;
}

static void assert_inlined(const char *body, const char *want)
{
    char svg[2048], whole[2048];
    snprintf(svg, sizeof svg,
             "<?xml version=\"1.0\"?>\n<svg \n viewBox=\"0 0 760 240\"\n>\n<title>Gnuplot</title>\n"
             "<g id=\"gnuplot_canvas\">\n<defs><path id='gpPt0' d='M-1,0 h2'/></defs>\n%s\n</g>\n"
             "</svg>\n",
             body);
    snprintf(whole, sizeof whole,
             "<svg class=\"c\" viewBox=\"0 0 760 240\" role=\"img\" aria-label=\"a &lt;b&gt;\">%s"
             "</svg>",
             want);
    char *text = inlined(svg, "a <b>");
    assert_string_equal(text, whole);
    free(text);
}

static void svg_of_gnuplot(void **state)
{
    (void)state;
    assert_inlined("", "");
    /* A line: its ink a class, one decimal, no blanks. */
    assert_inlined(
        "<g fill=\"none\" stroke=\"currentColor\">\n\t<path stroke='rgb(  0,   0,   4)'  "
        "d='M54.53,204.00 L734.82,99.96\n\t\tL1.00,-0.04  '/></g>",
        "<path class=\"median\" d=\"M54.5,204L734.8,100L1,0\"/>");
    /* Samples: a move without a line is a dot. */
    assert_inlined(
        "<path stroke='rgb(  0,   0,   3)' d='M1.00,2.00 M3.00,4.00 L5.00,6.00 M7.00,8.00 '/>",
        "<path class=\"samples\" d=\"M1,2h0M3,4L5,6M7,8h0\"/>");
    /* A tick: placed, its text without blanks of markup; black is the axis. */
    assert_inlined(
        "<g color=\"black\">\n\t<g transform=\"translate(46.14,207.90)\" stroke=\"none\" "
        "fill=\"black\" font-family=\"sans\" text-anchor=\"end\">\n\t\t<text><tspan "
        "font-family=\"sans\" >97 &lt;</tspan></text>\n\t</g>\n</g>",
        "<g class=\"axis\" transform=\"translate(46.14,207.90)\" text-anchor=\"end\">"
        "<text>97 &lt;</text></g>");
    /* A label in ink; a title within, a filled area, empty groups. */
    assert_inlined("<g transform=\"translate(1,2)\" fill=\"rgb(0,0,5)\" text-anchor=\"start\">"
                   "<text>+1</text></g>",
                   "<g class=\"change\" transform=\"translate(1,2)\"><text>+1</text></g>");
    assert_inlined("<g id=\"gnuplot_plot_1\" ><title>$band <using> 1</title>\n<g stroke='none'>\n"
                   "<polygon fill = 'rgb(  0,   0,   6)' points = '1.00,2.00 3.04,4.00 '/>\n</g>\n"
                   "</g><g fill=\"none\">\n</g>",
                   "<polygon class=\"band\" points=\"1,2 3,4\"/>");
    /* An ink that there is not; a shape without coordinates. */
    assert_inlined("<path stroke='rgb(0, 0, 99)' d='M1,2'/><path stroke='black' d=''/><path/>",
                   "<path class=\"axis\" d=\"M1,2\"/>");
}

/* Whatever is cut off: no read beyond the end, and the element is closed. */
static void svg_that_ends_early(void **state)
{
    (void)state;
    const char *whole =
        "<svg viewBox=\"0 0 1 1\"><defs></defs><g transform=\"t(1)\"><text><tspan >x"
        "</tspan></text><path stroke='rgb(0, 0, 1)' d='M1,2 L3,4'/></g></svg>";
    for (size_t n = 0; n <= strlen(whole); n++) {
        char *part = strndup(whole, n), *text = inlined(part, "");
        assert_non_null(strstr(text, "<svg class="));
        assert_string_equal(text + strlen(text) - strlen("</svg>"), "</svg>");
        free(part);
        free(text);
    }
}

/* --- steps ---------------------------------------------------------------------------------- */

enum { MOST = 200 };
struct nights {
    struct s4d_night v[MOST];
    double samples[MOST][3];
    struct s4d_points points;
};

/* Three samples around a level, which a fixed ripple moves. */
static void night(struct nights *n, double level)
{
    int i = n->points.n++;
    double x = level * (1 + 0.001 * ((i * 7) % 5 - 2));
    for (int k = 0; k < 3; k++)
        n->samples[i][k] = x * (1 + 0.0005 * (k - 1));
    n->v[i] = (struct s4d_night){
        .day = 20000 + i, .samples = n->samples[i], .n = 3, .median = x, .commit = ""};
    n->points.v = n->v;
    n->points.metric = s4d_metric_named("flops_per_s");
    n->points.name = "flops_per_s";
}

static int steps_of(const struct nights *n, bool simulated, struct s4d_step **steps)
{
    struct s4d_verdict_options options = s4d_verdict_defaults();
    struct s4d_error err;
    return s4d_steps_of(&n->points, simulated, &options, steps, &err);
}

static void one_level(void **state)
{
    (void)state;
    struct nights n = {0};
    struct s4d_step *steps;
    for (int i = 0; i < 150; i++) /* windows of 60, 60 and 30: still one level */
        night(&n, 100);
    assert_int_equal(steps_of(&n, false, &steps), 1);
    assert_int_equal(steps[0].from, 20000);
    assert_int_equal(steps[0].to, 20149);
    assert_float_equal(steps[0].value, 100, 0.1);
    assert_true(isnan(steps[0].change));
    free(steps);
}

/* 100 for 130 nights, 95 for 20: a change of -5 % on the night 130; and one long ago, in a window
 * of its own: 90 for the first 10 nights. */
static void changes_in_two_windows(void **state)
{
    (void)state;
    struct nights n = {0};
    struct s4d_step *steps;
    for (int i = 0; i < 150; i++)
        night(&n, i < 10 ? 90 : i < 130 ? 100 : 95);
    assert_int_equal(steps_of(&n, false, &steps), 3);
    assert_int_equal(steps[1].from, 20010);
    assert_int_equal(steps[1].to, 20129);
    assert_float_equal(steps[1].change, 100.0 / 90 - 1, 0.002);
    assert_int_equal(steps[2].from, 20130);
    assert_float_equal(steps[2].change, -0.05, 0.002);
    assert_float_equal(steps[2].value, 95, 0.1);
    free(steps);
}

/* Accepted: the level begins again there, and nothing is said of how far it is from the one before.
 */
static void a_restart(void **state)
{
    (void)state;
    struct nights n = {0};
    struct s4d_step *steps;
    for (int i = 0; i < 40; i++)
        night(&n, i < 20 ? 100 : 95);
    n.v[20].restart = 1;
    assert_int_equal(steps_of(&n, false, &steps), 2);
    assert_int_equal(steps[1].from, 20020);
    assert_true(isnan(steps[1].change));
    free(steps);
    n.v[20].restart = 0;
    n.v[0].restart = 1; /* on the very first night: no level before */
    assert_int_equal(steps_of(&n, false, &steps), 2);
    assert_float_equal(steps[1].change, -0.05, 0.002);
    free(steps);
}

static void one_night(void **state)
{
    (void)state;
    struct nights n = {0};
    struct s4d_step *steps;
    night(&n, 100);
    assert_int_equal(steps_of(&n, false, &steps), 1);
    free(steps);
    assert_int_equal(steps_of(&n, true, &steps), 1);
    free(steps);
}

/* The last digit is a change. */
static void simulated_levels(void **state)
{
    (void)state;
    struct nights n = {0};
    struct s4d_step *steps;
    for (int i = 0; i < 6; i++) {
        night(&n, 100);
        n.v[i].median = i < 4 ? 100 : 100.0000001;
    }
    assert_int_equal(steps_of(&n, true, &steps), 2);
    assert_int_equal(steps[1].from, 20004);
    assert_float_equal(steps[1].change, 1e-9, 1e-12);
    free(steps);
}

/* --- words ---------------------------------------------------------------------------------- */

static void words(void **state)
{
    (void)state;
    assert_string_equal(s4d_percent(-0.0312).text, "−3.1\u00a0%");
    assert_string_equal(s4d_percent(0.5).text, "+50.0\u00a0%");
    assert_string_equal(s4d_percent(-0.0004).text, "±0.0\u00a0%");
    assert_string_equal(s4d_percent(NAN).text, "");
    assert_string_equal(s4d_long_date(20787).text, "Monday 30 November 2026");
    assert_string_equal(s4d_short_date(0).text, "1 Jan 1970");
    const char *const titles[][2] = {{"flops_per_s", "FLOP/s"},
                                     {"busbw_Bps", "bus bandwidth"},
                                     {"busbw_Bps.z-gather", "bus bandwidth z-gather"},
                                     {"communication_s.x", "communication alone, x"},
                                     {"of_ones_own", "of_ones_own"}};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        char *title = s4d_metric_title(titles[i][0]);
        assert_string_equal(title, titles[i][1]);
        free(title);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(svg_of_gnuplot),   cmocka_unit_test(svg_that_ends_early),
        cmocka_unit_test(one_level),        cmocka_unit_test(changes_in_two_windows),
        cmocka_unit_test(a_restart),        cmocka_unit_test(one_night),
        cmocka_unit_test(simulated_levels), cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
