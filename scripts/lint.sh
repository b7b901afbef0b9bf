#!/usr/bin/env bash
# Runs clang-tidy over the code (not the tests and their helpers, nor kernels, as clang-tidy 14 cannot read the headers of
# newer CUDA) with the options it is built with; needs a configured build.
#
#   scripts/lint.sh [--preset NAME] [--since COMMIT] [PATH-REGEX]
#
#   --since COMMIT   only files that changed since, and those whose header of the same name did
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

preset=release
since=
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name} && shift ;;
    --since) since=${2:?--since needs a commit} && shift ;;
    -h | --help) usage "$0"; exit 0 ;;
    *) break ;;
  esac
  shift
done
dir=$(build_dir "$preset")
[ -r "$dir/compile_commands.json" ] || fail "$dir is not configured" "scripts/build.sh --preset $preset"

# The files of the build, as clang-tidy's driver would find them.
files() {
  python3 -c 'import json, sys; print("\n".join(sorted({e["file"] for e in json.load(open(sys.argv[1]))})))' \
    "$dir/compile_commands.json" |
    grep -E "^$PWD/(src|cli|server|bench)/" | grep -vE '(_test|test_support)\.cc$|\.cu$|/test_[^/]*$' | grep -E -- "${1-}"
}
# Of those, the ones that COMMIT has not seen as they are.
changed_files() {
  git diff --name-only "$since" | sed -n 's/\.\(h\|cc\)$//p' | sort -u |
    awk -v root="$PWD/" 'NR == FNR { changed[root $0 ".cc"]; next } $0 in changed' - <(files "$@")
}

step "linting with clang-tidy"
log=$(mktemp)
chosen=$(mktemp)
trap 'rm -f "$log" "$chosen"' EXIT
if [ -n "$since" ]; then
  git cat-file -e "$since^{commit}" 2>/dev/null || fail "there is no commit $since" "git fetch --unshallow brings all"
  changed_files "$@" >"$chosen"
else
  files "$@" >"$chosen" || fail "no file to lint matches '${1-}'" "scripts/lint.sh --help"
fi
xargs -r -a "$chosen" -P "$(nproc)" -n 1 clang-tidy-14 -quiet -p "$dir" >"$log" 2>&1 || {
  grep -vE '^[0-9]+ warnings? generated' "$log" >&2 || true
  fail "clang-tidy has findings" "mend them, or see .clang-tidy for what is asked"
}
echo "no findings in $(wc -l <"$chosen") files"
