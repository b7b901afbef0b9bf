#!/usr/bin/env bash
# Runs clang-tidy over the code (not the tests and their helpers, nor kernels, as clang-tidy 14 cannot read the headers of
# newer CUDA) with the options it is built with; needs a configured build.
#
#   scripts/lint.sh [--preset NAME] [--since COMMIT] [PATH-REGEX]
#
#   --since COMMIT   only what changed since; a header is linted with the file of its name or, where there is none, with one
#                    that includes it. All, if .clang-tidy changed
#   PATH-REGEX       only files whose path in the repository matches, for example '^server/'
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
    -*) fail "unknown argument '$1'" "scripts/lint.sh --help" ;;
    *) break ;;
  esac
  shift
done
dir=$(build_dir "$preset")
[ -r "$dir/compile_commands.json" ] || fail "$dir is not configured" "scripts/build.sh --preset $preset"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C # one order for sort and comm

# All files of the build, by their paths in the repository.
python3 -c 'import json, os, sys
for entry in json.load(open(sys.argv[1])): print(os.path.relpath(entry["file"]))' "$dir/compile_commands.json" |
  grep -E '^(src|cli|server|bench)/' | grep -vE '(_test|test_support)\.cc$|\.cu$|/test_[^/]*$' | grep -E -- "${1-}" |
  sort -u >"$work/all" || fail "no file to lint matches '${1-}'" "scripts/lint.sh --help"

# linted_with PATH: the file to lint for a changed one, if there is any.
linted_with() {
  case $1 in
    *.cc) echo "$1" ;;
    *)
      if [ -e "${1%.h}.cc" ]; then
        echo "${1%.h}.cc"
      else
        xargs -d '\n' -a "$work/all" grep -lE "^#include \"($1|${1#*/}|${1##*/})\"" | sed -n 1p || true
      fi
      ;;
  esac
}

cp "$work/all" "$work/chosen"
if [ -n "$since" ]; then
  git cat-file -e "$since^{commit}" 2>/dev/null || fail "there is no commit $since" "git fetch --unshallow brings all"
  if git diff --quiet "$since" -- .clang-tidy; then
    git diff --name-only --diff-filter=d "$since" -- '*.h' '*.cc' >"$work/changed"
    while read -r path; do linted_with "$path"; done <"$work/changed" | sort -u | comm -12 - "$work/all" >"$work/chosen"
  fi
fi

step "linting $(wc -l <"$work/chosen") files with clang-tidy"
xargs -r -d '\n' -a "$work/chosen" -P "$(nproc)" -n 1 clang-tidy-14 -quiet -p "$dir" >"$work/log" 2>&1 || {
  grep -vE '^[0-9]+ warnings? generated' "$work/log" >&2 || true
  fail "clang-tidy has findings" "mend them, or see .clang-tidy for what is asked"
}
echo "no findings"
