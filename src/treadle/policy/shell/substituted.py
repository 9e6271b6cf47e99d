"""What a command in `$(…)` prints, as far as that is known without running it."""

import posixpath
import re
from collections.abc import Sequence

from treadle.policy.marks import HASH, UNKNOWN, is_static

_HASH_OPTIONS = {
    "rev-parse": re.compile(r"--short(=\d+)?|--verify|--quiet|-q"),
    "merge-base": re.compile(r"--octopus|--fork-point|-a|--all"),
    "rev-list": re.compile(
        r"-\d+|-n\d*|--max-count=\d+|--max-parents=\d+|--all|--reverse|--first-parent|--no-merges|--merges"
    ),
    "log": re.compile(r"-\d+|-n\d*|--max-count=\d+|--all|--reverse|--first-parent|--no-merges|--merges"),
}
_ONLY_HASHES = re.compile(r"--(format|pretty)=(t?format:)?%[hH]")
_CUT = re.compile(r"(-n ?\d+|-\d+)?")


def printed_by(commands: Sequence[Sequence[str]], cwd: str) -> str:
    """Give the text that a pipeline prints: known text, `HASH` for names of commits, or `UNKNOWN`."""
    first, *others = map(list, commands)
    if not all(is_static(word) for words in commands for word in words):
        return UNKNOWN
    if first[:1] == ["git"] and all(one[0] in ("head", "tail") and _CUT.fullmatch(" ".join(one[1:])) for one in others):
        return HASH if _prints_hashes(first[1:]) else UNKNOWN
    if others:
        return UNKNOWN
    match first:
        case ["pwd"]:
            return cwd
        case ["dirname", path] if path and not path.startswith("-"):
            return posixpath.dirname(path.rstrip("/")) or ("/" if path.startswith("/") else ".")
        case ["basename", path] if path.strip("/") and not path.startswith("-"):
            return posixpath.basename(path.rstrip("/"))
        case ["basename", path, ending] if path.strip("/") and not path.startswith("-"):
            name = posixpath.basename(path.rstrip("/"))
            return name.removesuffix(ending) if name != ending else name
        case _:
            return UNKNOWN


def _prints_hashes(words: Sequence[str]) -> bool:
    """Whether a git command prints names of commits, or a revision as it was given."""
    if not words or words[0] not in _HASH_OPTIONS or "--" in words:
        return False
    command, *rest = words
    options = [word for word in rest if word.startswith("-")]
    known = [word for word in options if _HASH_OPTIONS[command].fullmatch(word)]
    asked = [word for word in options if _ONLY_HASHES.fullmatch(word)]
    return len(known) + len(asked) == len(options) and len(asked) == (command == "log")
