#!/bin/sh
# quickstart.sh: from a fresh clone to a number. Installs what is missing, builds, lists the devices, verifies attention
# on the best one (or the one that CLFD_DEVICE names) against the double-precision reference, and prints its speed.
set -eu
cd "$(dirname "$0")/.."

sh tools/install_deps.sh
echo "Building"
cmake --preset release -DCLFD_BUILD_TESTS=OFF >/dev/null
cmake --build --preset release --parallel "$(nproc)" >/dev/null
clfd=build/release/tools/clfd

echo
echo "Devices"
"$clfd" devices

echo
echo "Verifying ten random problems against the double-precision reference"
"$clfd" verify --problems 10 --max-programs 3

echo
echo "Measuring one token of 32 query heads and 8 KV heads over 4096 cached tokens"
"$clfd" bench b1 hq32 hkv8 d128 kv4096 f16
