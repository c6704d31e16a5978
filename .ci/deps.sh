#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What scale4d needs from the system: a table, a yes or no for each line, and the installation.
#
#   .ci/deps.sh check|quiet|install PURPOSE...     PURPOSE: build, run (scale4d-run), figures,
#   man, test
#
# check prints the lines, quiet only what is missing; both exit 1 if something is. install uses
# apt-get on Debian, through sudo when not root; on another system it prints the list and exits 1.
set -u
mode=$1
shift

# purpose  name  Debian package  a command that succeeds when it is there
table() {
    cat <<'END'
build    make           make             command -v make
build    gcc            gcc              command -v ${CC:-gcc}
build    g++            g++              command -v ${CXX:-g++}
build    libc           libc6-dev        echo '#include <stdio.h>' | ${CC:-gcc} -E -
build    pkg-config     pkg-config       command -v pkg-config
build    simgrid        libsimgrid-dev   pkg-config --exists simgrid
build    libyaml        libyaml-dev      pkg-config --exists yaml-0.1
build    jansson        libjansson-dev   pkg-config --exists jansson
build    expat          libexpat1-dev    pkg-config --exists expat
build    sqlite3        libsqlite3-dev   pkg-config --exists sqlite3
build    zlib           zlib1g-dev       pkg-config --exists zlib
build    uthash         uthash-dev       echo '#include <uthash.h>' | ${CC:-gcc} -E -
run      MPI            libopenmpi-dev   command -v ${MPICC:-mpicc}
run      CBLAS          libopenblas-dev  pkg-config --exists openblas
figures  gnuplot        gnuplot-nox      command -v gnuplot
man      help2man       help2man         command -v help2man
test     help2man       help2man         command -v help2man
test     gnuplot        gnuplot-nox      command -v gnuplot
test     cmocka         libcmocka-dev    pkg-config --exists cmocka
test     bats           bats             command -v bats
test     python3        python3          command -v python3
test     git            git              command -v git
test     chromium       chromium         command -v chromium
test     node           nodejs           command -v node
test     npm            npm              command -v npm
test     clang          clang            command -v clang++
test     libFuzzer      libclang-rt-dev  ls $(clang -print-resource-dir)/lib/linux/*fuzzer*
test     clang-format   clang-format     command -v clang-format
END
}

missing=
look() {
    while read -r purpose name package check; do
        case " $wanted " in *" $purpose "*) ;; *) continue ;; esac
        if (eval "$check") >/dev/null 2>&1; then
            [ "$mode" = check ] && echo "yes  $name"
        else
            [ "$mode" != install ] && echo "no   $name: apt-get install $package"
            case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
        fi
    done <<END
$(table)
END
}

wanted=$*
look
[ -z "$missing" ] && exit 0
if [ "$mode" != install ]; then
    echo "Something is missing: \`make deps\` installs it on Debian." >&2
    exit 1
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "Needed for $wanted and not found (Debian's names):$missing" >&2
    echo "This is not a Debian system: please install them, then run make again." >&2
    exit 1
fi
sudo=
[ "$(id -u)" -eq 0 ] || sudo=sudo
echo "Needed for $wanted and not found: installing$missing"
apt="${sudo:+sudo }env DEBIAN_FRONTEND=noninteractive apt-get -q"
echo "+ $apt install -y --no-install-recommends$missing"
$apt update && $apt install -y --no-install-recommends $missing || {
    echo "apt-get failed. Install these by hand, then run make again:$missing" >&2
    exit 1
}
mode=check
missing=
look
[ -z "$missing" ]
