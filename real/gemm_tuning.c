/* SPDX-License-Identifier: Apache-2.0 */
#include "real/gemm_tuning.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/file.h"
#include "support/lines.h"
#include "support/memory.h"
#include "support/replace.h"

const char *const s4d_gemm_tuning_names[S4D_TUNINGS + 1] = {
    [S4D_TUNING_OFF] = "off",
    [S4D_TUNING_CACHED] = "cached",
    [S4D_TUNING_FULL] = "full",
};
const char *const s4d_gemm_variant_names[S4D_GEMM_VARIANTS] = {"as-is", "turn-a", "turn-b",
                                                               "turn-both"};

static const char header[] =
    "# device\tlibrary\tm\tn\tk\tlda\tldb\tldd\ttranspose_a\ttranspose_b\taccumulate\ttf32\t"
    "type\td_type\tvariant\tas-is (s)\tturn-a (s)\tturn-b (s)\tturn-both (s)\n";

static bool same(const struct s4d_gemm_signature *a, const struct s4d_gemm_signature *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->lda == b->lda && a->ldb == b->ldb &&
           a->ldd == b->ldd && a->transpose_a == b->transpose_a &&
           a->transpose_b == b->transpose_b && a->accumulate == b->accumulate &&
           a->tf32 == b->tf32 && a->type == b->type && a->d_type == b->d_type;
}

const struct s4d_gemm_choice *s4d_gemm_choice_of(const struct s4d_gemm_choices *choices,
                                                 const struct s4d_gemm_signature *of)
{
    for (int i = 0; i < choices->n; i++)
        if (same(&choices->v[i].of, of))
            return &choices->v[i];
    return NULL;
}

void s4d_gemm_choices_free(struct s4d_gemm_choices *choices)
{
    free(choices->v);
    *choices = (struct s4d_gemm_choices){0};
}

char *s4d_gemm_cache_file(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache)
        return s4d_asprintf("%s/scale4d/gemm-tuning.tsv", cache);
    return s4d_asprintf("%s/.cache/scale4d/gemm-tuning.tsv", home && *home ? home : ".");
}

static int find(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* What follows device and library on a line. */
static bool parse(const char *text, struct s4d_gemm_choice *c)
{
    struct s4d_gemm_signature *s = &c->of;
    char type[16], d_type[16], variant[16], more;
    int64_t size[6];
    long long v[6];
    int n = sscanf(text,
                   "%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%d\t%d\t%d\t%d\t%15s\t%15s\t%15s\t%lf\t%lf"
                   "\t%lf\t%lf%c",
                   &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &s->transpose_a, &s->transpose_b,
                   &s->accumulate, &s->tf32, type, d_type, variant, &c->t_s[0], &c->t_s[1],
                   &c->t_s[2], &c->t_s[3], &more);
    bool good = n == 17;
    for (int i = 0; i < 6 && good; i++) {
        size[i] = v[i];
        good = v[i] > 0;
    }
    for (int i = 0; i < S4D_GEMM_VARIANTS && good; i++)
        good = isfinite(c->t_s[i]) && c->t_s[i] > 0;
    if (!good)
        return false;
    s->m = size[0], s->n = size[1], s->k = size[2];
    s->lda = size[3], s->ldb = size[4], s->ldd = size[5];
    int of = find(type, s4d_type_names, S4D_TYPES), d = find(d_type, s4d_type_names, S4D_TYPES);
    c->variant = find(variant, s4d_gemm_variant_names, S4D_GEMM_VARIANTS);
    s->type = (enum s4d_type)(of < 0 ? 0 : of);
    s->d_type = (enum s4d_type)(d < 0 ? 0 : d);
    unsigned flags = (unsigned)(s->transpose_a | s->transpose_b | s->accumulate | s->tf32);
    return of >= 0 && d >= 0 && c->variant >= 0 && flags <= 1;
}

/* The rest of a line that is this device's and library's, else NULL. */
static const char *own(const char *line, const char *device, const char *library)
{
    size_t d = strlen(device), l = strlen(library);
    if (strncmp(line, device, d) != 0 || line[d] != '\t' ||
        strncmp(line + d + 1, library, l) != 0 || line[d + 1 + l] != '\t')
        return NULL;
    return line + d + l + 2;
}

enum { COLUMNS = 19 };

/* Whether a line is one of a file like this, of whatever device: a comment, nothing, or columns.
 * The last may have lost its end. */
static bool is_line(const struct s4d_lines *lines)
{
    int tabs = 0;
    for (const char *c = lines->line; *c; c++)
        tabs += *c == '\t';
    return lines->line[0] == '#' || !lines->line[0] || tabs == COLUMNS - 1 || !lines->ended;
}

static int wrong_line(const char *where, struct s4d_error *err)
{
    s4d_fail(err, S4D_EXIT_DATA, where, "expected %d columns: %.200s", COLUMNS, header + 2);
    if (err)
        err->text[strcspn(err->text, "\n")] = '\0';
    return s4d_hint(err, "--gemm-tuning full writes the file anew once it is removed");
}

int s4d_gemm_choices_read(struct s4d_gemm_choices *choices, const char *file, const char *device,
                          const char *library, struct s4d_error *err)
{
    struct s4d_lines lines;
    if (access(file, F_OK) != 0 && errno == ENOENT)
        return 0;
    int rc = s4d_lines_open(&lines, file, S4D_FILE_MAX, err), got = 0;
    while (!rc && (got = s4d_lines_next(&lines, err)) > 0) {
        struct s4d_gemm_choice c;
        const char *rest = own(lines.line, device, library);
        if (!is_line(&lines) || (rest && !(lines.ended && parse(rest, &c))))
            rc = wrong_line(lines.where, err);
        else if (rest)
            s4d_push(choices->v, choices->n, choices->cap, c);
    }
    s4d_lines_close(&lines);
    return rc ? rc : got;
}

static void write_choice(FILE *out, const struct s4d_gemm_choice *c, const char *device,
                         const char *library)
{
    const struct s4d_gemm_signature *s = &c->of;
    fprintf(out, "%s\t%s\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\t%d\t%d\t%d\t%d\t%s\t%s\t%s", device,
            library, (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->lda,
            (long long)s->ldb, (long long)s->ldd, s->transpose_a, s->transpose_b, s->accumulate,
            s->tf32, s4d_type_names[s->type], s4d_type_names[s->d_type],
            s4d_gemm_variant_names[c->variant]);
    for (int i = 0; i < S4D_GEMM_VARIANTS; i++)
        fprintf(out, "\t%.9g", c->t_s[i]);
    fputc('\n', out);
}

/* Lines of other devices and libraries. */
static void copy_others(FILE *out, const char *file, const char *device, const char *library)
{
    struct s4d_lines old;
    if (s4d_lines_open(&old, file, S4D_FILE_MAX, NULL) == 0)
        while (s4d_lines_next(&old, NULL) > 0)
            if (old.line[0] != '#' && old.ended && !own(old.line, device, library))
                fprintf(out, "%s\n", old.line);
    s4d_lines_close(&old);
}

/* The folders above a file. What fails is told when the file is opened. */
static void make_folders(const char *file)
{
    char *path = s4d_strdup(file);
    for (char *c = path + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            (void)!mkdir(path, 0777);
            *c = '/';
        }
    free(path);
}

int s4d_gemm_choices_writable(const char *file, struct s4d_error *err)
{
    make_folders(file);
    return s4d_file_writable(file, err);
}

int s4d_gemm_choices_write(const struct s4d_gemm_choices *choices, const char *file,
                           const char *device, const char *library, struct s4d_error *err)
{
    struct s4d_replacement to;
    make_folders(file);
    if (s4d_replace_open(&to, file, err))
        return -1;
    fputs(header, to.out);
    copy_others(to.out, file, device, library);
    for (int i = 0; i < choices->n; i++)
        write_choice(to.out, &choices->v[i], device, library);
    return s4d_replace_close(&to, 0, err);
}
