#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Golden files: tests/golden/NAME.txt starts with "$ scale4d ARGUMENT..." and goes on with what that
# command prints on standard output. A changed prediction is a diff to review.
#
# Records of one s4d_model_version claim one prediction (a rerun of a sweep skips what has a record):
# tests/golden/model_version holds the version and the digests of the predictions it stands for. When one
# of them changes and the version does not, that is a failure, also of --write; a new file is none.
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

[ $# -gt 0 ] && exit 0
kept=tests/golden/model_version
version=$(sed -n 's/^const char \*const s4d_model_version = "\(.*\)";$/\1/p' support/record.c)
of_version() {
    echo "$version"
    sha256sum tests/golden/{accuracy,collective,simulate}*.txt
}
if of_version | cmp -s - $kept; then
    echo "ok - model version $version"
elif [ "$(head -n 1 $kept)" = "$version" ] && ! tail -n +2 $kept | sha256sum -c --status; then
    echo "not ok - predictions changed, their version did not: raise s4d_model_version in support/record.c"
elif [ -n "$write" ]; then
    of_version > $kept
    echo "ok - model version $version, $kept rewritten"
else
    echo "not ok - $kept is not of version $version and its predictions (make golden)"
fi
