"""What the model works under, in a few short lines: who is there, what runs without asking, how many steps it has."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from treadle.protocol.permissions import Mode, Situation
from treadle.workspace.files.names import shown_name

_NAMED = 10
_NOBODY = "Nobody is here: questions get no answer, and what needs approval is denied."
SAMPLES = ("edit", "look", "test", "files", "commit", "fetch", "publish")
"""Calls that the policy is asked about: an edit, `git log`, `pytest`, `touch`, `git commit`, `curl`, `git push`."""

SAMPLE_ANSWERS: Mapping[tuple[Mode, bool, bool], str] = MappingProxyType(
    {
        (Mode.PLAN, True, True): "dcccccd",
        (Mode.ASK, True, True): "acccaLa",
        (Mode.EDITS, True, True): "rccraLa",
        (Mode.AUTO, True, True): "rcrrrla",
        (Mode.FULL, True, True): "rrrrrra",
        (Mode.PLAN, True, False): "dcccccd",
        (Mode.ASK, True, False): "acaaaaa",
        (Mode.EDITS, True, False): "rcaraaa",
        (Mode.AUTO, True, False): "rcrrrla",
        (Mode.FULL, True, False): "rrrrrra",
        (Mode.PLAN, False, True): "dcddddd",
        (Mode.ASK, False, True): "acaaaaa",
        (Mode.EDITS, False, True): "rcaaaaa",
        (Mode.AUTO, False, True): "rcaaaaa",
        (Mode.FULL, False, True): "rrrrrra",
        (Mode.PLAN, False, False): "dcddddd",
        (Mode.ASK, False, False): "acaaaaa",
        (Mode.EDITS, False, False): "rcaaaaa",
        (Mode.AUTO, False, False): "rcaaaaa",
        (Mode.FULL, False, False): "rrrrrra",
    }
)
"""What the policy answers about each of the `SAMPLES` in a mode, where the folder is trusted, and where commands are
tried first: `r` it runs, `c` in a throw-away copy, `l` and `L` these with each host asked about, `a` it asks, `d` it is
denied. The first request is sent before the policy is loaded: a test asks it and compares."""

SAMPLE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "dcccccd": (
            "nothing may be changed; commands run in a throw-away copy. Explore, then give your plan with "
            "plan_mode_respond."
        ),
        "acccaLa": (
            "reading is allowed. Other commands run in a throw-away copy; keeping their changes, edits and the network "
            "need approval."
        ),
        "rccraLa": (
            "reading, edits and plain file commands are allowed. Others run in a throw-away copy; keeping changes and "
            "the network need approval."
        ),
        "rcrrrla": (
            "edits and commands are allowed. Commands write here, in $TMPDIR and to git; hosts need approval when they "
            "connect."
        ),
        "rrrrrra": (
            "all is allowed, but publishing, destroying data, reading secrets and changing control files need approval."
        ),
        "dcddddd": "nothing may be changed, and only commands that read run.",
        "acaaaaa": "commands that only read run; all else needs approval.",
        "rcaraaa": "edits, plain file commands and commands that only read are allowed; others need approval.",
        "rcaaaaa": "edits and commands that only read are allowed; others need approval.",
    }
)
"""What is said of each of the `SAMPLE_ANSWERS`."""

_UNTRUSTED = "This folder is not trusted (--trust): "


def situation_lines(
    situation: Situation,
    *,
    first: bool,
    approved: Collection[str] = (),
    trusted: bool = True,
    try_first: bool = True,
) -> list[str]:
    """Say what follows from a situation; `approved` names classes of risk that the user lets run beyond the mode.

    Where the folder is not `trusted`, its programs do not run by themselves. With `try_first` commands are tried in a
    throw-away copy before anything is asked.
    """
    lines = [] if situation.user_present else [_NOBODY]
    if situation.user_present and not first:
        lines.append("The user is here and can answer.")
    mode = situation.mode
    said = SAMPLE_WORDS[SAMPLE_ANSWERS[mode, trusted, try_first]]
    matters = not trusted and SAMPLE_ANSWERS[mode, False, True] != SAMPLE_ANSWERS[mode, True, True]
    said = f"{_UNTRUSTED}{said}" if matters else f"{said[0].upper()}{said[1:]}"
    lines.append(f"Mode: {mode}. {said}")
    if approved and mode not in (Mode.PLAN, Mode.FULL):
        lines.append(f"Also allowed: {', '.join(sorted(approved))}.")
    if situation.max_steps is not None:
        lines.append(f"Steps: at most {situation.max_steps}.")
    return lines


def repository_line(branch: str, changed: Sequence[str]) -> str:
    """Say which branch is checked out and which files differ from it; `changed` are their names."""
    if not changed:
        return f"Git: {branch}, no changes"
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    files = "1 changed file" if len(changed) == 1 else f"{len(changed)} changed files"
    return f"Git: {branch}, {files}: {', '.join(map(shown_name, changed[:_NAMED]))}{more}"
