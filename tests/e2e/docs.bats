#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The pages that tell how to add something: their examples are followed to the letter, in a copy of
# the tree. Of a page's fenced blocks, "sh" is run, and one with a path ("c sim/fabric/bus.c") is
# written there; in the page's order.

load lib

# One copy for all, with the objects that are built, so that a change compiles what it touches.
setup_file() {
    cd "$BATS_TEST_DIRNAME/../.."
    copy=$BATS_FILE_TMPDIR/tree
    mkdir -p "$copy"
    git ls-files --cached --others --exclude-standard -z |
        tar --null --ignore-failed-read -cf - -T - 2> /dev/null | tar -C "$copy" -xf -
    find build \( -path build/asan -o -path build/fuzz -o -path build/figures -o -path build/tests \) -prune -o \
        -type f -print0 | tar --null -cf - -T - | tar -C "$copy" -xf -
    rm "$copy"/build/support/file.o # its own data, not this tree's
    MAKEFLAGS= make -C "$copy" --no-print-directory all > "$copy/build/log" 2>&1 || cat "$copy/build/log"
    export copy
}

# The page as a script.
script_of() {
    awk '
        /^```/ && inside { if (path) print "END_OF_FILE"; inside = path = ""; next }
        /^```/ {
            inside = "skip"
            split(substr($0, 4), word, " ")
            path = word[2]
            if (word[1] == "sh") inside = "run"
            if (path) {
                inside = "run"
                print "mkdir -p \"$(dirname " path ")\"; cat > " path " <<\"END_OF_FILE\""
            }
            next
        }
        inside == "run" { print }' "$1"
}

# follow PAGE: every command of it succeeds.
follow() {
    script_of "$1" > "$dir/script"
    [ "$(wc -l < "$dir/script")" -gt 3 ] || { echo "$1 has no example"; false; }
    (cd "$copy" && MAKEFLAGS= bash -euo pipefail "$dir/script" > "$dir/out" 2>&1 < /dev/null) ||
        { tail -n 30 "$dir/out"; false; }
}

@test "docs: add a machine" {
    follow sim/machines/README.md
    grep -q '^# machine lab ' "$dir/out"
    [ "$(grep -c ' OK$' "$dir/out")" -ge 2 ]
}

@test "docs: check a machine file against a cluster" {
    follow sim/measured/README.md
    grep -q '^# against measured.txt, a table of scale4d collective' "$dir/out"
    grep -q '^# From 4 MiB: mean' "$dir/out"
    grep -q '^# Perlmutter and DGX' "$dir/out"
}

@test "docs: add a fabric" {
    follow sim/fabric/README.md
    grep -qE '^ *67108864 .* 1\.25? ' "$dir/out"
    grep -q 'bus$' "$dir/out" # what holds up its streams
}

@test "docs: add a layer kind" {
    follow schedule/layers/README.md
    grep -q 'SiLU between' "$dir/out"
    grep -q 'workload gpt-silu ' "$dir/out"
}

@test "docs: add a figure" {
    follow paper-figures/README.md
}

@test "docs: records" {
    follow plots/RECORD.md
}

@test "docs: night after night" {
    follow plots/TRACK.md
    grep -qF 'night.jsonl: 1 added, 0 there already, 0 wrong' "$dir/out"
}

@test "docs: every key of a record is told, and no other" {
    "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 4 --grid auto --global-batch 16 \
        --json --explain > "$dir/records" 2> /dev/null
    "$s4d" collective --machine perlmutter --op all_reduce --ranks 8 -b 1M -e 1M --json \
        >> "$dir/records" 2> /dev/null
    "$s4d" route --machine perlmutter 0 5 --json >> "$dir/records"
    [ ! -x build/scale4d-run ] ||
        build/scale4d-run train --backend host --workload gpt-tiny --grid 1x1x1x1 --global-batch 2 \
            --iterations 1 --json >> "$dir/records" 2> /dev/null
    /usr/bin/python3 - "$dir/records" plots/RECORD.md <<'END'
import json, re, sys
kinds = ["simulate", "train", "collective", "route"]
told = {k: {} for k in kinds}
for line in open(sys.argv[2]):
    m = re.match(r"\| `([^`]+)` \|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|", line)
    for k, mark in zip(kinds, m.groups()[1:] if m else ()):
        if mark.strip():
            told[k][m.group(1)] = mark.strip()
open_ended = {"provenance.environment", "explain.critical_path", "explain.model"}
streams = {"busy_s", "busbw_Bps"}
def keys(value, path=""):
    if not isinstance(value, dict) or path in open_ended:
        return {path}
    return {k for name, v in value.items() for k in
            keys(v, (path + "." if path else "") + ("STREAM" if path in streams else name))}
for line in open(sys.argv[1]):
    r = json.loads(line)
    has, page = keys(r) - {"busbw_Bps"} if r["kind"] == "train" else keys(r), told[r["kind"]]
    untold = has - set(page)
    absent = {k for k, mark in page.items() if mark == "x"} - has
    assert not untold, f"{r['kind']}: plots/RECORD.md does not tell of {sorted(untold)}"
    assert not absent, f"{r['kind']}: plots/RECORD.md tells of {sorted(absent)}"
END
}

@test "docs: sweeps" {
    follow plots/SWEEP.md
    [ "$(grep -c '^# .* OK$' "$dir/out")" -ge 5 ]
}
