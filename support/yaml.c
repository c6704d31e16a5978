/* SPDX-License-Identifier: Apache-2.0 */
/* libyaml's events to a tree in one arena. Recursion is bounded by DEPTH, memory by NODES, time by
 * both: what multiplies (aliases) is refused. */
#include "support/yaml.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "support/file.h"
#include "support/memory.h"
#include "support/quote.h"

enum { DEPTH = 64, NODES = 1000000 };

/* The root with the arena behind it, so that freeing the root frees all. */
struct tree {
    struct s4d_yaml_node root;
    struct s4d_arena arena;
};

struct reader {
    yaml_parser_t parser;
    const char *name, *text;
    size_t n;
    struct s4d_arena *arena;
    int nodes;
    struct s4d_error *err;
};

static int fail_line(struct reader *r, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail_line(struct reader *r, size_t line, const char *format, ...)
{
    char where[512], text[512];
    snprintf(where, sizeof where, "%s:%zu", r->name, line);
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return s4d_fail(r->err, S4D_EXIT_DATA, where, "%s", text);
}

static size_t line_of_offset(const struct reader *r, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < r->n; i++)
        line += r->text[i] == '\n';
    return line;
}

/* libyaml's own error, in its own words. */
static int fail_libyaml(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "unreadable";
    if (p->error == YAML_READER_ERROR)
        return fail_line(r, line_of_offset(r, p->problem_offset),
                         "expected UTF-8 text, found byte 0x%02x: %s",
                         (unsigned)(unsigned char)p->problem_value, problem);
    return fail_line(r, p->problem_mark.line + 1, "bad YAML: %s%s%s", problem,
                     p->context ? " " : "", p->context ? p->context : "");
}

static int next(struct reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) ? 0 : fail_libyaml(r);
}

/* Anchors and tags on a value. */
static int refuse_extras(struct reader *r, const yaml_event_t *e)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (e->type == YAML_SCALAR_EVENT) {
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
    } else if (e->type == YAML_SEQUENCE_START_EVENT) {
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
    } else if (e->type == YAML_MAPPING_START_EVENT) {
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
    }
    size_t line = e->start_mark.line + 1;
    if (anchor || e->type == YAML_ALIAS_EVENT)
        return fail_line(r, line, "expected a plain value, found an anchor or alias (& or *)");
    if (tag)
        return fail_line(r, line, "expected a plain value, found a tag (!)");
    return 0;
}

static int scalar_text(struct reader *r, const yaml_event_t *e, const char **text)
{
    const char *value = (const char *)e->data.scalar.value;
    size_t n = e->data.scalar.length;
    if (memchr(value, '\0', n))
        return fail_line(r, e->start_mark.line + 1, "expected text, found a NUL character in it");
    char *copy = s4d_arena_alloc(r->arena, n + 1);
    memcpy(copy, value, n);
    *text = copy;
    return 0;
}

static int fill(struct reader *r, const yaml_event_t *start, int depth, struct s4d_yaml_node *node);

struct children {
    struct s4d_yaml_node **v;
    int n, cap;
};

/* One value of a sequence (key NULL) or a mapping, from its first event. */
static int add_child(struct reader *r, const yaml_event_t *start, const char *key, int depth,
                     struct children *list)
{
    if (++r->nodes > NODES)
        return fail_line(r, start->start_mark.line + 1, "expected at most %d values, found more",
                         NODES);
    struct s4d_yaml_node *child = s4d_arena_alloc(r->arena, sizeof *child);
    child->key = key;
    s4d_push(list->v, list->n, list->cap, child);
    return fill(r, start, depth, child);
}

static int read_value(struct reader *r, const char *key, int depth, struct children *list)
{
    yaml_event_t e;
    if (next(r, &e))
        return -1;
    int rc = add_child(r, &e, key, depth, list);
    yaml_event_delete(&e);
    return rc;
}

/* Reads one element; *more is false at the end of the collection. */
static int read_element(struct reader *r, bool mapping, int depth, struct children *list,
                        bool *more)
{
    yaml_event_t e;
    if (next(r, &e))
        return -1;
    *more = e.type != YAML_SEQUENCE_END_EVENT && e.type != YAML_MAPPING_END_EVENT;
    int rc = 0;
    if (*more && !mapping) {
        rc = add_child(r, &e, NULL, depth, list);
    } else if (*more) {
        const char *key = NULL;
        rc = refuse_extras(r, &e);
        if (!rc && e.type != YAML_SCALAR_EVENT)
            rc = fail_line(r, e.start_mark.line + 1, "expected a name as key, found a collection");
        rc = rc || scalar_text(r, &e, &key) ? -1 : read_value(r, key, depth, list);
    }
    yaml_event_delete(&e);
    return rc;
}

static int by_key_then_line(const void *a, const void *b)
{
    const struct s4d_yaml_node *p = *(struct s4d_yaml_node *const *)a;
    const struct s4d_yaml_node *q = *(struct s4d_yaml_node *const *)b;
    int order = strcmp(p->key, q->key);
    return order ? order : (p->line > q->line) - (p->line < q->line);
}

/* Sorted, because a million keys must not take their square. */
static int refuse_repeated(struct reader *r, const struct s4d_yaml_node *mapping)
{
    if (mapping->n < 2)
        return 0;
    size_t bytes = (size_t)mapping->n * sizeof(struct s4d_yaml_node *);
    struct s4d_yaml_node **v = memcpy(s4d_malloc(bytes), mapping->child, bytes);
    qsort(v, (size_t)mapping->n, sizeof *v, by_key_then_line);
    int rc = 0;
    for (int i = 1; i < mapping->n && !rc; i++) {
        if (strcmp(v[i - 1]->key, v[i]->key) == 0)
            rc = fail_line(r, (size_t)v[i]->line, "key %s is repeated; first on line %d",
                           s4d_quote(v[i]->key).text, v[i - 1]->line);
    }
    free(v);
    return rc;
}

static int fill_collection(struct reader *r, int depth, struct s4d_yaml_node *node)
{
    if (depth >= DEPTH)
        return fail_line(r, (size_t)node->line, "expected at most %d levels, found more", DEPTH);
    struct children list = {NULL, 0, 0};
    bool more = true;
    int rc = 0;
    while (more && !rc)
        rc = read_element(r, node->kind == S4D_YAML_MAPPING, depth + 1, &list, &more);
    if (!rc && list.n) {
        size_t bytes = (size_t)list.n * sizeof *list.v;
        node->child = memcpy(s4d_arena_alloc(r->arena, bytes), list.v, bytes);
        node->n = list.n;
    }
    free(list.v);
    if (!rc && node->kind == S4D_YAML_MAPPING)
        rc = refuse_repeated(r, node);
    return rc;
}

/* Node from its first event, reading the rest of it. */
static int fill(struct reader *r, const yaml_event_t *start, int depth, struct s4d_yaml_node *node)
{
    node->file = r->name;
    node->line = (int)start->start_mark.line + 1;
    if (refuse_extras(r, start))
        return -1;
    if (start->type == YAML_SCALAR_EVENT) {
        node->kind = S4D_YAML_SCALAR;
        return scalar_text(r, start, &node->text);
    }
    node->kind = start->type == YAML_MAPPING_START_EVENT ? S4D_YAML_MAPPING : S4D_YAML_SEQUENCE;
    return fill_collection(r, depth, node);
}

static int read_root(struct reader *r, struct s4d_yaml_node *root)
{
    yaml_event_t e;
    if (next(r, &e))
        return -1;
    int rc = fill(r, &e, 0, root);
    yaml_event_delete(&e);
    if (!rc && root->kind == S4D_YAML_SCALAR && root->text[0] == '\0')
        rc = fail_line(r, (size_t)root->line, "expected keys and values, found nothing");
    return rc;
}

/* The next event's type, and where; the event has no content that matters. */
static int read_mark(struct reader *r, yaml_event_type_t *type, size_t *line)
{
    yaml_event_t e;
    if (next(r, &e))
        return -1;
    *type = e.type;
    *line = e.start_mark.line + 1;
    yaml_event_delete(&e);
    return 0;
}

static int read_stream(struct reader *r, struct s4d_yaml_node *root)
{
    yaml_event_type_t type;
    size_t line;
    if (read_mark(r, &type, &line) || read_mark(r, &type, &line)) /* stream, document */
        return -1;
    if (type == YAML_STREAM_END_EVENT)
        return fail_line(r, line, "expected keys and values, found nothing");
    if (read_root(r, root) || read_mark(r, &type, &line) || read_mark(r, &type, &line))
        return -1;
    if (type != YAML_STREAM_END_EVENT)
        return fail_line(r, line, "expected one document, found another");
    return 0;
}

/* Whether a line starts at text + i, by libyaml's line breaks: CR, LF, NEL, LS, PS; or the text,
 * with or without a byte order mark. */
static bool starts_line(const char *text, size_t i)
{
    static const char *const before[] = {"\n", "\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
    for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
        size_t n = strlen(before[k]);
        if (i >= n && memcmp(text + i - n, before[k], n) == 0)
            return true;
    }
    return i == 0 || (i == 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0);
}

/* Directives have no use here, and libyaml compares every %TAG with all before it: 100,000 of them
 * take 19 s. */
static int refuse_directives(struct reader *r)
{
    const char *end = r->text + r->n;
    for (const char *p = r->text; p < end && (p = memchr(p, '%', (size_t)(end - p))); p++) {
        size_t offset = (size_t)(p - r->text);
        if (starts_line(r->text, offset))
            return fail_line(r, line_of_offset(r, offset),
                             "expected keys and values, found a directive (%%)");
    }
    return 0;
}

int s4d_yaml_parse(const char *name, const char *text, size_t n, struct s4d_yaml_node **root,
                   struct s4d_error *err)
{
    *root = NULL;
    struct tree *tree = s4d_calloc(1, sizeof *tree);
    struct reader r = {.text = text, .n = n, .arena = &tree->arena, .err = err};
    r.name = s4d_arena_printf(&tree->arena, "%s", name);
    if (n > S4D_FILE_MAX) {
        s4d_yaml_free(&tree->root);
        return s4d_fail(err, S4D_EXIT_DATA, name, "expected at most %d MiB", S4D_FILE_MAX >> 20);
    }
    S4D_ASSERT(yaml_parser_initialize(&r.parser), "libyaml has no memory");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
    int rc = refuse_directives(&r) || read_stream(&r, &tree->root) ? -1 : 0;
    yaml_parser_delete(&r.parser);
    if (rc)
        s4d_yaml_free(&tree->root);
    else
        *root = &tree->root;
    return rc;
}

int s4d_yaml_read(const char *file, struct s4d_yaml_node **root, struct s4d_error *err)
{
    char *text;
    size_t n;
    *root = NULL;
    if (s4d_file_read(file, &text, &n, err))
        return -1;
    int rc = s4d_yaml_parse(file, text, n, root, err);
    free(text);
    return rc;
}

void s4d_yaml_free(struct s4d_yaml_node *root)
{
    struct tree *tree = (struct tree *)root;
    if (tree)
        s4d_arena_free(&tree->arena);
    free(tree);
}

const struct s4d_yaml_node *s4d_yaml_get(const struct s4d_yaml_node *mapping, const char *key)
{
    for (int i = 0; mapping->kind == S4D_YAML_MAPPING && i < mapping->n; i++) {
        if (strcmp(mapping->child[i]->key, key) == 0)
            return mapping->child[i];
    }
    return NULL;
}

int s4d_yaml_fail(const struct s4d_yaml_node *node, struct s4d_error *err, const char *format, ...)
{
    char where[512], text[1024];
    snprintf(where, sizeof where, "%s:%d%s%.80s", node->file, node->line, node->key ? ": " : "",
             node->key ? node->key : "");
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return s4d_fail(err, S4D_EXIT_DATA, where, "%s", text);
}
