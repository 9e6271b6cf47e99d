"""The slash command that copies an answer: as the model wrote it, not as it was drawn. To be done in a thread."""

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from treadle.app.compose import session_log
from treadle.app.reports.session_text import session_items
from treadle.app.session.own_commands.command_answers import CommandAnswer, wrong
from treadle.app.session.shared.access import SessionAccess
from treadle.present.escape import printable
from treadle.present.items import ProseItem
from treadle.present.prose import closes_fence, opening_fence
from treadle.present.words import clip_text, counted

_SHOWN = 60


class CodeBlock(Struct, frozen=True):
    """A fenced block of an answer: what stands behind the opening fence, and its lines."""

    info: str
    text: str


def code_blocks(markdown: str) -> tuple[CodeBlock, ...]:
    """Find the fenced blocks; the indent of the opening fence is taken off each line, as Markdown means it."""
    found: list[CodeBlock] = []
    fence, indent, lines = "", 0, list[str]()
    for line in markdown.split("\n"):
        if not fence:
            fence, indent, lines = opening_fence(line), len(line) - len(line.lstrip(" ")), []
        elif closes_fence(line, fence):
            found.append(_block(fence, lines))
            fence = ""
        else:
            lines.append(line[min(indent, len(line) - len(line.lstrip(" "))) :])
    if fence:
        found.append(_block(fence, lines))  # an answer that was cut ends every block
    return tuple(found)


def _block(fence: str, lines: Sequence[str]) -> CodeBlock:
    return CodeBlock(info=fence.strip().lstrip("`~").strip(), text="\n".join(lines))


def last_answer(session_id: str) -> str:
    """Give the text of the last answer that is still in the conversation, empty where there is none.

    Raises `SessionError`, `StoreError`.
    """
    with session_log(session_id) as (row, store):
        view, items = session_items(store.read(row.id))
    kept = [placed.item for placed in items if placed.item is not None and not view.has_left(placed)]
    runs = groupby(kept, lambda item: isinstance(item, ProseItem))
    answers = ("".join(one.written for one in run if isinstance(one, ProseItem)) for prose, run in runs if prose)
    return next((text for text in reversed([*answers]) if text.strip()), "").strip("\n")


def copy(session: SessionAccess, argument: str) -> CommandAnswer:
    """Copy the last answer, or a block of code in it; with `list` name the blocks."""
    answer = last_answer(session.id)
    if not answer:
        return wrong("There is no answer to copy yet.")
    if not argument:
        return CommandAnswer(text="The last answer", copies=answer)
    blocks = code_blocks(answer)
    if argument == "list":
        rows = [f"{number}: {_about(one)}" for number, one in enumerate(blocks, start=1)]
        return CommandAnswer(text="\n".join([*rows, "/copy N copies one."]) if rows else _NO_BLOCKS)
    if not argument.isdecimal():
        return wrong("/copy needs the number of a code block, `list`, or nothing: /copy [N]")
    if not blocks:
        return wrong(_NO_BLOCKS)
    number = int(argument)
    if not 1 <= number <= len(blocks):
        return wrong(f"The last answer has {counted(len(blocks), 'block')} of code. /copy list shows them.")
    return CommandAnswer(text=f"Block {number} of {len(blocks)}", copies=blocks[number - 1].text)


_NO_BLOCKS = "The last answer has no code block. /copy copies all of it."


def _about(block: CodeBlock) -> str:
    first = next((line.strip() for line in block.text.split("\n") if line.strip()), "")
    kind = f"{block.info.split()[0]}, " if block.info else ""
    lines = counted(block.text.count("\n") + 1, "line")
    return printable(clip_text(f"{kind}{lines}: {first}", _SHOWN + len(kind)))
