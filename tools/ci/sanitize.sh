#!/bin/sh
# sanitize.sh: builds everything with AddressSanitizer and UndefinedBehaviorSanitizer and runs the tests on PoCL. What
# PoCL needs under the sanitizers is in the preset.
set -eu
cd "$(dirname "$0")/../.."

cmake --preset asan
cmake --build --preset asan --parallel "$(nproc)"
ctest --preset asan --parallel "$(nproc)"
