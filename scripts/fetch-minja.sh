#!/usr/bin/env bash
# Fetches minja (header-only chat templates) from a newer release of this distribution into build/minja.
#
#   scripts/fetch-minja.sh [--mirror URL] [--suite NAME]
#
# Debian 12 and Ubuntu 24.04 do not package minja yet. Its package file is taken with apt's own tools and separate
# lists, checked against the archive's signature, and unpacked: nothing is installed and the system's apt is untouched.
#
#   --mirror URL    a mirror of the distribution (default: the one in the system's own apt sources)
#   --suite NAME    the release to take it from (default: the first of forky, sid on Debian; stonking on Ubuntu)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

package=libminja-dev
target=$PWD/build/minja
by_hand="copy the headers of minja anywhere and configure with -DANYSLOT_MINJA_DIR=DIR"
mirror=
suites=

while [ $# -gt 0 ]; do
  case $1 in
    --mirror) mirror=${2:?} && shift ;;
    --suite) suites=${2:?} && shift ;;
    -h | --help) usage "$0"; exit 0 ;;
    *) fail "unknown argument '$1'" "scripts/fetch-minja.sh --help" ;;
  esac
  shift
done

if [ -e "$target/usr/include/minja/minja.hpp" ] || [ -e /usr/include/minja/minja.hpp ]; then
  exit 0
fi
step "fetching minja into build/minja"

command -v apt-get >/dev/null 2>&1 || fail "this system has no apt" "$by_hand"
distribution=$(. /etc/os-release && echo "${ID-}")
case $distribution in
  debian)
    : "${suites:=forky sid}"
    components=main
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    ;;
  ubuntu)
    : "${suites:=stonking}"
    components="main universe"
    keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
    ;;
  *) fail "no newer release of '$distribution' is known" "$by_hand" ;;
esac
[ -r "$keyring" ] || fail "the archive's keys are missing: $keyring" "apt-get install ${distribution}-archive-keyring"

# The mirror that offers the distribution's own release, not its security updates and not other vendors' archives.
if [ -z "$mirror" ]; then
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
  # shellcheck disable=SC2016 # apt fills these in
  format='$(RELEASE) $(CODENAME) $(SUITE)|$(COMPONENT)|$(REPO_URI)'
  mirror=$(apt-get indextargets --format "$format" 'Created-By: Packages' |
    awk -F'|' -v release="$codename" '$2 == "main" && index($1, release) && $1 !~ /security/ { print $3; exit }')
fi
[ -n "$mirror" ] || fail "the system's apt sources name no mirror" "give one with --mirror URL, or $by_hand"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial"
separate=(
  -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources"
  -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache"
  -o Acquire::Languages=none -o APT::Sandbox::User= -o Debug::NoLocking=1
)

for suite in $suites; do
  cat >"$work/sources/newer.sources" <<EOF
Types: deb
URIs: $mirror
Suites: $suite
Components: $components
Signed-By: $keyring
EOF
  echo "looking for $package in $distribution $suite"
  apt-get "${separate[@]}" -qq update || continue
  (cd "$work" && apt-get "${separate[@]}" -qq download "$package") || continue
  mkdir -p "$target"
  dpkg-deb -x "$work/${package}"_*.deb "$target"
  echo "minja is in build/minja; builds that are configured from now on use it"
  exit 0
done
fail "$package was not found in $distribution $suites" "$by_hand"
