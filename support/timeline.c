/* SPDX-License-Identifier: Apache-2.0 */
#include "support/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/replace.h"

struct s4d_timeline {
    struct s4d_replacement to;
    FILE *out;
    const char *separator;
};

int s4d_timeline_open(struct s4d_timeline **t, const char *file, struct s4d_error *err)
{
    struct s4d_replacement to;
    *t = NULL;
    if (s4d_replace_open(&to, file, err))
        return -1;
    *t = s4d_calloc(1, sizeof **t);
    **t = (struct s4d_timeline){.to = to, .out = to.out, .separator = "\n"};
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", to.out);
    return 0;
}

static void quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc((unsigned char)*text < ' ' ? '?' : *text, out);
    }
    fputc('"', out);
}

static void begin(struct s4d_timeline *t)
{
    fputs(t->separator, t->out);
    t->separator = ",\n";
}

static void named(struct s4d_timeline *t, const char *what, int process, int thread,
                  const char *name)
{
    begin(t);
    fprintf(t->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", what,
            process, thread);
    quoted(t->out, name);
    fputs("}}", t->out);
}

void s4d_timeline_process(struct s4d_timeline *t, int process, const char *name)
{
    named(t, "process_name", process, 0, name);
}

void s4d_timeline_thread(struct s4d_timeline *t, int process, int thread, const char *name)
{
    named(t, "thread_name", process, thread, name);
    begin(t);
    fprintf(t->out,
            "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%d,"
            "\"args\":{\"sort_index\":%d}}",
            process, thread, thread);
}

void s4d_timeline_event(struct s4d_timeline *t, int process, int thread, const char *name,
                        const char *category, double start_s, double end_s, const char *arguments)
{
    begin(t);
    fputs("{\"ph\":\"X\",\"name\":", t->out);
    quoted(t->out, name);
    fputs(",\"cat\":", t->out);
    quoted(t->out, category);
    /* the format's unit is the microsecond; three decimals are nanoseconds */
    fprintf(t->out, ",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}}", process,
            thread, 1e6 * start_s, 1e6 * (end_s - start_s), arguments);
}

int s4d_timeline_close(struct s4d_timeline *t, struct s4d_error *err)
{
    fputs("\n]}\n", t->out);
    int rc = s4d_replace_close(&t->to, 0, err);
    free(t);
    return rc;
}
