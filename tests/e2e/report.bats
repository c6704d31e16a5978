#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d track report, from the command line; tests/report has what a browser says of it.

load lib
load track

report() {
    "$s4d" track report --output "$dir/report.html" "$@"
}

@test "report: one file that needs nothing else, the same bytes each time" {
    nights 30 'if i >= 25: r["samples_s"] = [x * 1.5 for x in r["samples_s"]]' | "$s4d" track add -
    report
    cp "$dir/report.html" "$dir/first.html"
    mkdir "$dir/scratch"
    TMPDIR=$dir/scratch report
    cmp "$dir/first.html" "$dir/report.html"
    "$s4d" track report | cmp - "$dir/report.html"
    [ -z "$(ls -A "$dir/scratch")" ] # of this report: others may be made at the same time
    python3 - "$dir/report.html" << 'END'
import html.parser, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
assert not re.search(r"""(src|href)\s*=\s*["'](?!#|data:)""", text) and "@import" not in text and "url(" not in text
void = {"meta", "link", "input", "br"}
class Check(html.parser.HTMLParser):
    open, ids, svgs = [], set(), 0
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        assert attrs.get("id") not in self.ids or "id" not in attrs, attrs
        self.ids.add(attrs.get("id"))
        self.svgs += tag == "svg"
        if tag not in void: self.open.append(tag)
    def handle_startendtag(self, tag, attrs): pass
    def handle_endtag(self, tag): assert self.open.pop() == tag, (tag, self.getpos())
c = Check()
c.feed(text)
assert not c.open and c.svgs >= 2, (c.open, c.svgs)
assert "<h1>1 regression</h1>" in text
assert "font-family=" not in text and "rgb(" not in text, "colours and fonts are the page's"
END
}

@test "report: nothing is wrong; one night; no number; an accepted change; a reference" {
    nights 1 | "$s4d" track add -
    report
    grep -q '<h1>Too few nights to judge</h1>' "$dir/report.html"
    grep -q 'too few nights' "$dir/report.html"
    nights 40 'if i >= 30: r["samples_s"] = [x * 1.5 for x in r["samples_s"]]' | "$s4d" track add -
    nights 3 'r["kind"] = "failure"; r["samples_s"] = None; r["where"] = "rank 3"; r["message"] = "died";
for k in ("exposed_s", "busbw_Bps", "flops_formula", "flops_per_s", "iteration_time_s", "gemm_flops_per_s", "memory_peak_bytes", "slowest_rank"): r.pop(k)' |
        "$s4d" track add -
    "$s4d" track annotate --accepted-since 2024-03-31 --all --text "slower, and stays"
    cat > "$dir/references.yaml" << 'END'
cpu x2 n:
  - flops_per_s: [0.4, -0.9, 0.5, TFLOP/s]
END
    report --references "$dir/references.yaml"
    grep -q '<h1>Nothing changed</h1>' "$dir/report.html"
    grep -q '<text>accepted</text>' "$dir/report.html"
    grep -q 'polygon class="band"' "$dir/report.html"
    grep -q 'allowed by the reference' "$dir/report.html"
    report --sections 0
    ! grep -q '<section class="one' "$dir/report.html"
}

@test "report: a machine whose iterations are all over the place does not flatten a change" {
    nights 20 't = 0.25 * (1.05 if i > 16 else 1); r["samples_s"] = [t, t / 2, t * 2]; r["iteration_time_s"] = t; r["flops_per_s"] = 1e12 / t' | "$s4d" track add -
    report
    grep -q '40 samples lie above or below the picture' "$dir/report.html"
    run "$s4d" track list
    [[ $output == *" 3.81 TFLOP/s  train "* ]]
}

@test "report: a year of 50 series is under 2 MB" {
    python3 tests/report/records.py 365 50 | "$s4d" track add -
    report --causes 0
    size=$(wc -c < "$dir/report.html")
    echo "$size bytes"
    [ "$size" -gt 500000 ] && [ "$size" -lt 2000000 ]
    [ "$(grep -c '<section class="one' "$dir/report.html")" -eq 50 ]
}

@test "report: what is wrong is said, and the old page stays" {
    refuses 65 "store" -- track report
    nights 5 | "$s4d" track add -
    refuses 74 "nowhere" -- track report --output "$dir/nowhere/report.html"
    refuses 64 "--night" -- track report --night yesterday
    refuses 65 "2023-01-01" -- track report --night 2023-01-01
    echo old > "$dir/report.html"
    # No gnuplot on the way.
    status=0
    PATH=/nowhere "$s4d" track report --output "$dir/report.html" 2> "$dir/err" || status=$?
    [ "$status" -eq 69 ]
    grep -q "gnuplot: cannot be started" "$dir/err"
    [ "$(cat "$dir/report.html")" = old ]
    [ ! -e "$dir/report.html.partial" ]
    TMPDIR=$dir/nowhere refuses 74 "cannot be made" -- track report --output "$dir/report.html"
    [ "$(cat "$dir/report.html")" = old ]
    if [ -e /dev/full ]; then
        status=0
        "$s4d" track report > /dev/full 2> "$dir/err" || status=$?
        [ "$status" -eq 74 ]
    fi
}

@test "verdict --format: a regression fails in JUnit and ReFrame, one line for chat, the reference's limits" {
    python3 tests/report/records.py 40 6 | "$s4d" track add -
    printf 'NVIDIA H100 80GB HBM3 x8 n:\n  - series: {workload: gpt-5b}\n    flops_per_s: [2.7, -0.5, null, EFLOP/s]\n' > "$dir/references.yaml"
    cd "$dir"
    verdict() {
        local status=0
        "$s4d" track verdict "$@" || status=$?
        [ "$status" -eq 1 ]
    }
    verdict --format junit --output r.xml
    verdict --format summary > summary
    verdict --format reframe-perflog --output logs --references references.yaml
    verdict --format reframe-perflog --output logs --references references.yaml
    verdict --format github-smaller-is-better > smaller.json
    python3 - << 'END'
import glob, json, re, xml.etree.ElementTree as E
root = E.parse("r.xml").getroot()
cases = root.findall("*/testcase")
failed = [c for c in cases if c.find("failure") is not None]
(error,) = [c for c in cases if c.find("error") is not None]
(failure,) = failed
assert failure.get("name") == "flops_per_s of 2026-11-30" and "gpt-5b" in failure.get("classname"), failure.attrib
assert re.search(r"lost [23]\.\d % since the night of 2026-11-19.*exposed_s\.z", failure.find("failure").get("message"))
assert "gpt-10b" in error.get("classname") and "no record" in error.find("error").text
# Five series ran, and of each a value was judged; the simulated one and the one without a record among six.
suites = root.findall("testsuite")
assert sum(int(s.get("tests")) for s in suites) == len(cases) == 5 + 5 + 1
assert [sum(int(s.get(k)) for s in suites) for k in ("failures", "errors")] == [1, 1]
(line,) = open("summary").read().splitlines()
assert re.match(r"night of 2026-11-30, 6 series: 1 worse, 1 missing.*gpt-5b 64 GPUs.* lost .*; and \d more$", line), line
files = glob.glob("logs/*/*/*.log*")
assert len(files) == 5, files
(gpt,) = [f for f in files if "NVIDIA" in f and "gpt-5b" in f]
head, *rows = [l.split("|") for l in open(gpt).read().splitlines()]
assert len(rows) == 2
r = dict(zip(head, rows[1], strict=True))
assert r["result"] == "fail" and r["flops_per_s_ref"] == "2700000000000000000", r
assert r["flops_per_s_lower_thres"] == "-0.5" and r["flops_per_s_upper_thres"] == "None", r
for f in files:
    assert f == gpt or open(f).read().splitlines()[1].startswith("pass|"), f
names = [e["name"] for e in json.load(open("smaller.json"))]
assert len(names) == len(set(names)) and sum(n.endswith(": iteration_time_s") for n in names) == 5, names
END
    refuses 64 "--format" -- track verdict --json --format junit
    refuses 64 "--output" -- track verdict --output x.xml
}
