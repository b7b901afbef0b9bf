#!/usr/bin/env bash
# Runs the long forms of the tests under load: 256 clients at once, 10,000 requests in steady memory, 2,000 aborts, a tiny
# pool, floods of ten times the pool, SIGTERM under load. Takes about a quarter of an hour on two cores.
#
#   scripts/soak.sh [--no-install] [FILTER]
#
#   --no-install   do not install missing packages
#   FILTER         only the tests whose name holds it, for example TinyPool
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

build_arguments=()
filter=
while [ $# -gt 0 ]; do
  case $1 in
    --no-install) build_arguments+=(--no-install) ;;
    -h | --help) usage "$0"; exit 0 ;;
    -*) fail "unknown argument '$1'" "scripts/soak.sh --help" ;;
    *) filter=$1 ;;
  esac
  shift
done

scripts/build.sh --target soak_test "${build_arguments[@]}"
step "soaking"
build/tests/soak_test --gtest_filter="Long/*$filter*" ||
  fail "something does not hold under load" "the summary names it; run it alone with: scripts/soak.sh NAME"
