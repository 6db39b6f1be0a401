#!/bin/sh
# run.sh [BUILD_DIR]: installs a built clfd into an empty prefix and uses it from outside: in C and in C++, through
# find_package and through pkg-config, shared and static. BUILD_DIR is build/release by default.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1-"$here/../../build/release"}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
export CLFD_TUNING=none # not what somebody tuned here

# Runs a command and shows what it said only where it fails.
quietly() {
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log"
        return 1
    }
}

quietly cmake --install "$build" --prefix "$work/installed"
# What was installed must not know where: it is moved before its first use.
mv "$work/installed" "$prefix"

echo "find_package"
quietly cmake -S "$here" -B "$work/find_package" -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$work/find_package"
ctest --test-dir "$work/find_package" --output-on-failure

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name clfd.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH LD_LIBRARY_PATH
warnings="-Wall -Wextra -Wpedantic -Werror"
shared=$(pkg-config --libs clfd)
# Where both forms are installed the linker prefers the shared one; a file name says that the static one is meant.
static=$(pkg-config --static --libs clfd | sed 's/-lclfd/-l:libclfd.a/')
# The lists of flags are meant to split.
# shellcheck disable=SC2046,SC2086
for libraries in "$shared" "$static"; do
    echo "pkg-config: $libraries"
    "${CC-cc}" -std=c11 $warnings $(pkg-config --cflags clfd) "$here/consumer.c" -o "$work/in_c" $libraries -lm
    "${CXX-c++}" -std=c++11 $warnings $(pkg-config --cflags clfd) "$here/consumer.cpp" -o "$work/in_cpp" $libraries -lm
    "$work/in_c"
    "$work/in_cpp"
done
