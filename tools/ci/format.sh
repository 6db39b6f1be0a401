#!/bin/sh
# format.sh: whether every C source, header and kernel is formatted as .clang-format says. To mend: clang-format -i.
set -eu
cd "$(dirname "$0")/../.."

# Versions of clang-format disagree in details; the project follows 14.
format=clang-format-14
command -v "$format" >/dev/null || format=clang-format
find cl include src tests tools \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cl' \) -exec "$format" --dry-run -Werror {} +
