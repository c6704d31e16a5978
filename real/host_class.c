/* SPDX-License-Identifier: Apache-2.0 */
#include "real/host_class.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "support/memory.h"

/* The value of the first line "KEY ... : VALUE" of a file, without spaces around it; or NULL. */
static char *value_of(const char *file, const char *key)
{
    char line[512], *value = NULL;
    FILE *in = fopen(file, "re");
    while (in && !value && fgets(line, sizeof line, in)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon)
            continue;
        char *text = colon + 1 + strspn(colon + 1, " \t");
        size_t n = strcspn(text, "\n");
        while (n > 0 && isspace((unsigned char)text[n - 1]))
            n--;
        text[n] = '\0';
        value = n > 0 ? s4d_strdup(text) : NULL;
    }
    if (in)
        fclose(in);
    return value;
}

char *s4d_processor_name(void)
{
    struct utsname u;
    char *name = value_of("/proc/cpuinfo", "model name");
    if (!name)
        name = s4d_strdup(uname(&u) == 0 ? u.machine : "processor");
    if (strlen(name) > 60)
        name[60] = '\0';
    return name;
}

/* The driver says it without CUDA. */
static char *gpu_name(void)
{
    glob_t found = {0};
    char *name = NULL;
    if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0)
        name = value_of(found.gl_pathv[0], "Model");
    globfree(&found);
    return name ? name : s4d_strdup("GPU");
}

char *s4d_host_without_digits(char *host)
{
    host[strcspn(host, ".")] = '\0';
    size_t n = strlen(host), to = 0;
    if (n == 12 && strspn(host, "0123456789abcdef") == n)
        host[0] = '\0';
    for (size_t i = 0; host[i]; i++)
        if (!isdigit((unsigned char)host[i]))
            host[to++] = host[i];
    host[to] = '\0';
    return host;
}

char *s4d_host_class(const char *given, const char *backend, int devices, const char *host)
{
    const char *set = getenv("SCALE4D_HOST_CLASS");
    if (given || (set && *set))
        return s4d_strdup(given ? given : set);
    char *model = strcmp(backend, "cuda") == 0 ? gpu_name() : s4d_processor_name();
    char *name = s4d_host_without_digits(s4d_strdup(host));
    char *text = s4d_asprintf("%s x%d%s%s", model, devices, *name ? " " : "", name);
    free(model);
    free(name);
    return text;
}
