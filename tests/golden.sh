#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Golden files: tests/golden/NAME.txt starts with "$ scale4d ARGUMENT..." and goes on with what that
# command prints on standard output. A changed prediction is a diff to review.
#
#   tests/golden.sh [--write] [NAME...]      TAP; --write rewrites the files
set -u
cd "$(dirname "$0")/.."
write=
[ "${1:-}" = --write ] && write=1 && shift
export SOURCE_DATE_EPOCH=0

for file in $(if [ $# -gt 0 ]; then printf 'tests/golden/%s.txt\n' "$@"; else ls tests/golden/*.txt; fi); do
    read -r line < "$file"
    if [[ $line != '$ scale4d '* ]]; then
        echo "not ok - $file: the first line must be \$ scale4d ARGUMENT..."
        continue
    fi
    new=$(mktemp)
    echo "$line" > "$new"
    # shellcheck disable=SC2086 # the arguments are words
    build/scale4d ${line#'$ scale4d '} > "$new.out"
    status=$?
    # Commits and hashes of input files change without any prediction changing.
    sed -E 's/^(# scale4d .*  commit) [^ ]+/\1 -/; s/\([0-9a-f]{16}\)/(-)/
            s/"(commit|hash)": "[^"]*"/"\1": "-"/g' "$new.out" >> "$new"
    rm -f "$new.out"
    if [ $status -ne 0 ]; then
        echo "not ok - $file: exit status $status"
    elif [ -n "$write" ]; then
        cmp -s "$new" "$file" || { cat "$new" > "$file" && echo "# rewritten: $file"; }
        echo "ok - $file"
    elif diff -u "$file" "$new"; then
        echo "ok - $file"
    else
        echo "not ok - $file (if the change is meant: make golden)"
    fi
    rm -f "$new"
done
