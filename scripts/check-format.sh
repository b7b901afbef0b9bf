#!/usr/bin/env bash
# Fails when a C++ file is not as clang-format (version 14) would write it.
#
#   scripts/check-format.sh [--fix]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

mode=(--dry-run --Werror)
[ "${1-}" != --fix ] || mode=(-i)

step "checking the format"
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc' '*.cu' '*.cuh' |
  xargs -0 -r -n 32 -P "$(nproc)" clang-format-14 "${mode[@]}" ||
  fail "files are not formatted" "scripts/check-format.sh --fix"
