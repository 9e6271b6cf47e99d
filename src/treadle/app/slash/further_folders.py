"""The slash command for further folders of a workspace. A session keeps its folders, so a copy goes on with others."""

from pathlib import Path

from treadle.app.history.forking import copy_with_folders, works_behind
from treadle.app.security.trusting import session_trust, shown_path
from treadle.app.session.files.roots import further_roots
from treadle.app.session.own_commands.command_answers import CommandAnswer, while_working, wrong
from treadle.app.session.shared.access import SessionAccess

_BEHIND = (
    "Subagents work in the background, and the copy would not have them. Wait for them or stop them in /agents, then "
    "/add-dir."
)
_ELSEWHERE = "The folders of a session are changed in the terminal in which it began, not in one that joined it."


def add_dir(session: SessionAccess, argument: str) -> CommandAnswer:
    """List the further folders; with a path, or `off N`, go on in a copy that has other ones. Raises `TreadleError`."""
    word, _, number = argument.partition(" ")
    if not argument:
        return CommandAnswer(text=_listed(session))
    if word == "off" and number.strip().isdecimal():
        place = int(number)
        if not 1 <= place <= len(session.roots):
            return wrong(f"There is no further folder {place}. /add-dir lists them.")
        left = session.roots[place - 1]
        folders = tuple(one for one in session.roots if one != left)
        return _go_on(session, folders, f"without {shown_path(left)}")
    path = Path(argument.strip("\"'")).expanduser()
    settled = further_roots(session.workspace, [*session.roots, str(session.workspace / path)])
    if set(settled.folders) == set(session.roots):
        return wrong(" ".join(settled.notices) or f"{shown_path(str(path))} is a folder of this session already.")
    new = next(one for one in settled.folders if one not in session.roots)
    return _go_on(session, settled.folders, f"with {shown_path(new)}")


def _go_on(session: SessionAccess, folders: tuple[str, ...], said: str) -> CommandAnswer:
    if session.continues:
        return wrong(_ELSEWHERE)
    if session.status.turn_active:
        return while_working("/add-dir")
    if works_behind(session.id):
        return wrong(_BEHIND)
    new = copy_with_folders(session.id, folders)
    text = f"The copy {new} continues {said}. To undo earlier changes, go back to session {session.id}: "
    return CommandAnswer(text=f"{text}treadle --resume {session.id}", opens=new)


def _listed(session: SessionAccess) -> str:
    if not session.roots:
        return "This session has no further folder. /add-dir PATH adds one."
    rows = (
        f"{number}: {shown_path(root)}{'' if session_trust(Path(root)).trusted else ' (not trusted: git asks there)'}"
        for number, root in enumerate(session.roots, start=1)
    )
    return "\n".join([*rows, "/add-dir off N continues without one."])
