/* SPDX-License-Identifier: Apache-2.0 */
#include "support/nccl_topology.h"

#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "support/memory.h"
#include "support/nccl_topology_parts.h"
#include "support/quote.h"
#include "support/record.h"
#include "support/units.h"

static const struct {
    const char *name;
    enum part part;
} elements[] = {{"system", SYSTEM}, {"cpu", CPU},   {"pci", PCI},   {"gpu", GPU},
                {"nvlink", NVLINK}, {"nic", NIC},   {"net", NET},   {"c2c", LINK},
                {"pcilink", LINK},  {"xgmi", LINK}, {"gin", OTHER}, {"coll", OTHER}};

void s4d_nccl_fail(struct s4d_nccl_reading *r, int line, const char *text)
{
    char where[512];
    if (r->failed)
        return;
    r->failed = true;
    snprintf(where, sizeof where, "%s:%d", r->file, line);
    s4d_fail(r->err, S4D_EXIT_DATA, where, "%s", text);
    XML_StopParser(r->parser, XML_FALSE);
}

static void fail(struct s4d_nccl_reading *r, const char *text)
{
    s4d_nccl_fail(r, (int)XML_GetCurrentLineNumber(r->parser), text);
}

static const char *get(const char **attributes, const char *key)
{
    for (int i = 0; attributes[i]; i += 2)
        if (strcmp(attributes[i], key) == 0)
            return attributes[i + 1];
    return NULL;
}

/* A whole number; missing: `missing`, which is -2 where it may not be. */
static int number(struct s4d_nccl_reading *r, const char **attributes, const char *key, int min,
                  int max, int missing)
{
    const char *text = get(attributes, key);
    struct s4d_error inner = {0};
    int64_t value = missing;
    char message[320];
    if (text && s4d_parse_int(text, min, max, &value, &inner) == 0)
        return (int)value;
    if (text || missing == -2) {
        snprintf(message, sizeof message, "%s: %.200s", key, text ? inner.text : "missing");
        fail(r, message);
    }
    return text ? min : missing;
}

static void text_of(struct s4d_nccl_reading *r, const char **attributes, const char *key, char *out,
                    size_t size)
{
    const char *text = get(attributes, key);
    char message[96];
    out[0] = '\0';
    if (text && text[0] && strlen(text) < size) {
        snprintf(out, size, "%s", text);
        return;
    }
    snprintf(message, sizeof message, "%s: expected 1 to %zu characters", key, size - 1);
    fail(r, message);
}

/* topo.cc, kvDictPciGen: units of 100 Mb/s a lane; generation 3 where it is not told, as there. */
static double pci_Bps(struct s4d_nccl_reading *r, const char **attributes)
{
    static const struct {
        const char *text;
        int speed;
    } speeds[] = {{"2.5 GT/s", 15},        {"5 GT/s", 30},         {"8 GT/s", 60},
                  {"16 GT/s", 120},        {"32 GT/s", 240},       {"2.5 GT/s PCIe", 15},
                  {"5.0 GT/s PCIe", 30},   {"8.0 GT/s PCIe", 60},  {"16.0 GT/s PCIe", 120},
                  {"32.0 GT/s PCIe", 240}, {"64.0 GT/s PCIe", 480}};
    const char *text = get(attributes, "link_speed");
    int width = number(r, attributes, "link_width", 0, 64, 0), speed = 60;
    for (size_t i = 0; text && i < sizeof speeds / sizeof *speeds; i++)
        if (strcmp(text, speeds[i].text) == 0)
            speed = speeds[i].speed;
    return (width ? width : 16) * speed / 80.0 * 1e9;
}

/* topo.cc, ncclTopoGetInterCpuBw. */
static double between_cpus_Bps(struct s4d_nccl_reading *r, const char **attributes)
{
    const char *arch = get(attributes, "arch"), *vendor = get(attributes, "vendor");
    int family = number(r, attributes, "familyid", 0, 1 << 20, 0),
        id = number(r, attributes, "modelid", 0, 1 << 20, 0);
    if (arch && strcmp(arch, "ppc64") == 0)
        return 32e9;
    if (arch && strcmp(arch, "arm64") == 0)
        return 6e9;
    if (vendor && strcmp(vendor, "AuthenticAMD") == 0)
        return 16e9;
    if (vendor && strcmp(vendor, "GenuineIntel") == 0 && family == 6)
        return id >= 0xCF ? 40e9 : id >= 0x8F ? 22e9 : id >= 0x55 ? 10e9 : 6e9;
    return 6e9;
}

static int add_vertex(struct s4d_nccl_reading *r, int parent, double up_Bps, double cpu_Bps)
{
    r->n_cpus += parent < 0;
    if (r->n_vertices == MOST_VERTICES || r->n_cpus > MOST_CPUS) {
        fail(r, "more than 32 processors or 512 PCIe devices");
        return 0;
    }
    r->vertex[r->n_vertices] = (struct vertex){
        .parent = parent, .number = -1, .gpu = -1, .up_Bps = up_Bps, .cpu_Bps = cpu_Bps};
    return r->n_vertices++;
}

static void begin_pci(struct s4d_nccl_reading *r, const char **attributes, int *at)
{
    int v = add_vertex(r, *at, pci_Bps(r, attributes), 0);
    text_of(r, attributes, "busid", r->vertex[v].busid, sizeof r->vertex[v].busid);
    for (int i = 0; i < v; i++)
        if (strcmp(r->vertex[i].busid, r->vertex[v].busid) == 0)
            fail(r, "busid: is there twice");
    *at = v;
}

static void begin_gpu(struct s4d_nccl_reading *r, const char **attributes, int at)
{
    if (r->n_gpus == MOST_GPUS) {
        fail(r, "more than 64 GPUs");
        return;
    }
    if (r->vertex[at].gpu >= 0) {
        fail(r, "a second GPU of one PCIe device");
        return;
    }
    r->vertex[at].gpu = r->n_gpus;
    r->gpu[r->n_gpus++] = (struct gpu){.vertex = at,
                                       .dev = number(r, attributes, "dev", 0, 1023, -2),
                                       .sm = number(r, attributes, "sm", 10, 999, -2),
                                       .rank = number(r, attributes, "rank", -1, 1 << 24, -1),
                                       .line = (int)XML_GetCurrentLineNumber(r->parser)};
}

static void begin_nvlink(struct s4d_nccl_reading *r, const char **attributes)
{
    if (r->n_nvlinks == MOST_NVLINKS) {
        fail(r, "more than 4096 nvlink elements");
        return;
    }
    struct nvlink *link = &r->nvlink[r->n_nvlinks++];
    link->gpu = r->n_gpus - 1;
    link->line = (int)XML_GetCurrentLineNumber(r->parser);
    link->count = number(r, attributes, "count", 1, 256, -2);
    text_of(r, attributes, "target", link->target, sizeof link->target);
    text_of(r, attributes, "tclass", link->tclass, sizeof link->tclass);
}

static void begin_net(struct s4d_nccl_reading *r, const char **attributes, int at)
{
    int speed = number(r, attributes, "speed", 0, 100000000, -2); /* Mb/s */
    if (r->n_ports == MOST_PORTS)
        fail(r, "more than 256 network ports");
    else if (speed > 0)
        r->port[r->n_ports++] = (struct port){at, speed * 1e6 / 8};
}

/* Which element may stand where: 'parent' must be the one that is open. */
static bool is_in_place(const struct s4d_nccl_reading *r, enum part part)
{
    enum part parent = r->depth > 0 ? r->open[r->depth - 1] : OTHER;
    switch (part) {
    case SYSTEM:
        return r->depth == 0;
    case CPU:
        return r->depth > 0 && parent == SYSTEM;
    case PCI:
        return r->depth > 0 && (parent == CPU || parent == PCI);
    case GPU:
        return r->depth > 0 && parent == PCI;
    case NVLINK:
        return r->depth > 0 && parent == GPU;
    case NIC:
        return r->depth > 0 && (parent == PCI || parent == CPU);
    case NET:
        return r->depth > 0 && parent == NIC;
    default:
        return r->depth > 0;
    }
}

static void XMLCALL begin(void *context, const char *name, const char **attributes)
{
    struct s4d_nccl_reading *r = context;
    size_t i = 0, n = sizeof elements / sizeof *elements;
    char message[160];
    if (r->failed)
        return;
    while (i < n && strcmp(elements[i].name, name) != 0)
        i++;
    if (i == n || !is_in_place(r, elements[i].part) || r->depth == DEEPEST) {
        snprintf(message, sizeof message, "unexpected element %s", s4d_quote(name).text);
        fail(r, message);
        return;
    }
    int at = r->depth > 0 ? r->at[r->depth - 1] : -1;
    switch (elements[i].part) {
    case LINK:
        snprintf(message, sizeof message, "a link of kind %s, which is not known here",
                 s4d_quote(name).text);
        fail(r, message);
        s4d_hint(r->err, "without it ways would be wrong: known are nvlink and pci; write the node "
                         "into a machine file (sim/machines/README.md)");
        return;
    case CPU:
        at = add_vertex(r, -1, 0, between_cpus_Bps(r, attributes));
        break;
    case PCI:
        begin_pci(r, attributes, &at);
        break;
    case GPU:
        begin_gpu(r, attributes, at);
        break;
    case NVLINK:
        begin_nvlink(r, attributes);
        break;
    case NET:
        begin_net(r, attributes, at);
        break;
    default:
        break;
    }
    r->open[r->depth] = elements[i].part;
    r->at[r->depth++] = at;
}

static void XMLCALL end(void *context, const char *name)
{
    struct s4d_nccl_reading *r = context;
    (void)name;
    if (!r->failed)
        r->depth--;
}

int s4d_nccl_topology_parse(struct s4d_machine *m, const char *file, const char *text, size_t n,
                            struct s4d_error *err)
{
    struct s4d_nccl_reading *r = s4d_calloc(1, sizeof *r);
    r->file = file;
    r->err = err;
    r->parser = XML_ParserCreate(NULL);
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, begin, end);
    if (XML_Parse(r->parser, text, (int)n, 1) != XML_STATUS_OK && !r->failed)
        fail(r, XML_ErrorString(XML_GetErrorCode(r->parser)));
    int rc = r->failed ? -1 : s4d_nccl_build(m, r);
    XML_ParserFree(r->parser);
    free(r);
    return rc;
}

int s4d_nccl_topology_read(struct s4d_machine *m, const char *file, struct s4d_error *err)
{
    char *bytes = NULL;
    size_t n;
    if (s4d_file_read(file, &bytes, &n, err))
        return -1;
    int rc = s4d_nccl_topology_parse(m, file, bytes, n, err);
    if (rc == 0) {
        char *all = s4d_asprintf("%s\n%s", m->hash, bytes);
        s4d_hash(all, strlen(all), m->hash);
        free(all);
    }
    free(bytes);
    return rc;
}
