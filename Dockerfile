# Treadle in a container: `docker build -t treadle .`, then `docker run --rm -it -v "$PWD:/work" treadle`.
# The stage `test` has what the tests need: `docker build --target test -t treadle-test .`, `docker run --rm --privileged treadle-test`.
# (Commands are confined by namespaces, which an engine's default profile forbids: hence --privileged for the tests of the sandbox.)

FROM python:3.11-slim-bookworm AS base
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends git make ripgrep bubblewrap \
    && rm -rf /var/lib/apt/lists/*

FROM base AS test
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends \
        tmux bubblewrap zsh fish nodejs npm curl openssl xxd bsdextrautils cmake gcc redis-server postgresql util-linux chromium-headless-shell emacs-nox \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
WORKDIR /src
CMD [".ci/run"]

FROM base AS program
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir '/src[all]' && rm -rf /src
WORKDIR /work
ENTRYPOINT ["treadle"]
