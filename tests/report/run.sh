#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The report in a browser, as TAP: Chromium, driven by playwright-core (installed below build/, in the
# version that package-lock.json says). Screenshots and a PDF stay in build/report-test.
set -u
cd "$(dirname "$0")/../.."
dir=$PWD/build/report-test

skip() {
    echo "ok - report in Chromium # SKIP $1"
    exit 0
}
for program in chromium node npm; do
    command -v $program > /dev/null || skip "no $program: make deps installs it"
done
mkdir -p "$dir"
fail() {
    echo "not ok - report in Chromium: $1"
    cat "$dir/log"
    exit 1
}
cp tests/report/package.json tests/report/package-lock.json tests/report/report.mjs "$dir"
if ! cmp -s tests/report/package-lock.json "$dir/installed.json"; then
    (cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) > "$dir/log" 2>&1 ||
        { grep -qE 'network|ENOTFOUND|ECONN|ETIMEDOUT|EAI_AGAIN|E40[0-9]|E50[0-9]' "$dir/log" &&
            skip "npm cannot have playwright-core: $(grep -m 1 . "$dir/log")"; } || fail "npm ci"
    cp tests/report/package-lock.json "$dir/installed.json"
fi
rm -f "$dir"/store*
python3 tests/report/records.py 100 12 > "$dir/records.jsonl" &&
    build/scale4d track add --store "$dir/store" "$dir/records.jsonl" > "$dir/log" 2>&1 || fail "no store"
build/scale4d track report --store "$dir/store" --output "$dir/report.html" > "$dir/log" 2>&1 || fail "no report"
timeout 600 node "$dir/report.mjs" "$dir"
