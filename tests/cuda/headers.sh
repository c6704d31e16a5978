#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the CUDA backend, without its kernels, and the double of NVIDIA's libraries against the
# headers of every release of NCCL from 2.18 on, and those of one CUDA or several.
#
#   git clone https://github.com/NVIDIA/nccl
#   tests/cuda/headers.sh nccl [CUDA_HOME...]
set -u
cd "$(dirname "$0")/../.." || exit
nccl=$(git -C "$OLDPWD" -C "${1:?a clone of NCCL is expected}" rev-parse --absolute-git-dir) || exit
shift
[ $# -gt 0 ] || set -- "${CUDA_HOME:-/usr/local/cuda}"
include=$(mktemp -d)
read -ra flags < <(pkg-config --cflags jansson yaml-0.1)
trap 'rm -rf "$include"' EXIT

# nccl.h as NCCL's own Makefile makes it.
header() {
    local version major minor patch
    version=${1#v} version=${version%-*}
    IFS=. read -r major minor patch <<< "$version"
    git -C "$nccl" show "$1:src/nccl.h.in" | sed -e "s/\${nccl:Major}/$major/g" \
        -e "s/\${nccl:Minor}/$minor/g" -e "s/\${nccl:Patch}/$patch/g" -e "s/\${nccl:Suffix}//g" \
        -e "s/\${nccl:Version}/$((major * 10000 + minor * 100 + patch))/g" > "$include/nccl.h"
}
compile() {
    local cuda=$1 file failed=0
    for file in real/cuda/*.c tests/double/*.c tests/double/self/*.c; do
        "${MPICC:-mpicc}" -std=c11 -O2 -I. -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only \
            "${flags[@]}" -isystem "$include" -isystem "$cuda/include" "$file" || failed=1
    done
    return $failed
}

failures=0
releases=$(git -C "$nccl" tag --list 'v2.*' --sort=version:refname |
    awk -F '[.v-]' '$3 >= 18' | grep -v -e beta -e rc)
for cuda in "$@"; do
    [ -f "$cuda/include/cublas_v2.h" ] || { echo "$cuda/include: no cublas_v2.h" >&2; exit 64; }
    for release in $releases; do
        header "$release"
        if compile "$cuda"; then echo "ok $cuda, NCCL $release"
        else echo "not ok $cuda, NCCL $release"; failures=$((failures + 1)); fi
    done
done
[ -n "$releases" ] && [ "$failures" = 0 ]
