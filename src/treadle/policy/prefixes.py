"""Programs with subcommands that mean the same with any further plain words: what may follow, and what may not.

A rule that allows `cargo test` must not allow `cargo test --config …`, which runs another program. So for the programs
listed here, a rule over the first words covers only options that are known to run, read and write nothing else.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

_CARGO = """
    --release -r --lib --bins --bin= --test= --tests --example= --examples --benches --all --workspace --all-targets
    --all-features --no-default-features --features= -F= -p= --package= --exclude= -v --verbose -q --quiet --no-run
    --no-fail-fast --locked --offline --frozen -j= --jobs= --keep-going
"""
_GO = """
    -v -race -short -cover -failfast -json -x -n -run= -bench= -count= -timeout= -parallel= -cpu= -benchtime= -skip=
    -shuffle=
"""
_TABLE = {
    "git add": "-A --all -u --update -n --dry-run -v --verbose -N --intent-to-add --",
    "git commit": "-a --all -m= -am= --message= -q --quiet -v --verbose -s --signoff",
    "git switch": "-c= --create=",
    "npm test": "-- *",
    "pnpm test": "-- *",
    "yarn test": "-v --verbose",
    "cargo build": _CARGO,
    "cargo check": _CARGO,
    "cargo test": f"{_CARGO} -- *",
    "cargo doc": f"{_CARGO} --no-deps",
    "cargo fmt": "--check --all -v -q",
    "go build": "-v -race",
    "go test": _GO,
    "go vet": "-v",
    "docker ps": "-a --all -q --quiet --no-trunc -n= --last= -l --latest -s --size -f= --filter= --format=",
    "docker images": "-a --all -q --quiet --no-trunc --digests -f= --filter= --format=",
    "docker logs": "-f --follow -n= --tail= --since= --until= -t --timestamps --details",
    "pytest": """
        -x -q -qq -v -vv -s -l --lf --ff --sw --co --collect-only -k= -m= -n= --maxfail= --tb= --durations= --no-header
        --last-failed --failed-first --exitfirst --quiet --verbose --showlocals -ra -rA -rf -rs --timeout=
    """,
    "ruff check": "--fix --no-fix --diff --select= --ignore= --statistics --quiet -q --output-format= --watch",
    "ruff format": "--check --diff --quiet -q",
    "mypy": "--strict --no-error-summary --pretty --show-error-codes --ignore-missing-imports",
    "tsc": "--noEmit --pretty --strict --skipLibCheck",
    "eslint": "--quiet --no-color --max-warnings= --ext= --cache",
    "prettier": "--check -c --list-different -l",
}
_PLAIN: Mapping[tuple[str, ...], frozenset[str]] = MappingProxyType(
    {tuple(key.split()): frozenset(options.split()) for key, options in _TABLE.items()}
)


def listed_prefix(argv: Sequence[str]) -> tuple[str, ...]:
    """Give the program and subcommand that a rule may name for this command; empty where all its words are needed."""
    for size in (2, 1):
        prefix = tuple(argv[:size])
        if prefix in _PLAIN and covers(prefix, argv):
            return prefix
    return ()


def covers(prefix: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a rule that allows everything beginning with `prefix` covers this command.

    A rule whose words are not listed covers everything: whoever writes such a rule by hand says so.
    """
    options = _PLAIN.get(tuple(prefix))
    return options is None or _are_plain(argv[len(prefix) :], options)


def _are_plain(words: Sequence[str], options: frozenset[str]) -> bool:
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word == "--" and "--" in options:
            return "*" in options or all(_is_plain_operand(rest) for rest in pending)
        name, glued, _ = word.partition("=")
        if not word.startswith("-"):
            if not _is_plain_operand(word):
                return False
        elif f"{name}=" in options:
            if not glued and not pending:
                return False
            pending = pending if glued else pending[1:]
        elif word not in options:
            return False
    return True


def _is_plain_operand(word: str) -> bool:
    """Whether a word is a name or a path that stays below the working directory; `A=b` sets something instead."""
    return not word.startswith(("/", "~", "-")) and "=" not in word and ".." not in word.split("/") and "@" not in word
