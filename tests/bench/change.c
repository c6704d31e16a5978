/* SPDX-License-Identifier: Apache-2.0 */
/* Whether changes of nightly series are found, and how often one is seen that is none.
 *
 * A series is 60 nights of five independent samples; a sample has noise of its own, and all of a
 * night share another. Every method is asked as it is in life: on every night in turn, with the
 * nights so far, and an alarm on any night counts. The defaults of s4d_change_defaults were chosen
 * on series of other seeds (5,000,000 and up; these are 2,000,001 and up). */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "plots/track/change_points.h"
#include "support/random.h"
#include "tests/bench/bench.h"

enum { NIGHTS = 60, SAMPLES = 5, RUNS = 1000, FIRST_SEED = 2000001 };
enum { LEAST = 10 /* nights before the simple methods are asked: their mean needs some */ };

enum kind { PLAIN, HEAVY, DRIFT, MISSING, TWINS, TURNS, BAD_NIGHTS, KINDS };
static const char *const kind_names[KINDS] = {
    "independent, normal",       "heavy tails (Student, 3)", "drift -0.5 % a month",
    "15 % of nights missing",    "two clusters, by chance",  "two clusters, in turns",
    "5 % of nights lose 3-10 %",
};

struct case_ {
    enum kind kind;
    double noise, loss; /* of a sample; from the night `step` on */
    int step;           /* NIGHTS: never */
};

/* Numbers of a series, each by its name: the same whichever of the others are asked for. */
enum stream { OF_NIGHT = 1, OF_SAMPLE, IS_MISSING, CLUSTER, IS_BAD, HOW_BAD };

/* With unit width: Student's t of three degrees keeps the normal's width and has a standard
 * deviation of 1.7. */
static double deviate(uint64_t key, uint64_t index, bool heavy)
{
    double z = s4d_normal_at(key, index), square = 0;
    for (uint64_t i = 0; heavy && i < 3; i++) {
        double v = s4d_normal_at(s4d_mix(key), 3 * index + i);
        square += v * v;
    }
    return heavy ? z / sqrt(square / 3) : z;
}

static double level_of_night(const struct case_ *c, uint64_t key, int night)
{
    double level = 1;
    uint64_t t = (uint64_t)night;
    if (c->kind == DRIFT)
        level *= 1 - 0.005 * night / 30;
    if ((c->kind == TWINS && s4d_uniform_at(key ^ CLUSTER, t) < 0.5) ||
        (c->kind == TURNS && night % 2))
        level *= 0.98;
    if (c->kind == BAD_NIGHTS && s4d_uniform_at(key ^ IS_BAD, t) < 0.05)
        level *= 0.97 - 0.07 * s4d_uniform_at(key ^ HOW_BAD, t);
    return night >= c->step ? level * (1 - c->loss) : level;
}

/* Into v of NIGHTS places; *at: where the first night at the new level is. Returns how many. */
static int make(const struct case_ *c, uint64_t seed, struct s4d_level *v, int *at)
{
    uint64_t key = s4d_mix(seed) & ~(uint64_t)7;
    int n = 0;
    *at = -1;
    for (int night = 0; night < NIGHTS; night++) {
        uint64_t t = (uint64_t)night;
        bool heavy = c->kind == HEAVY;
        double level =
                   level_of_night(c, key, night) * (1 + 0.003 * deviate(key ^ OF_NIGHT, t, heavy)),
               samples[SAMPLES];
        if (c->kind == MISSING && s4d_uniform_at(key ^ IS_MISSING, t) < 0.15)
            continue;
        for (int i = 0; i < SAMPLES; i++)
            samples[i] = fmax(
                level * (1 + c->noise * deviate(key ^ OF_SAMPLE, t * SAMPLES + (uint64_t)i, heavy)),
                0);
        if (night >= c->step && *at < 0)
            *at = n;
        v[n++] = s4d_level_of(samples, SAMPLES);
    }
    return n;
}

/* --- methods: whether the last of n nights is an alarm, or the nights since one was ----------- */

static bool change_points(const struct s4d_level *v, int n)
{
    struct s4d_change_options options = s4d_change_defaults();
    struct s4d_change found[NIGHTS];
    struct s4d_error err;
    int m = s4d_change_points(v, n, &options, found, &err);
    for (int i = 0; i < m; i++)
        if (found[i].part < 0 && s4d_change_stands(v, found, m, i, &options))
            return true;
    return false;
}

/* github-action-benchmark: the run before. */
static bool three_percent_of_last(const struct s4d_level *v, int n)
{
    return n > LEAST && v[n - 1].value < 0.97 * v[n - 2].value;
}

static double mean_before(const struct s4d_level *v, int n, double *deviation)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n - 1; i++)
        sum += v[i].value;
    double mean = sum / (n - 1);
    for (int i = 0; i < n - 1; i++)
        squares += (v[i].value - mean) * (v[i].value - mean);
    *deviation = sqrt(squares / (n - 2));
    return mean;
}

static bool three_percent_of_mean(const struct s4d_level *v, int n)
{
    double deviation;
    return n > LEAST && v[n - 1].value < 0.97 * mean_before(v, n, &deviation);
}

/* Conbench's lookback. */
static bool z_of_five(const struct s4d_level *v, int n)
{
    double deviation = 0, mean = n > LEAST ? mean_before(v, n, &deviation) : 0;
    return n > LEAST && v[n - 1].value < mean - 5 * deviation;
}

enum { METHODS = 4 };
static const struct {
    const char *name;
    bool (*alarms)(const struct s4d_level *v, int n);
} methods[METHODS] = {{"change points", change_points},
                      {"3 %, last", three_percent_of_last},
                      {"3 %, mean", three_percent_of_mean},
                      {"z of 5", z_of_five}};

/* --- rates ---------------------------------------------------------------------------------- */

struct alarms {
    int any, in_a_row; /* series */
};

static struct alarms false_alarms(const struct case_ *c, int method)
{
    struct alarms a = {0};
    struct case_ never = *c;
    never.step = NIGHTS;
    for (int run = 0; run < RUNS; run++) {
        struct s4d_level v[NIGHTS];
        int at, n = make(&never, FIRST_SEED + (uint64_t)run, v, &at);
        bool any = false, row = false, before = false;
        for (int i = 1; i <= n; i++) {
            bool now = methods[method].alarms(v, i);
            any = any || now;
            row = row || (now && before);
            before = now;
        }
        a.any += any;
        a.in_a_row += row;
    }
    return a;
}

/* Series whose step is an alarm on one of its first `within` nights. The step is on a night from
 * `first` on, every one as often, but the last `within`. */
static int found(struct case_ c, int method, int first, int last, int within)
{
    int found = 0, runs = 0;
    for (uint64_t seed = FIRST_SEED; runs < RUNS; seed++) {
        struct s4d_level v[NIGHTS];
        int at;
        c.step = first + (int)((last - first + 1) * s4d_uniform_at(s4d_mix(seed), 0));
        int n = make(&c, seed, v, &at);
        if (at < 0 || at + within > n)
            continue; /* missing nights: it is not seen so often */
        runs++;
        bool alarm = false;
        for (int i = at + 1; i <= at + within && !alarm; i++)
            alarm = methods[method].alarms(v, i);
        found += alarm;
    }
    return found;
}

static double percent(int series)
{
    return 100.0 * series / RUNS;
}

static void names(const char *first)
{
    printf("  %-26s", first);
    for (int m = 0; m < METHODS; m++)
        printf(" %13s", methods[m].name);
    printf("\n");
}

static void kinds(void)
{
    printf(
        "Series without a step, of 60 nights, 1 %% of noise a sample and 0.3 %% a night: how many\n"
        "of 100 have an alarm on any night (aim: at most 2), and on two nights running\n");
    names("nights");
    for (int k = 0; k < KINDS; k++) {
        const struct case_ c = {.kind = k, .noise = 0.01};
        printf("  %-26s", kind_names[k]);
        for (int m = 0; m < METHODS; m++) {
            struct alarms a = false_alarms(&c, m);
            printf(" %6.1f %6.1f", percent(a.any), percent(a.in_a_row));
            fflush(stdout);
        }
        printf("\n");
    }
}

static void kinds_found(void)
{
    printf("\nA step of -3 %% there: how many of 100 are alarms by the second night (aim, of\n"
           "independent ones: at least 99), on a night from the 31st on; and by the seventh\n");
    names("nights");
    for (int k = 0; k < KINDS; k++) {
        const struct case_ c = {.kind = k, .noise = 0.01, .loss = 0.03};
        printf("  %-26s", kind_names[k]);
        for (int m = 0; m < METHODS; m++)
            printf(" %6.1f %6.1f", percent(found(c, m, 30, 52, 2)),
                   percent(found(c, m, 30, 52, 7)));
        printf("\n");
        fflush(stdout);
    }
}

static void noises(void)
{
    static const double noise[] = {0.005, 0.01, 0.02}, loss[] = {0.01, 0.02, 0.03, 0.05};
    printf("\nBy noise and step: by the second night, and by the seventh, of 100; of step 0: "
           "alarms\n");
    names("noise, step");
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) {
        struct case_ c = {.kind = PLAIN, .noise = noise[i]};
        printf("  %3.1f %%       0             ", 100 * noise[i]);
        for (int m = 0; m < METHODS; m++)
            printf(" %6.1f       ", percent(false_alarms(&c, m).any));
        printf("\n");
        for (size_t k = 0; k < sizeof loss / sizeof *loss; k++) {
            c.loss = loss[k];
            printf("  %3.1f %%      -%.0f %%            ", 100 * noise[i], 100 * loss[k]);
            for (int m = 0; m < METHODS; m++)
                printf(" %6.1f %6.1f", percent(found(c, m, 30, 52, 2)),
                       percent(found(c, m, 30, 52, 7)));
            printf("\n");
            fflush(stdout);
        }
    }
}

static void history(void)
{
    static const int before[] = {7, 10, 14, 21, 30, 45, 57};
    const struct case_ c = {.kind = PLAIN, .noise = 0.01, .loss = 0.03};
    printf(
        "\nA step of -3 %% (1 %% of noise) by how many nights lie before it: of 100 by the 2nd, 3rd"
        " night\n");
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        printf("  %2d nights before: %6.1f %6.1f\n", before[i],
               percent(found(c, 0, before[i], before[i], 2)),
               percent(found(c, 0, before[i], before[i], 3)));
}

static double microseconds(const struct case_ *c, int repeats)
{
    struct s4d_level v[NIGHTS];
    int at, n = make(c, FIRST_SEED, v, &at);
    double start_s = bench_now_s();
    for (int i = 0; i < repeats; i++)
        change_points(v, n);
    return 1e6 * (bench_now_s() - start_s) / repeats;
}

void bench_changes(void)
{
    const struct s4d_change_options o = s4d_change_defaults();
    const struct case_ same = {.kind = PLAIN, .noise = 0.01, .step = NIGHTS},
                       step = {.kind = PLAIN, .noise = 0.01, .step = 40, .loss = 0.03};
    printf(
        "Changes of nightly series: p <= %g of %d orders, at least %g %% and %g standard errors\n"
        "  seeds %d to %d; the defaults were chosen on others, from 5,000,000 on\n\n",
        o.p_max, o.permutations, 100 * o.magnitude, o.deviation, FIRST_SEED, FIRST_SEED + RUNS - 1);
    kinds();
    kinds_found();
    noises();
    history();
    printf("\nOne series of 60 nights, one metric: %.0f us without a change, %.0f us with one\n\n",
           microseconds(&same, 200), microseconds(&step, 50));
}
