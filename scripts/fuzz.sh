#!/usr/bin/env bash
# Builds the fuzzers with clang and runs them, as many at a time as there are cores; one line tells how each ended. What they find
# new is kept in build/fuzz/corpus, an input that fails in build/fuzz/findings.
#
#   scripts/fuzz.sh [--seconds N] [--no-install] [NAME...]
#
#   --seconds N    run each for so long (60)
#   --no-install   do not install missing packages
#   NAME...        only these, for example tokenizer_json (default: every folder of fuzz/corpus)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

seconds=60
build_arguments=()
names=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds)
      seconds=${2:?--seconds needs a number} && shift
      [[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "--seconds $seconds is not a whole number above 0" "scripts/fuzz.sh --help"
      ;;
    --no-install) build_arguments+=(--no-install) ;;
    -h | --help) usage "$0"; exit 0 ;;
    -*) fail "unknown argument '$1'" "scripts/fuzz.sh --help" ;;
    *) names+=("$1") ;;
  esac
  shift
done
if [ ${#names[@]} -eq 0 ]; then
  for folder in fuzz/corpus/*/; do names+=("$(basename "$folder")"); done
fi
command -v clang++-14 >/dev/null || fail "clang++-14 is missing" "scripts/install-deps.sh --dev"

targets=()
for name in "${names[@]}"; do
  [ -d "fuzz/corpus/$name" ] || fail "there is no fuzzer '$name'" "take one of: $(cd fuzz/corpus && echo *)"
  targets+=(--target "fuzz_$name")
done
mkdir -p build/fuzz
step "building the fuzzers (build/fuzz/build.log)"
scripts/build.sh --preset fuzz "${build_arguments[@]}" "${targets[@]}" >build/fuzz/build.log 2>&1 || {
  tail -n 40 build/fuzz/build.log >&2
  fail "the fuzzers could not be built" "see above and build/fuzz/build.log"
}

step "fuzzing ${names[*]}, $seconds s each"
# run_one NAME SECONDS
run_one() {
  local found=build/fuzz/corpus/$1 findings=build/fuzz/findings log=build/fuzz/$1.log
  mkdir -p "$found" "$findings"
  if "build/fuzz/fuzz_$1" -max_total_time="$2" -max_len=8192 -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
    -artifact_prefix="$findings/$1-" "$found" "fuzz/corpus/$1" >"$log" 2>&1; then
    echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
    return
  fi
  local reason input
  reason=$(grep -m 1 -oE '(ERROR: |runtime error: |SUMMARY: ).*' "$log" || tail -n 1 "$log")
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  echo "$1: $reason; input: ${input:-none was written}; log: $log"
  return 1
}
export -f run_one
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run_one "$@"' fuzz {} "$seconds" ||
  fail "a fuzzer found something" "mend it, and make its input in build/fuzz/findings a test and a file of fuzz/corpus"
