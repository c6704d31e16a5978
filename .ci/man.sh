#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Man pages from what the programs print at --help: one of each program, one of each command.
#
#   .ci/man.sh FOLDER PROGRAM...      into FOLDER/man1
set -eu
cd "$(dirname "$0")/.."
out=$1/man1
shift
mkdir -p "$out"

# page NAME SUMMARY COMMAND-LINE: SUMMARY ends up behind the page's name.
page() {
    help2man --no-info --include=.ci/man.h2m --version-string="$version" --name="$2" "$3" |
        sed -e "s/^\.TH SCALE4D[A-Z-]*/.TH $(echo "$1" | tr a-z A-Z)/" \
            -e "/^\.SH NAME/{n;s/^[^ ]*/$1/;}" > "$out/$1.1.new"
    mv "$out/$1.1.new" "$out/$1.1"
}

for program; do
    name=$(basename "$program")
    version=$("$program" --version | sed 's/ (.*//')
    page "$name" "$("$program" --help | sed -n 3p | sed 's/\.$//')" "$program"
    "$program" --help | sed -n 's/^  \([a-z]*\)  *\(.*\)/\1 \2/p' | while read -r command summary; do
        [ "$name $command" = "scale4d-run completion" ] ||
            page "$name-$command" "$summary" "$program $command"
    done
done
