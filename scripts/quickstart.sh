#!/usr/bin/env bash
# Installs what is missing, builds, and shows what AnySlot is for: `anyslot demo` on the bundled model.
#
#   scripts/quickstart.sh
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

case "${1-}" in
  '') ;;
  -h | --help) usage "$0"; exit 0 ;;
  *) fail "unknown argument '$1'" "scripts/quickstart.sh --help" ;;
esac

# Kernels for GPUs take minutes to compile, and the demo runs on the CPU.
build_arguments=(--target anyslot_cli)
nvidia-smi -L >/dev/null 2>&1 || build_arguments+=(-- -DANYSLOT_CUDA=OFF)
scripts/build.sh "${build_arguments[@]}"
step "running build/anyslot demo"
build/anyslot demo || fail "the demo failed" "build/anyslot doctor says what this machine lacks"
