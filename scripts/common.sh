# shellcheck shell=bash
# Helpers of the scripts in this folder; to be sourced, not run.

step() { printf '\n==> %s\n' "$*"; }

# fail MESSAGE [CURE]
fail() {
  printf '\nerror: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '  what to do: %s\n' "$2" >&2
  exit 1
}

# as_root COMMAND...: runs it as root, with sudo where needed.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    fail "root is needed for: $*" "run that command as root, then this script again"
  fi
}

# build_dir PRESET: the folder a preset builds in, relative to the repository.
build_dir() {
  case $1 in
    release) echo build ;;
    debug | asan | tsan | fuzz) echo "build/$1" ;;
    *) fail "unknown preset '$1'" "use release, debug, asan, tsan or fuzz" ;;
  esac
}

# usage FILE: prints the comment that opens a script.
usage() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$1"; }
