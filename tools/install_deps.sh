#!/bin/sh
# install_deps.sh [--ci]: installs what clfd needs for building and testing, on Debian 12, Ubuntu 24.04 or newer. Only
# what is missing; needs root or sudo for that, and nothing at all where everything is there.
#
#   --ci  also what .ci/run needs: Oclgrind, the offline compilers, clang-format
set -eu

packages="gcc g++ libc6-dev make cmake pkg-config ocl-icd-opencl-dev pocl-opencl-icd libfp16-dev libcjson-dev check"
ci_packages="oclgrind clang-15 libclc-15 intel-opencl-icd clang-format-14"

case "${1-}" in
"") ;;
--ci) packages="$packages $ci_packages" ;;
*)
    echo "usage: install_deps.sh [--ci]" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null; then
    echo "install_deps.sh: no apt-get here; make sure that these or their like are installed: $packages" >&2
    exit 0
fi

missing=
for package in $packages; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "install_deps.sh: run it as root, or install:$missing" >&2
    exit 1
fi

echo "Installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# $missing is a list and $as_root may be nothing: both are meant to split.
# shellcheck disable=SC2086
if ! { $as_root apt-get update &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
