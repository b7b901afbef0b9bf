#!/usr/bin/env bash
# Installs the clients that tests/clients drives the server with, into tests/clients/node_modules; the versions are those
# of its package-lock.json. Without them the test 'clients' is skipped.
#
#   scripts/install-clients.sh
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

case "${1-}" in
  '') ;;
  -h | --help) usage "$0"; exit 0 ;;
  *) fail "unknown argument '$1'" "scripts/install-clients.sh --help" ;;
esac
if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
  fail "node or npm is missing" "scripts/install-deps.sh --dev"
fi
major=$(node --print 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || fail "node $major is too old for the clients, which need 20" "install a newer node"

cd tests/clients
installed=node_modules/.package-lock.json
if [ -e "$installed" ] && [ ! package-lock.json -nt "$installed" ]; then
  exit 0
fi
step "installing the clients into tests/clients/node_modules"
npm ci --ignore-scripts || fail "npm could not install the clients" "read its message above; it needs a package registry"
