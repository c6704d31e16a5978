#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What happens where something is missing: a system of a few programs, and an apt-get that only notes.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    bin=$BATS_TEST_TMPDIR/bin
    mkdir "$bin"
    for program in sh id env cat ls; do
        ln -s "$(command -v $program)" "$bin/$program"
    done
}
bare() {
    run env -i PATH="$bin" sh .ci/deps.sh "$@"
}
apt_get() { # EXIT-STATUS: an apt-get that writes down how it was called
    printf '#!%s\necho "$@" >> "%s"\nexit %d\n' "$(command -v sh)" "$BATS_TEST_TMPDIR/called" "$1" > "$bin/apt-get"
    chmod +x "$bin/apt-get"
}

@test "deps: check says yes or no, with the package" {
    bare check build
    [ "$status" -eq 1 ]
    [[ $output == *"no   simgrid: apt-get install libsimgrid-dev"* ]]
    ln -s "$(command -v gcc)" "$bin/gcc"
    bare check build
    [[ $output == *"yes  gcc"* ]]
}
@test "deps: another system gets the list, and nothing is tried" {
    bare install build figures
    [ "$status" -eq 1 ]
    for package in gcc g++ pkg-config libsimgrid-dev libyaml-dev libjansson-dev uthash-dev gnuplot-nox; do
        [[ $output == *" $package"* ]]
    done
    [[ $output != *bats* ]]
    [[ $output == *"not a Debian system"* ]]
}
@test "deps: on Debian apt-get installs what is missing, and it is said" {
    [ "$(id -u)" -eq 0 ] || skip "would call sudo"
    apt_get 0
    bare install test
    [ "$status" -eq 1 ] # this apt-get installs nothing, which is noticed
    [[ $output == *"installing"*"libcmocka-dev"* ]]
    grep -qx 'update' <(sed 's/^-q //' "$BATS_TEST_TMPDIR/called")
    grep -q 'install -y --no-install-recommends.* bats' "$BATS_TEST_TMPDIR/called"
    [ "$(grep -o gnuplot-nox "$BATS_TEST_TMPDIR/called" | wc -l)" -eq 1 ]
}
@test "deps: an apt-get that fails is said" {
    [ "$(id -u)" -eq 0 ] || skip "would call sudo"
    apt_get 100
    bare install build
    [ "$status" -eq 1 ]
    [[ $output == *"apt-get failed"*"libsimgrid-dev"* ]]
}
@test "deps: here everything is there, and nothing is said" {
    run .ci/deps.sh install build figures test
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}
@test "make with a missing package stops with its name, not with a compiler's error" {
    run make --no-print-directory BUILD="$BATS_TEST_TMPDIR/build" PATH="$bin:$(dirname "$(command -v make)")/nothing"
    [ "$status" -ne 0 ]
    [[ $output == *"libsimgrid-dev"* ]]
}
