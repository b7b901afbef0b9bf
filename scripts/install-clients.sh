#!/usr/bin/env bash
# Installs the clients that tests/clients drives the server with, into tests/clients/node_modules; the versions are those
# of its package-lock.json. Without them the test 'clients' is skipped.
#
#   scripts/install-clients.sh [--optional]
#
#   --optional   where Node.js is missing or older than 20, say so and succeed
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

optional=no
case "${1-}" in
  '') ;;
  --optional) optional=yes ;;
  -h | --help) usage "$0"; exit 0 ;;
  *) fail "unknown argument '$1'" "scripts/install-clients.sh --help" ;;
esac

# unusable MESSAGE CURE
unusable() {
  [ $optional = yes ] || fail "$@"
  echo "warning: $1, so the test 'clients' will be skipped ($2)" >&2
  exit 0
}
if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
  unusable "node or npm is missing" "scripts/install-deps.sh --dev"
fi
major=$(node --print 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || unusable "Node.js $major is too old for the clients, which need 20" "install a newer one"

cd tests/clients
installed=node_modules/.package-lock.json
if [ -e "$installed" ] && [ ! package-lock.json -nt "$installed" ]; then
  exit 0
fi
step "installing the clients into tests/clients/node_modules"
npm ci --ignore-scripts || fail "npm could not install the clients" "read its message above; it needs a package registry"
