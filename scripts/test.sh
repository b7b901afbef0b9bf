#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests.
#
#   scripts/test.sh [--model DIR] [--preset release|debug|asan|tsan] [--no-install] [-- CTEST-ARGUMENT...]
#
#   --model DIR    run only the end-to-end tests, on this model (config.json, *.safetensors, tokenizer.json)
#   --no-install   do not install missing packages
#   --             what follows goes to ctest, for example -R kv
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

preset=release
model=
build_arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --model) model=${2:?--model needs a folder} && shift ;;
    --preset) preset=${2:?--preset needs a name} && shift ;;
    --no-install) build_arguments+=(--no-install) ;;
    --) shift && break ;;
    -h | --help) usage "$0"; exit 0 ;;
    *) fail "unknown argument '$1'" "scripts/test.sh --help" ;;
  esac
  shift
done
ctest_arguments=("$@")

if [ -n "$model" ]; then
  [ -r "$model/config.json" ] || fail "$model holds no config.json" "--model takes a folder in the Hugging Face layout"
  model=$(cd "$model" && pwd)
  ctest_arguments+=(-L e2e)
else
  model=$root/models/rag-demo-14m
fi

cd "$root"
dir=$(build_dir "$preset")
scripts/build.sh --preset "$preset" "${build_arguments[@]}" -- "-DANYSLOT_TEST_MODEL=$model"

step "testing $preset in $dir"
# Two at a time: those that measure run alone, and the others use all cores now and then.
ctest --test-dir "$dir" --parallel 2 --output-on-failure --no-tests=error "${ctest_arguments[@]}" ||
  fail "tests failed" "the list above names them; run one again with: scripts/test.sh --preset $preset -- -R NAME"
