#!/bin/sh
# oclgrind.sh: runs a small problem for every path through the kernels in the simulator Oclgrind. A data race, a read of
# something uninitialised, an access out of bounds, a divergent barrier: any report fails.
set -eu
cd "$(dirname "$0")/../.."

cmake --preset dev >/dev/null
cmake --build --preset dev --target test_paths --parallel "$(nproc)" >/dev/null
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# On optimised code --uninitialized dies; and Oclgrind's interpreter does not know what an inlined function that returns a
# struct leaves behind (llvm.experimental.noalias.scope.decl), so none is inlined.
# Reports come on the standard error; --log loses them.
status=0
CLFD_DEVICE=oclgrind CK_FORK=no oclgrind --build-options "-cl-opt-disable -Dalways_inline=" --data-races --uninitialized \
    build/dev/tests/test_paths 2>"$log" || status=$?
if [ -s "$log" ]; then
    cat "$log"
    status=1
fi
exit "$status"
