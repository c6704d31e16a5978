#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Installation, man pages, completion.

load lib

@test "install: an installed program finds its own data, and uninstall leaves nothing" {
    make --no-print-directory install DESTDIR="$dir/dest" PREFIX=/opt/s4d > "$dir/log" 2>&1
    [ -x "$dir/dest/opt/s4d/bin/scale4d" ]
    # elsewhere, as a package would put it; with a machine that only the installation has
    mv "$dir/dest/opt/s4d" "$dir/moved"
    sed 's/^description:.*/description: "only here"/' sim/machines/perlmutter.yaml \
        > "$dir/moved/share/scale4d/sim/machines/only-here.yaml"
    cp workloads/gpt-tiny.yaml "$dir/moved/share/scale4d/workloads/tiny-here.yaml"
    sed -i 's/^name: .*/name: tiny-here/' "$dir/moved/share/scale4d/workloads/tiny-here.yaml"
    cd /
    run "$dir/moved/bin/scale4d" machines
    [[ $output == *only-here*"only here"* ]]
    "$dir/moved/bin/scale4d" simulate --machine only-here --workload tiny-here --gpus 4 \
        --grid 1x1x4x1 --global-batch 4 | grep -q '^# iteration .* OK$'
    ! "$s4d" simulate --machine only-here --workload gpt-tiny --gpus 4 --grid 1x1x4x1 \
        --global-batch 4
    cd "$root"
    mkdir -p "$dir/dest/opt"
    mv "$dir/moved" "$dir/dest/opt/s4d"
    make --no-print-directory uninstall DESTDIR="$dir/dest" PREFIX=/opt/s4d > "$dir/log" 2>&1
    [ -z "$(find "$dir/dest" -type f)" ] || { find "$dir/dest" -type f; false; }
}

@test "man pages: one of the program, one of each command, from --help" {
    .ci/man.sh "$dir" build/scale4d
    commands=$(build/scale4d --help | awk '/^  [a-z]/ { print $1 }')
    [ "$(ls "$dir/man1" | wc -l)" -eq $(($(echo "$commands" | wc -l) + 1)) ]
    for command in $commands; do
        page=$dir/man1/scale4d-$command.1
        grep -q "^scale4d-$command .- " "$page"
        grep -q 'EXIT STATUS' "$page"
    done
    # every option of the table is in its page
    for option in $(build/scale4d simulate --help | grep -oE '^ +(-., )?--[a-z0-9-]+' | grep -oE '[a-z0-9-]{3,}$'); do
        grep -qF -- "$(echo "$option" | sed 's/^--//; s/-/\\-/g')" "$dir/man1/scale4d-simulate.1"
    done
}

# complete WORD...: what the completion offers for the last word.
complete_words() {
    (
        PATH=$root/build:$PATH
        compopt() { :; }
        source <("$s4d" completion bash)
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        COMPREPLY=()
        _scale4d
        echo "${COMPREPLY[@]}"
    )
}

@test "completion: commands, options, choices, names" {
    [ "$(complete_words scale4d sim)" = simulate ]
    [ "$(complete_words scale4d simulate --micro)" = --micro-batch ]
    [ "$(complete_words scale4d simulate --recompute '')" = "none selective full" ]
    [ "$(complete_words scale4d simulate --recompute = se)" = selective ]
    [[ " $(complete_words scale4d simulate --machine '') " == *" perlmutter "* ]]
    [[ " $(complete_words scale4d simulate --workload = gpt-4) " == *" gpt-40b "* ]]
    [ "$(complete_words scale4d machines perl)" = perlmutter ]
    [ -z "$(complete_words scale4d simulate --gpus '')" ]
}

@test "completion: has every option that --help has, and no other" {
    for command in $(build/scale4d --help | awk '/^  [a-z]/ { print $1 }'); do
        offered=$(complete_words scale4d "$command" -- | tr ' ' '\n' | grep '^--' | sort)
        helped=$(build/scale4d "$command" --help | grep -oE '^ +(-., )?--[a-z0-9-]+' |
            grep -oE -- '--[a-z0-9-]+$' | sort)
        [ "$offered" = "$helped" ] || { diff <(echo "$offered") <(echo "$helped"); false; }
    done
}

@test "completion: other shells are refused" {
    refuses 64 "bash" -- completion zsh
    refuses 64 "bash" -- completion
}
