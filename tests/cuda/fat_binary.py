# SPDX-License-Identifier: Apache-2.0
"""What is in the kernels' fat binaries, without NVIDIA's tools.

fat_binary.py FILE codes                what each holds: "machine code 80", "PTX 90", one a line
fat_binary.py FILE accesses KERNEL.cu...  fails, and says why, unless every kernel is there in fp32
                                        and fp64, has 16-byte accesses if it goes over matrices, no
                                        atomics, and no array in local memory

A fat binary is a header (magic, version, its size, size of the rest) and entries (kind, its header's
size, size of the rest; at 28 the chip). PTX is text where nvcc had -no-compress."""
import re
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, MACHINE_CODE = 1, 2


def entries(data):
    at = data.find(MAGIC)
    while at >= 0:
        header, size = struct.unpack_from("<HQ", data, at + 6)
        entry, end = at + header, at + header + size
        while entry < end:
            kind, own, rest = struct.unpack_from("<H2xIQ", data, entry)
            (chip,) = struct.unpack_from("<I", data, entry + 28)
            yield kind, chip, data[entry + own : entry + own + rest]
            entry += own + rest
        at = data.find(MAGIC, end)


SMALL = {"goldfish"}  # of tokens
OF_MATRICES = {"ELEMENTS", "ROWS", "COLUMNS", "PARTS", "TILES"}


def spans(sources):
    """Kernel: its span, as S4D_KERNEL says."""
    text = "".join(open(name).read() for name in sources)
    return dict(re.findall(r"^S4D_KERNEL\((\w+), S4D_SPAN_(\w+),", text, re.M))


def bodies(ptx):
    """(kernel, f or d): its text."""
    for part in re.split(r"\.entry ", ptx)[1:]:
        name = re.match(r"\w*?\d+([a-z]\w*?)I([fd])Ev13s4d_cuda_args", part)
        yield (name.group(1), name.group(2)), part


def main(file, what, *sources):
    data = open(file, "rb").read()
    if what == "codes":
        for kind, chip, _ in entries(data):
            print("PTX" if kind == PTX else "machine code", chip)
        return 0
    ptx = "\n".join(text.decode("ascii", "replace") for kind, _, text in entries(data) if kind == PTX)
    found, wrong = dict(bodies(ptx)), []
    for kernel, span in spans(sources).items():
        for real in "fd":
            body = found.get((kernel, real))
            if body is None:
                wrong.append(f"{kernel}, {real}: not there")
                continue
            wide = r"\.global(\.nc|\.cg)?\.(v4\.[usfb]32|v2\.[usfb]64)"
            reads, writes = re.search(r"\bld" + wide, body), re.search(r"\bst" + wide, body)
            if span in OF_MATRICES and kernel not in SMALL and not (reads or writes):
                wrong.append(f"{kernel}, {real}: no 16-byte access")
            if span in ("ELEMENTS", "TILES") and kernel not in SMALL and not writes:
                wrong.append(f"{kernel}, {real}: does not write 16 bytes at a time")
            for word in ("atom.", "red.", ".local "):
                if re.search(r"(?<![.\w])" + re.escape(word), body):
                    wrong.append(f"{kernel}, {real}: {word}")
    if not found:
        wrong.append("no PTX")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
