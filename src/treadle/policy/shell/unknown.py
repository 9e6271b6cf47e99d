"""Why a program asks that is not known to only read: what it can do beyond that."""

from treadle.policy.marks import split_words

_WHY = {
    name: why
    for why, names in {
        "can run code of the project or of packages, whatever its arguments are": """
            npm npx yarn pnpm bun bunx corepack pip pip3 pipx uv uvx poetry pdm hatch tox nox conda mamba cargo go
            mvn gradle ant sbt make gmake cmake ninja meson bazel pytest jest vitest mocha eslint gem bundle rake
            rails composer dotnet mix rebar3 lein flutter swift xcodebuild terraform tofu pulumi just task
            pre-commit vite webpack turbo nx lerna
        """,
        "uses the network with your credentials": "gh glab aws az gcloud kubectl helm heroku vercel netlify doctl",
        "waits for a person at the terminal; cat, head or sed -n print the same": "less more most man info vim nano",
        "runs parts of the file that it reads": "ldd",
        "never ends on its own": "yes top htop",
    }.items()
    for name in split_words(names)
}


def why_unknown(name: str) -> str:
    """Say what makes a program ask."""
    if name in _WHY:
        return f"{name} {_WHY[name]}"
    return f"{name} is not known to be read-only"
