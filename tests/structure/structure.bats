#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The house rules that a compiler does not check.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
}

# Every file of the project that is not ignored, whether committed yet or not.
files() {
    git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do
        [ -e "$f" ] && echo "$f"
    done
}

# may FOLDER ALLOWED...: sources of FOLDER include, of the project's folders, only ALLOWED.
may() {
    local folder=$1 allowed bad
    shift
    allowed=$(echo "$*" | tr ' ' '|')
    bad=$(files "$folder/*.c" "$folder/*.h" "$folder/*.cpp" "$folder/*.cu" |
        xargs -r grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' |
        grep -vE "include[[:space:]]*\"($allowed)/" || true)
    if [ -n "$bad" ]; then
        echo "$folder may include only of: $*"
        echo "$bad"
        return 1
    fi
}

@test "arrows: support uses support" {
    may support support
}
@test "arrows: schedule uses support" {
    may schedule schedule support
}
@test "arrows: workloads uses schedule and support" {
    may workloads workloads schedule support
}
@test "arrows: sim uses workloads, schedule and support" {
    may sim sim workloads schedule support
}
@test "arrows: real uses workloads, schedule and support" {
    may real real workloads schedule support
}
@test "arrows: plots uses support" {
    may plots plots support
}
@test "arrows: cli uses what lies below it" {
    may cli cli plots sim real workloads schedule support
}
@test "arrows: nothing in a program includes a test's file" {
    run grep -rnE '#[[:space:]]*include[[:space:]]*"tests/' support schedule workloads sim real plots cli
    [ "$status" -eq 1 ] || { echo "$output"; false; }
}
@test "arrows: the check sees a forbidden include" {
    cd "$BATS_TEST_TMPDIR"
    git init -q .
    mkdir schedule
    echo '#include "support/error.h"' > schedule/good.c
    may schedule schedule support
    echo '#include "sim/engine.h"' > schedule/bad.c
    run may schedule schedule support
    [ "$status" -eq 1 ]
    [[ $output == *schedule/bad.c:1:* ]]
}

@test "no backend conditional outside sim, real and tests" {
    conditionals=$(files '*.c' '*.h' '*.cpp' '*.cu' | grep -vE '^(sim|real|tests)/' |
        xargs grep -nE '^[[:space:]]*#[[:space:]]*(if|ifdef|ifndef|elif).*(NCCL|CUDA|SIMGRID|MPI|CBLAS)' |
        grep -vE '#[[:space:]]*ifndef S4D_[A-Z0-9_]+_H$' || true)
    [ -z "$conditionals" ] || { echo "$conditionals"; false; }
}

@test "SimGrid is included by the engine and the platform reader alone" {
    users=$(files '*.c' '*.h' '*.cpp' | xargs grep -lE '#[[:space:]]*include[[:space:]]*[<"](simgrid|xbt)' |
        grep -v '^tests/' || true)
    [ "$(echo $users)" = "sim/engine_simgrid.cpp sim/platform_simgrid.cpp" ] || { echo "included by: $users"; false; }
}

@test "MPI and CBLAS are included by their folders alone" {
    users=$(files '*.c' '*.h' '*.inc' | xargs grep -lE '#[[:space:]]*include[[:space:]]*<(mpi|cblas)' |
        grep -vE '^(real/host/|real/mpi/|real/cuda/|tests/)' || true)
    [ -z "$users" ] || { echo "included by: $users"; false; }
}

@test "CUDA, cuBLAS and NCCL are called by real/cuda alone, and every call is in its list" {
    users=$(files '*.c' '*.h' '*.cpp' '*.cu' | xargs grep -lE '#[[:space:]]*include[[:space:]]*<(cuda|cublas|nccl)' |
        grep -vE '^(real/cuda/|tests/)' || true)
    [ -z "$users" ] || { echo "included by: $users"; false; }
    called=$(grep -ohE '\b(cuda|cublas|nccl)[A-Z][A-Za-z0-9]+\(|CU(DA|BLAS)\([^,]+, [A-Za-z0-9]+|NCCL\([^,]+, [^,]+, [A-Za-z0-9]+' real/cuda/*.c |
        grep -oE '(cuda|cublas|nccl)[A-Z][A-Za-z0-9]+' | sort -u)
    [ "$(echo "$called" | wc -l)" -gt 30 ]
    for call in $called; do
        grep -qE "^ \*.*\b$call\b" real/cuda/api.h || { echo "real/cuda/api.h does not list $call"; false; }
    done
}

# fgets: of /proc, and of what the program itself has said.
@test "lines of files are read by support/lines.c alone" {
    ! grep -nE '\bgetline\(|\bgetdelim\(|getc_unlocked' $(files '*.c' '*.h' '*.cpp' | grep -vE '^(tests/|support/lines\.c)')
    run grep -lE '\bfgets\(' $(files '*.c' '*.h' '*.cpp' | grep -v '^tests/')
    [ "$(sort <<< "$output" | tr '\n' ' ')" = "cli/run/train_setup.c real/host_class.c sim/platform.c " ]
}
@test "every header compiles alone, as C11 without warnings" {
    flags="-I. -D_GNU_SOURCE -Wall -Wextra -Werror $(pkg-config --cflags jansson yaml-0.1 cmocka)"
    bad=
    for h in $(files '*.h'); do
        compiler=gcc
        # Those with MPI in their interface, and who includes them.
        more=
        case $h in real/cuda/api.h | real/cuda/internal.h | tests/double/*)
            cuda=${CUDA_HOME:-/usr/local/cuda}
            [ -e "$cuda/include/nccl.h" ] || continue
            more="-isystem $cuda/include"
            ;;
        esac
        case $h in real/host/* | real/mpi/* | real/cuda/* | cli/run/* | tests/ranks/*)
            compiler=${MPICC:-mpicc}
            command -v "$compiler" > /dev/null || continue
            ;;
        esac
        echo "#include \"$h\"" | $compiler -std=c11 $flags $more -fsyntax-only -x c - || bad="$bad $h"
    done
    [ -z "$bad" ] || { echo "not self-contained:$bad"; false; }
}

@test "the engine's header compiles alone as C++" {
    echo '#include "sim/engine.h"' | g++ -std=c++17 -I. -Wall -Wextra -Werror -fsyntax-only -x c++ -
}

@test "every header has a guard of its own" {
    bad=
    for h in $(files '*.h'); do
        grep -qE '^#ifndef S4D_[A-Z0-9_]+_H$' "$h" || bad="$bad $h"
    done
    [ -z "$bad" ] || { echo "without:$bad"; false; }
    twice=$(files '*.h' | xargs grep -hE '^#ifndef S4D_[A-Z0-9_]+_H$' | sort | uniq -d)
    [ -z "$twice" ] || { echo "twice: $twice"; false; }
}

@test "every source file names its licence" {
    bad=$(files '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' '*.sh' '*.bats' '*.py' '*.gp' '*.yaml' Makefile .ci/run |
        while read -r f; do
            head -n 3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f"
        done)
    [ -z "$bad" ] || { echo "without SPDX line: $bad"; false; }
}

@test "every shell script parses; what is edited and sent to a cluster passes shellcheck, where that is" {
    local file
    git ls-files '*.sh' '*.sbatch' '.ci/*' | while read -r file; do
        case $(head -n 1 "$file") in
        *bash) bash -n "$file" ;;
        */sh) sh -n "$file" ;;
        esac || { echo "$file"; exit 1; }
    done
    ! command -v shellcheck > /dev/null || shellcheck real/launch/*.sh real/launch/*.sbatch
}

@test "every command is a file of cli and a row of main's table" {
    for f in cli/*.c; do
        name=$(basename "$f" .c)
        if [ "$name" = main ] || ! grep -q "const struct s4d_command s4d_command_$name " "$f"; then
            continue
        fi
        grep -qE "&s4d_command_$name\b" cli/main.c || { echo "$f has no row in cli/main.c"; false; }
        build/scale4d --help | grep -qE "^  $name " || { echo "--help lacks $name"; false; }
    done
}

@test "make commands of the README and of the figures' READMEs exist" {
    help=$(make help)
    for target in $(files '*.md' | xargs grep -ohE '\bmake [a-z][a-z0-9-]*' | awk '{print $2}' | sort -u); do
        case $target in
        figure-*) ls -d paper-figures/*/"${target#figure-}" || { echo "no figure $target"; false; } ;;
        *) echo "$help" | grep -qE "^  $target " || { echo "make help does not list $target"; false; } ;;
        esac
    done
}

@test "scale4d commands of the READMEs exist" {
    for command in $(files '*.md' | xargs grep -ohE 'build/scale4d [a-z]+' | awk '{print $2}' | sort -u); do
        build/scale4d --help | grep -qE "^  $command " || { echo "no command $command"; false; }
    done
}

# A figure's folder, and one of tests, has no row of its own.
@test "the README's table names every folder, and none that is not there" {
    files | grep '^[a-z].*/' | awk -F/ '{ print $1 "/" } NF > 2 && $1 !~ /^(paper-figures|tests)$/ { print $1 "/" $2 "/" }' |
        sort -u > "$BATS_TEST_TMPDIR/there"
    sed -n '/^## Where things are/,/^Includes go/p' README.md | grep '^| `' | grep -oE '`[a-z/-]+/`' |
        tr -d '`' | sort -u | diff - "$BATS_TEST_TMPDIR/there"
}
@test "every published figure's folder is complete" {
    for d in paper-figures/*/*/; do
        for f in README.md experiment.yaml published.csv plot.gp expected.tsv; do
            [ -s "$d$f" ] || { echo "$d lacks $f"; false; }
        done
    done
}

@test "every published figure draws a user's records, or says that it does not" {
    for d in paper-figures/*/*/; do
        grep -q 'is_added\|of_added\|added_lines\|words(added' "$d/plot.gp" || grep -q '^added: none' "$d/experiment.yaml" ||
            { echo "$d"; false; }
    done
}

@test "no file is left to do" {
    todo=$(files '*.c' '*.h' '*.cpp' '*.sh' '*.yaml' '*.md' Makefile |
        xargs grep -nE '\b(TODO|FIXME|XXX)\b' || true)
    [ -z "$todo" ] || { echo "$todo"; false; }
}
