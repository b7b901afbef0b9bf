#!/usr/bin/env bash
# Installs what AnySlot is built from, on Debian 12 and Ubuntu 24.04 or newer. Quick when nothing is missing.
#
#   scripts/install-deps.sh [--dev]
#
#   --dev   also what .ci/run checks with: clang-format, clang-tidy, clang for the fuzzers, shellcheck, NumPy, Node.js,
#           Chromium
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

packages=(
  g++ cmake ninja-build pkg-config ccache git ca-certificates python3
  libdnnl-dev ocl-icd-opencl-dev nlohmann-json3-dev libcli11-dev libfmt-dev libssl-dev
  libpcre2-dev libutf8proc-dev libgtest-dev libgmock-dev libspdlog-dev prometheus-cpp-dev
)
# Any version of Boost's headers will do; the package would remove another one.
[ -e /usr/include/boost/beast.hpp ] || packages+=(libboost-dev)
# The runtime of the fuzzers is only recommended by clang's own packages.
dev_packages=(clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 shellcheck python3-numpy python3-regex)
# One that came from elsewhere will do, and brings npm.
command -v npm >/dev/null 2>&1 || dev_packages+=(nodejs npm)
# Ubuntu has it as a snap only; there the browser tests take one from elsewhere.
grep -qs '^ID=ubuntu' /etc/os-release || dev_packages+=(chromium)

case "${1-}" in
  '') ;;
  --dev) packages+=("${dev_packages[@]}") ;;
  -h | --help) usage "$0"; exit 0 ;;
  *) fail "unknown argument '$1'" "scripts/install-deps.sh --help" ;;
esac
if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  fail "this system has no apt, so the packages cannot be installed from here" \
    "install the counterparts of these Debian packages yourself, then run scripts/build.sh --no-install:
    ${packages[*]}"
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^.i' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

step "installing ${missing[*]}"
install_missing() {
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends -q -o DPkg::Lock::Timeout=300 "${missing[@]}"
}
as_root apt-get update -q || echo "warning: apt-get update failed; trying with the package lists at hand" >&2
install_missing || fail "apt-get could not install: ${missing[*]}" \
  "read apt's message above; on Ubuntu the packages are in 'universe' (add-apt-repository universe)"
