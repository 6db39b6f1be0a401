#!/bin/sh
# test.sh [PRESET]: installs what is missing, builds everything and runs all tests. PRESET is one of CMakePresets.json;
# default release.
set -eu
cd "$(dirname "$0")/.."
preset=${1-release}

sh tools/install_deps.sh
cmake --preset "$preset" -DCLFD_BUILD_TESTS=ON -DCLFD_BUILD_TOOLS=ON
cmake --build --preset "$preset" --parallel "$(nproc)"
ctest --preset "$preset" --parallel "$(nproc)"
