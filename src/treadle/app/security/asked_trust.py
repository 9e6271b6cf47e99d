"""The question whether a folder is trusted, for surfaces that ask it as a card, and what its answer does."""

from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from treadle.app.security.trusted_rules import allow_lines
from treadle.app.security.trusting import shown_path, trust_lines, trust_store, whole_trust
from treadle.store.trusted_folders import Trust

NOTHING_RUNS = (
    "Nothing in it runs automatically today. If you trust it, Treadle may read its git state without asking. "
    "New rules, hooks and settings will ask first."
)
"""What trust means for a folder without any rules, settings, servers and hooks."""


class AskedTrust(Struct, frozen=True):
    """What is asked of a folder: `lines` are what would act in it; `seen` names exactly what is shown."""

    trust: Trust
    title: str
    about: str
    lines: tuple[str, ...]
    seen: str


def nothing_acts(trust: Trust) -> str:
    """Say why a folder without any rules, settings, servers and hooks is asked about."""
    of = trust.copy_of
    return f"It is a {'git repository' if of is None else f'copy of {shown_path(str(of))}'}. {NOTHING_RUNS}"


def asked_trust(workspace: Path) -> AskedTrust:
    """Read what is in a folder, and put the question. Takes its time."""
    trust = whole_trust(workspace)
    found = (*trust_lines(trust), *allow_lines(trust))
    lines = found or ("  It has no rules, settings, servers or hooks.",)
    about = "Its rules, settings, servers and hooks are used only if you trust it. A change asks again."
    return AskedTrust(
        trust=trust,
        title=f"{'Do you still trust' if trust.changed else 'Do you trust'} {shown_path(str(workspace))}?",
        about=about if found else nothing_acts(trust),
        lines=lines,
        seen=sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest(),
    )


def keep_trust_answer(asked: AskedTrust, said: str) -> None:
    """Keep what is to be kept of an answer: the folder as it was shown is trusted, or not asked about again."""
    if said == "always":
        trust_store().grant(asked.trust)
    elif said == "never":
        trust_store().refuse(asked.trust)
