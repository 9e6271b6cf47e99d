"""What publishes or deploys, told by the words that programs use for it; every mode asks about it."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from treadle.policy.findings import Finding
from treadle.policy.marks import is_static, split_words
from treadle.policy.shell.interpreters import SHELLS, is_interpreter
from treadle.protocol.tools import Risk

PUBLISHES = "publish"
"""The rule by which such a finding is known."""

_VERB = re.compile(r"(publish|deploy|push|upload|dcommit)([:_-].*)?|.*[:_-](publish|deploy)")
_SCRIPT = re.compile(r"(publish|deploy|release)([_-].*)?")
_GROUPS = frozenset(split_words("image nuget npm git hosting compose pages functions app stack chart package"))
"""First words behind which the verb stands second."""

_RUNNERS = frozenset(split_words("npx bunx pnpx uvx npm pnpm yarn bun uv poetry pipx pdm hatch rye bundle mise deno"))
_RUN = frozenset({"run", "run-script", "exec", "x", "dlx", "tool"})
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
_SENDS = {"svn": frozenset({"commit", "ci", "import"}), "gh": frozenset({"release create"})}


def judge_publishing(name: str, words: Sequence[str]) -> list[Finding]:
    """Find that a command publishes or deploys."""
    what = _published(name, words)
    if what is None:
        return []
    return [Finding(Risk.REMOTE, PUBLISHES, f"{what} publishes or deploys, which others see immediately")]


def _published(name: str, words: Sequence[str]) -> str | None:
    plain = list(_plain(words))
    if name in _AT_ONCE:
        return name if _SHOWS.isdisjoint((*plain[:1], *words)) else None
    if _SCRIPT.fullmatch(posixpath.splitext(name)[0]):
        return name
    if name in SHELLS or is_interpreter(name):
        return _script(name, words)
    if name in _RUNNERS:
        while plain and plain[0] in _RUN:
            plain.pop(0)
        inner = _published(plain[0], plain[1:]) if plain else None
        return f"{name} {inner}" if inner else _first(name, plain)
    if name in _TARGETS:
        return next((f"{name} {word}" for word in words if not word.startswith("-") and _VERB.fullmatch(word)), None)
    sent = _SENDS.get(name, frozenset())
    if not sent.isdisjoint((" ".join(plain[:1]), " ".join(plain[:2]))):
        return f"{name} {plain[0]}"
    return _first(name, plain[1:] if plain[:1] and plain[0] in _GROUPS else plain)


def _first(name: str, plain: Sequence[str]) -> str | None:
    return f"{name} {plain[0]}" if plain and _VERB.fullmatch(plain[0]) else None


def _script(name: str, words: Sequence[str]) -> str | None:
    """Give the script of an interpreter when its name says that it publishes."""
    if name in SHELLS and any(re.fullmatch(r"-\w*[nc]\w*", word) for word in words):
        return None
    pending = [word for word in words if not word.startswith("-")] if name in SHELLS else list(words[:1])
    stem = posixpath.splitext(posixpath.basename(pending[0]))[0] if pending else ""
    return f"{name} {pending[0]}" if _SCRIPT.fullmatch(stem) else None


def _plain(words: Sequence[str]) -> Iterator[str]:
    """Give the words that are neither options nor what stands behind a short one."""
    for before, word in zip(("", *words), words, strict=False):
        behind_short = before.startswith("-") and not before.startswith("--")
        if not word.startswith("-") and not behind_short and is_static(word):
            yield word
