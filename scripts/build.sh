#!/usr/bin/env bash
# Builds AnySlot. The release build leaves the program at build/anyslot, the others in build/PRESET/.
#
#   scripts/build.sh [--preset release|debug|asan|tsan|fuzz] [--target NAME]... [--configure-only] [--no-install]
#                    [-- CMAKE-ARGUMENT...]
#
#   --target NAME      build only this target (may be given several times)
#   --configure-only   stop before compiling
#   --no-install       do not install missing packages
#   --                 what follows goes to cmake when it configures, for example -DANYSLOT_MINJA_DIR=DIR
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

preset=release
install=yes
compile=yes
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name} && shift ;;
    --target) targets+=(--target "${2:?--target needs a name}") && shift ;;
    --configure-only) compile=no ;;
    --no-install) install=no ;;
    --) shift && break ;;
    -h | --help) usage "$0"; exit 0 ;;
    *) fail "unknown argument '$1'" "scripts/build.sh --help" ;;
  esac
  shift
done
dir=$(build_dir "$preset")

if [ $install = yes ]; then
  scripts/install-deps.sh
  scripts/fetch-minja.sh || echo "warning: going on without minja (only chat templates need it)" >&2
fi

step "configuring $preset in $dir"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" "$@" >"$log" 2>&1 || {
  cat "$log" >&2
  fail "cmake could not configure $dir" \
    "install what it names (scripts/install-deps.sh), or remove $dir/CMakeCache.txt if it was made by another generator"
}
grep -e '-- minja' "$log" || true
[ $compile = yes ] || exit 0

step "building $preset in $dir"
cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}" ||
  fail "the build failed" "the first error above is the cause; scripts/build.sh goes on where it stopped"
if [ -x "$dir/anyslot" ] && [ ${#targets[@]} -eq 0 ]; then
  echo "built $dir/anyslot"
fi
