"""What publishes or deploys, told by the words that programs use for it; every mode asks about it."""

import posixpath
import re
from collections.abc import Sequence

from treadle.policy.findings import Finding
from treadle.policy.marks import is_static, split_words
from treadle.policy.shell.judging.interpreters import SHELLS, is_interpreter
from treadle.protocol.tools import Risk

PUBLISHES = "publish"
"""The rule by which such a finding is known."""

_VERB = re.compile(r"(publish|deploy|push|upload|dcommit)([:_-].*)?|.*[:_-](publish|deploy)")
_SCRIPT = re.compile(r"(publish|deploy|release)([_-].*)?")
_BEFORE = frozenset(
    split_words("""
    image nuget npm git hosting compose pages functions app stack chart package run run-script exec x dlx tool
""")
)
"""First words behind which the verb, or the program that is run, stands second."""

_RUNNERS = frozenset(split_words("npx bunx pnpx uvx npm pnpm yarn bun uv poetry pipx pdm hatch rye bundle mise deno"))
_TARGETS = frozenset(
    split_words(
        "make gmake just task rake nx turbo invoke inv nox tox gradle gradlew mvn mvnw ant grunt gulp mage cap fab"
    )
)
"""Programs of which any word may be something to do."""

_AT_ONCE = frozenset({"vercel", "now", "surge", "gh-pages", "np", "semantic-release", "release-it", "goreleaser"})
"""Programs that publish unless they are told something else."""

_SHOWS = frozenset(
    split_words("ls list logs inspect whoami dev build pull link check init help --version --help --dry-run")
)
_SENDS = frozenset({"svn commit", "svn ci", "svn import", "gh release create"})


def judge_publishing(name: str, words: Sequence[str]) -> list[Finding]:
    """Find that a command publishes or deploys."""
    if not _publishes(name, words):
        return []
    return [Finding(Risk.REMOTE, PUBLISHES, f"{name} publishes or deploys here, which others see immediately")]


def _publishes(name: str, words: Sequence[str]) -> bool:
    # Neither options nor what stands behind a short one.
    behind = [before.startswith("-") and not before.startswith("--") for before in ("", *words)]
    plain = [
        word for word, value in zip(words, behind, strict=False) if word[:1] != "-" and not value and is_static(word)
    ]
    if name in _AT_ONCE:
        return _SHOWS.isdisjoint((*plain[:1], *words))
    if name in SHELLS or is_interpreter(name):
        return _runs_script(name, words)
    if name in _TARGETS:
        return any(_VERB.fullmatch(word) for word in words if not word.startswith("-"))
    said = " ".join((name, *plain[:2]))
    rest = plain[1:] if plain[:1] and plain[0] in _BEFORE else plain
    inner = name in _RUNNERS and bool(rest) and _publishes(rest[0], rest[1:])
    told = bool(_SCRIPT.fullmatch(posixpath.splitext(name)[0]) or (rest and _VERB.fullmatch(rest[0])))
    return told or inner or any(f"{said} ".startswith(f"{each} ") for each in _SENDS)


def _runs_script(name: str, words: Sequence[str]) -> bool:
    """Whether the name of a script that is run says that it publishes."""
    if name in SHELLS and any(re.fullmatch(r"-\w*[nc]\w*", word) for word in words):
        return False
    pending = [word for word in words if not word.startswith("-")] if name in SHELLS else list(words[:1])
    return bool(pending and _SCRIPT.fullmatch(posixpath.splitext(posixpath.basename(pending[0]))[0]))
