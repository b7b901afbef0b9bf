#!/usr/bin/env bash
# Runs everything that needs an NVIDIA GPU, tests first, then benchmarks, and writes each one's output into a folder.
#
#   scripts/gpu-check.sh [--build DIR] [--output DIR] [--only PATTERN] [--jobs N] [--sanitize]
#
#   --build DIR      a build with -DANYSLOT_CUDA=ON -DANYSLOT_TEST_DEVICE=cuda (default: build/cuda)
#   --output DIR     where NAME.log of each check and summary.txt go (default: build/gpu-results)
#   --only PATTERN   only the checks whose names match this regular expression
#   --jobs N         tests at a time; benchmarks always run alone (default: 4)
#   --sanitize       also run the kernels' tests under compute-sanitizer: minutes
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

build=build/cuda
output=build/gpu-results
only=.
jobs=4
sanitize=no
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=${2:?--build needs a folder} && shift ;;
    --output) output=${2:?--output needs a folder} && shift ;;
    --only) only=${2:?--only needs a pattern} && shift ;;
    --jobs) jobs=${2:?--jobs needs a number} && shift ;;
    --sanitize) sanitize=yes ;;
    -h | --help) usage "$0"; exit 0 ;;
    *) fail "unknown argument '$1'" "scripts/gpu-check.sh --help" ;;
  esac
  shift
done
[ -x "$build/anyslot" ] || fail "$build holds no anyslot" \
  "cmake -G Ninja -B $build -S . -DANYSLOT_CUDA=ON -DANYSLOT_TEST_DEVICE=cuda && ninja -C $build"
mkdir -p "$output"
: >"$output/summary.txt"

# check NAME COMMAND...: runs it unless --only leaves it out; its output goes to NAME.log, its verdict to summary.txt.
check() {
  local name=$1 begin=$EPOCHREALTIME verdict=ok
  shift
  [[ $name =~ $only ]] || return 0
  "$@" >"$output/$name.log" 2>&1 || verdict="FAILED ($?)"
  printf '%-28s %-12s %6.1f s\n' "$name" "$verdict" \
    "$(awk -v b="$begin" -v e="$EPOCHREALTIME" 'BEGIN { print e - b }')" | tee -a "$output/summary.txt"
}
# test_beside NAME COMMAND...: the same, beside others.
test_beside() {
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  check "$@" &
}

step "tests"
test_beside ops "$build/tests/ops_test" --gtest_filter='*cuda*'
test_beside goldens "$build/tests/goldens_test" --gtest_filter='*cuda*'
test_beside large_pool "$build/tests/ops_test" --gtest_filter='LargePool*'
test_beside faults "$build/tests/cuda_faults_test"
test_beside lost_device "$build/tests/cuda_lost_device_test"
for dtype in bfloat16 float16 float32; do
  for method in lazy block mepic prefix full misplaced; do
    test_beside "ragqa_${dtype}_$method" "$build/tests/ragqa_test" $dtype dtype auto $method
  done
done
for method in lazy block mepic full; do
  test_beside "ragqa_fp8_$method" "$build/tests/ragqa_test" bfloat16 dtype fp8 $method
done
for test in server_test engine_test stream_test documents_test methods_test cache_pressure_test \
  scenario_test sampling_test pool_contents_test; do
  test_beside $test "$build/tests/$test"
done
wait

if [ $sanitize = yes ]; then
  step "compute-sanitizer"
  for tool in memcheck racecheck synccheck; do
    test_beside $tool compute-sanitizer --tool $tool --error-exitcode 1 "$build/tests/ops_test" \
      --gtest_filter='*cuda*:-*Random*'
  done
  test_beside memcheck_model compute-sanitizer --tool memcheck --error-exitcode 1 "$build/anyslot" run \
    --model models/rag-demo-14m --input tests/data/2wiki-20.jsonl --device cuda --kv-cache 256MiB --max-tokens 8
  wait
fi

step "benchmarks"
check attention_timing "$build/cuda_attention_timing"
if python3 -c 'import torch' 2>/dev/null; then
  check cudnn scripts/time-cudnn.py
else
  printf '%-28s %s\n' cudnn "left out: python3 has no PyTorch" | tee -a "$output/summary.txt"
fi
check attention_float16 "$build/cuda_attention_timing" float16 16384
check attention_fp8 "$build/cuda_attention_timing" bfloat16 '' '' fp8
check model_decode "$build/anyslot" bench model --device cuda --random-weights bench/shapes/llama-3.1-8b.json \
  --kv-cache 8GiB --prompt-tokens 64 --depth 4096,16000 --document-tokens 200 --generate 64 \
  --json "$output/model.json"
check model_methods "$build/anyslot" bench model --device cuda --random-weights bench/shapes/llama-3.1-8b.json \
  --kv-cache 16GiB --prompt-tokens 64 --depth 16000 --document-tokens 200 --generate 0 --repetitions 3 \
  --method lazy,block,mepic,prefix --json "$output/methods.json"
check model_prompts "$build/anyslot" bench model --device cuda --random-weights bench/shapes/llama-3.1-8b.json \
  --kv-cache 16GiB --prompt-tokens 64,512,2048 --depth 0,2000 --document-tokens 200 --generate 64 --repetitions 3 \
  --json "$output/prompts.json"
check model_batch "$build/anyslot" bench model --device cuda --random-weights bench/shapes/llama-3.1-8b.json \
  --kv-cache 40GiB --prompt-tokens 64 --depth 4096 --document-tokens 200 --generate 64 --batch 1,8,64 --repetitions 3 \
  --json "$output/batch.json"
check model_reordered "$build/anyslot" bench model --device cuda --random-weights bench/shapes/llama-3.1-8b.json \
  --kv-cache 16GiB --prompt-tokens 64 --depth 2000,16000 --document-tokens 200 --generate 0 --repetitions 3 \
  --method lazy,prefix --reorder --json "$output/reordered.json"
# The paper's workload: 100 documents of 2048 tokens, 5 in a prompt, some far more often than others.
check sweep_skewed "$build/anyslot" bench sweep --device cuda --random-weights bench/shapes/llama-3.1-8b.json \
  --figures rate-skewed --num-documents 100 --documents-per-prompt 5 --document-len 2048 --zipf 2.1 \
  --request-rates 0.5,2,8,16 --run-seconds 5 --kv-cache 24GiB \
  --report "$output/sweep.html" --json "$output/sweep.json"
check model_fp8 "$build/anyslot" bench model --device cuda --random-weights bench/shapes/llama-3.1-8b.json \
  --kv-cache 20GiB --kv-cache-dtype fp8 --prompt-tokens 64 --depth 4096,16000 --document-tokens 200 --generate 64 \
  --batch 1,64 --repetitions 3 --json "$output/fp8.json"
check serving_ratios "$build/tests/serving_ratios" bfloat16
check serving_8b "$build/tests/serving_ratios" bfloat16 bench/shapes/llama-3.1-8b.json

step "results in $output"
if grep FAILED "$output/summary.txt"; then exit 1; fi
