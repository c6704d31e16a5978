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
    report
    cmp "$dir/first.html" "$dir/report.html"
    "$s4d" track report | cmp - "$dir/report.html"
    [ -z "$(ls -A "${TMPDIR:-/tmp}" | grep scale4d-report || true)" ]
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
    grep -q '<h1>No regression</h1>' "$dir/report.html"
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
    grep -q '<text>accepted</text>' "$dir/report.html"
    grep -q 'polygon class="band"' "$dir/report.html"
    grep -q 'allowed by the reference' "$dir/report.html"
    report --sections 0
    ! grep -q '<section class="one' "$dir/report.html"
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
    [ ! -e "$dir/report.html.new" ]
    TMPDIR=$dir/nowhere refuses 74 "cannot be made" -- track report --output "$dir/report.html"
    [ "$(cat "$dir/report.html")" = old ]
    if [ -e /dev/full ]; then
        status=0
        "$s4d" track report > /dev/full 2> "$dir/err" || status=$?
        [ "$status" -eq 74 ]
    fi
}
