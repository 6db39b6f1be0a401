#!/bin/sh
# offline.sh: compiles every kernel for GPUs that are not here: for Intel with ocloc, for AMD with clang. Each file of cl/
# by itself with its defaults, then every variant that kernel_variants names. Everything must compile.
set -eu
cd "$(dirname "$0")/../.."

cmake --preset dev >/dev/null
cmake --build --preset dev --target kernel_variants --parallel "$(nproc)" >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each compile_* gets FILE OPTION...
compile_intel() {
    file=$1
    shift
    ocloc compile -q -device dg2 -file "cl/$file" -out_dir "$work/intel" -options "-cl-std=CL1.2 -I cl $*"
}

# Without the library of built-ins nothing would be inlined and no register counted.
compile_amd() {
    file=$1
    shift
    clang-15 --target=amdgcn-mesa-mesa3d -mcpu=gfx90a -nogpulib -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -O3 \
        -Xclang -mlink-builtin-bitcode -Xclang /usr/lib/clc/gfx906-amdgcn-mesa-mesa3d.bc -I cl "$@" -S \
        -o "$work/amd.s" "cl/$file"
}

# compile_all COMPILER: compiles each line of $work/COMPILER.list; prints those that fail, and how many did not.
compile_all() {
    failures=0
    count=0
    while read -r file options; do
        count=$((count + 1))
        # The options of a line are meant to split.
        # shellcheck disable=SC2086
        if ! "compile_$1" "$file" $options >"$work/$1.log" 2>&1; then
            failures=$((failures + 1))
            echo "$1: $file $options"
            cat "$work/$1.log"
        fi
    done <"$work/$1.list"
    echo "$1: $((count - failures)) of $count kernels compile"
    [ "$failures" -eq 0 ]
}

variants=build/dev/tests/kernel_variants
(cd cl && ls ./*.cl) >"$work/files"
# libclc has no sub-group functions.
"$variants" | sort -u | cat "$work/files" - >"$work/amd.list"
"$variants" sub_groups | sort -u | cat "$work/files" - >"$work/intel.list"
# Each option of describe.c must be among them, in both families.
for option in $(sed -n 's/^ *{"\([A-Z_]*\)", .*/\1/p' src/plan/describe.c); do
    for family in decode_lanes decode_vector; do
        if ! grep -q "^$family.* -D$option=" "$work/amd.list"; then
            echo "no variant of $family has $option"
            exit 1
        fi
    done
done

compile_all amd &
amd=$!
status=0
compile_all intel || status=1
wait "$amd" || status=1
exit "$status"
