"""A task shown as it goes, with every approval answered with yes: the demo without a terminal."""

import uuid
from collections.abc import Iterator

from treadle.door.open_session import LiveSession
from treadle.door.program import describe_model_error, exit_code, harmless, write_wrapped
from treadle.headless.headless_main import TextWriter
from treadle.headless.progress import Progress, summary_lines
from treadle.present.words import output_of
from treadle.protocol.events import Answer, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallChanged, CallStatus, QuestionAsked, TurnEnded
from treadle.protocol.permissions import Question
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import ToolKind

_SOURCE = Source(kind="headless", id="narrator")


async def narrate(live: LiveSession, task: str, out: TextWriter) -> int:
    """Work a task off, telling what happens and saying yes to everything; returns the exit code."""
    progress = Progress()
    async with live.follow() as feed:
        write_wrapped(out, f"Task: {task}")
        await live.post(Prompt(id=uuid.uuid4().hex, content=(Text(text=task),)), _SOURCE)
        async for notification in feed:
            for line in progress.take(notification):
                write_wrapped(out, f"\n{harmless(line)}")
            match notification:
                case QuestionAsked(question=question):
                    for line in _approval(question):
                        write_wrapped(out, harmless(line))
                    await live.post(Answer(question_id=question.id, option=question.yes), _SOURCE)
                case CallChanged(status=CallStatus.FINISHED, kind=ToolKind.EXECUTE, result=result) if (
                    result is not None
                ):
                    output = output_of(ToolKind.EXECUTE, result)
                    out.writelines(f"    {harmless(line)}\n" for line in output.splitlines())
                case TurnEnded(outcome=outcome):
                    for line in (*progress.finish(outcome.text), "", outcome.text, "", *summary_lines(outcome)):
                        write_wrapped(out, harmless(line))
                    if outcome.error is not None:
                        write_wrapped(out, describe_model_error(outcome.error, live.status.model))
                    return exit_code(outcome)
                case _:
                    pass
            out.flush()
    await live.failure()
    return 1


def _approval(question: Question) -> Iterator[str]:
    yield ""
    yield f"? {question.text}"
    if question.preview is not None:
        yield from (f"    {line}" for line in question.preview.text.splitlines())
    if question.decision is not None:
        words = words_of_decision(question.decision)
        yield from (f"  because: {line}" for line in (words.whole_headline, *words.further))
    yield "  y (answered for you)"
