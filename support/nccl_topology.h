/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a node from an NCCL topology file (what NCCL_TOPO_DUMP_FILE writes, NCCL_TOPO_FILE
 * reads): GPUs, NVLinks, the PCIe tree, processors, network ports.
 *
 * Bandwidths are those that NCCL itself gives such links (NVIDIA/nccl src/graph/topo.h, topo.cc):
 * NVLink by the GPU's sm, each link; PCIe width x speed / 80 GB/s; between processors by their
 * maker and model; ports their speed. NVLinks to NVSwitches meet in one switch, as there. Ports
 * slower than the fastest are left out with a warning. Links of other kinds
 * (c2c, pcilink, xgmi) are an error, as is an element that NCCL does not write; gin and coll, which
 * join nothing, are passed over. */
#ifndef S4D_SUPPORT_NCCL_TOPOLOGY_H
#define S4D_SUPPORT_NCCL_TOPOLOGY_H

#include "support/machine.h"

/* From n bytes of XML into the node of a loaded machine: devices, switches, links, NICs, their
 * bandwidth; ranks to devices by the file's ranks, else in order. file: for messages and sources.
 * 0, or -1 (exit 65, file:line). */
int s4d_nccl_topology_parse(struct s4d_machine *m, const char *file, const char *text, size_t n,
                            struct s4d_error *err);
/* The same from a file, and its contents into the machine's hash. */
int s4d_nccl_topology_read(struct s4d_machine *m, const char *file, struct s4d_error *err);

#endif
