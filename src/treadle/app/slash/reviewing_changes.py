"""The slash command that reviews changes beside the work, in a session of its own that only reads."""

import asyncio
import uuid
from functools import partial

from msgspec.structs import replace

from treadle.app.code_review.changes_to_review import changes_in_words, changes_to_review
from treadle.app.code_review.finding_book import kept_findings, numbered_finding
from treadle.app.code_review.review_run import finding_lines, run_review
from treadle.app.compose import Opening
from treadle.app.config.layers import load_settings
from treadle.app.models.model_notes import named_profile, plain_ref
from treadle.app.session.live import LiveSession
from treadle.app.session.own_commands.command_answers import CommandAnswer, wrong
from treadle.app.session.shared.access import SessionAccess
from treadle.present.words import ended
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import Prompt
from treadle.protocol.messages import Enclosure, EnclosureKind, Text
from treadle.protocol.permissions import Mode
from treadle.workspace.files.text import visible

_STAGED = "--staged"
_USAGE = "/review takes a range of git, --staged, a .diff file, `list` or `apply N`: /review [RANGE]"


def review_command(session: SessionAccess, argument: str) -> CommandAnswer:
    """Review changes, list what was found, or let the model apply a change. Raises `TreadleError`."""
    word, _, rest = argument.strip().partition(" ")
    if word == "list" and not rest:
        return CommandAnswer(
            text=_list(session) or "There are no findings in this session yet. /review starts a review."
        )
    if word == "apply":
        return _apply(session, rest.strip())
    if rest:
        return wrong(_USAGE)
    return CommandAnswer(
        text="The review runs in the background. Its findings will be shown here.",
        later=partial(_reviewed, session, word),
    )


def _list(session: SessionAccess) -> str:
    return visible("\n".join(line for one in kept_findings(session.id) for line in finding_lines(one)))


def _apply(session: SessionAccess, number: str) -> CommandAnswer:
    if not number.isdecimal():
        return wrong("/review apply needs the number of a finding: /review apply N (/review list shows them).")
    finding = numbered_finding(session.id, int(number))
    if finding.change is None:
        return wrong(f"Finding {number} does not suggest a change. Tell the model what to do.")
    about = f"finding {number} of a review"
    text = f"[{about}: {finding.file}, line {finding.line}]\n{finding.title}\n{finding.text}\n\n{finding.change}"
    enclosed = Enclosure(kind=EnclosureKind.CHANGES, origin=about, content=(Text(text=text),))
    said = Text(text=f"Apply the change of the enclosed finding {number}, and nothing else.")
    return CommandAnswer(
        text=f"The model applies the change of finding {number}.",
        ops=(Prompt(id=uuid.uuid4().hex, content=(said,), enclosed=(enclosed,)),),
    )


def _opening(session: SessionAccess) -> Opening:
    """Open the session of a review, with the model of this one."""
    live = session if isinstance(session, LiveSession) else None
    known = None if live is None else live.settings
    if known is None:
        known = load_settings({}, workspace=session.workspace, trusted=session.trust.trusted)
    ref = session.status.model
    return Opening(
        workspace=session.workspace,
        settings=replace(known, mode=Mode.PLAN, model=plain_ref(ref), profile=named_profile(ref)),
        user_present=False,
        given=frozenset({"mode", "model"}),
        trust=session.trust,
        turns=None if live is None else live.turns,
    )


async def _reviewed(session: SessionAccess, argument: str) -> CommandAnswer:
    staged = argument == _STAGED
    try:
        changes = await asyncio.to_thread(changes_to_review, session.trust, "" if staged else argument, staged=staged)
        lines = [*changes_in_words(changes)]
        if not changes.files:
            return CommandAnswer(text=visible("\n".join(lines)), warning=bool(changes.left_out))
        report = await run_review(changes, partial(_opening, session), book=session.id)
    except TreadleError as error:
        return wrong(visible(" ".join(filter(None, (error.what, error.why, error.fix)))))
    lines += report.notes
    if report.ended is not None:
        lines.append(f"The review did not finish: {ended(report.ended.stop)}.")
    found = [line for one in report.findings for line in finding_lines(one)]
    lines += found or ([] if report.ended is not None else ["Nothing was found."])
    if any(one.finding.change for one in report.findings):
        lines.append("/review apply N has the model apply the change that a finding suggests.")
    return CommandAnswer(text=visible("\n".join(lines)), warning=report.ended is not None)
