#!/usr/bin/env bash
# Builds and runs the tests of the engine and the server under AddressSanitizer with UndefinedBehaviorSanitizer, then under
# ThreadSanitizer. (All tests: scripts/test.sh --preset asan.)
#
#   scripts/sanitize.sh [--preset asan|tsan] [--no-install] [TEST...]
#
#   --preset NAME  only under this one
#   --no-install   do not install missing packages
#   TEST...        only these tests, for example server_test
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

presets=(asan tsan)
build_arguments=()
tests=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset) presets=("${2:?--preset needs a name}") && shift ;;
    --no-install) build_arguments+=(--no-install) ;;
    -h | --help) usage "$0"; exit 0 ;;
    -*) fail "unknown argument '$1'" "scripts/sanitize.sh --help" ;;
    *) tests+=("$1") ;;
  esac
  shift
done
if [ ${#tests[@]} -eq 0 ]; then
  tests=(cache_pressure_test documents_test engine_test sampling_test scenario_test serve_e2e_test server_parts_test
    server_test soak_test stop_strings_test stream_test)
fi

for preset in "${presets[@]}"; do
  targets=()
  for test in "${tests[@]}"; do targets+=(--target "$test"); done
  scripts/build.sh --preset "$preset" "${build_arguments[@]}" "${targets[@]}"
  step "testing under $preset"
  pattern=$(IFS='|' && echo "${tests[*]}")
  ctest --test-dir "$(build_dir "$preset")" --output-on-failure --no-tests=error -R "^($pattern)\$" ||
    fail "$preset has findings, or a test failed" "run one again with: scripts/sanitize.sh --preset $preset NAME"
done
