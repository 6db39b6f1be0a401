#!/bin/sh
# sanitize.sh: builds everything with AddressSanitizer and UndefinedBehaviorSanitizer and runs all tests on PoCL. The
# environment that PoCL needs under the sanitizers is in the preset.
set -eu
cd "$(dirname "$0")/../.."

cmake --preset asan
cmake --build --preset asan --parallel "$(nproc)"
ctest --preset asan
