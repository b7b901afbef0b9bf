#!/usr/bin/env bash
# Runs clang-tidy over the code (not the tests and their helpers, nor kernels, as clang-tidy 14 cannot read the headers of
# newer CUDA) with the options it is built with; needs a configured build.
#
#   scripts/lint.sh [--preset NAME] [--folders A|B] [PATH-REGEX]
#
#   --folders A|B   only these (default: src|cli|server|bench)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

preset=release
folders='src|cli|server|bench'
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name} && shift ;;
    --folders) folders=${2:?--folders needs names} && shift ;;
    -h | --help) usage "$0"; exit 0 ;;
    *) break ;;
  esac
  shift
done
dir=$(build_dir "$preset")
[ -r "$dir/compile_commands.json" ] || fail "$dir is not configured" "scripts/build.sh --preset $preset"

step "linting with clang-tidy"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run-clang-tidy-14 -quiet -j "$(nproc)" -p "$dir" \
  "$PWD/($folders)/(?!.*(_test|test_support)\.cc\$|.*\.cu\$|(.*/)?test_[^/]*\$).*${1-}" >"$log" 2>&1 || {
  grep -vE '^(clang-tidy-14 |[0-9]+ warnings? generated)' "$log" >&2 || true
  fail "clang-tidy has findings" "mend them, or see .clang-tidy for what is asked"
}
echo "no findings in $(grep -c '^clang-tidy-14 ' "$log") files"
