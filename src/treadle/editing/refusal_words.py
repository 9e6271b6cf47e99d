"""Say why an edit was refused, in the words that a model or a person reads."""

from collections.abc import Iterator, Sequence

from treadle.editing.apply import MOST_REFUSED
from treadle.editing.edit_results import EditError


def explain_refusal(error: EditError, name: str = "", part: str = "block") -> str:
    """The refusal of an edit of the file `name`, with every block that failed; `part` is what a block is called."""
    failed = (error, *error.others)
    codes = ", ".join(dict.fromkeys(one.code.value for one in failed))
    head = f"Refused [{codes}]: nothing was changed{f' in {name}' if name else ''}."
    if len(failed) > 1:
        return "\n".join((f"{head} {_advice(failed, part)}", *_parts(failed, part)))
    which = f"{part.capitalize()} {error.block} of {error.blocks}: " if error.block and error.blocks > 1 else ""
    again = f" Send {_all(error.blocks)} {part}s again." if which else ""
    return f"{head} {which}{_with_text(error, again)}"


def _advice(failed: Sequence[EditError], part: str) -> str:
    total, last = failed[0].blocks, failed[-1].block or 0
    unseen = len(failed) >= MOST_REFUSED and last < total
    rest = f" {part.capitalize()}s after {last} were not checked." if unseen else ""
    return f"{len(failed)} of {total} {part}s failed.{rest} Correct them and send {_all(total)} {part}s again."


def _all(total: int) -> str:
    return "both" if total == 2 else f"all {total}"


def _parts(failed: Sequence[EditError], part: str) -> Iterator[str]:
    """What is wrong with each block; blocks with the same fault together."""
    faults: dict[str, list[str]] = {}
    for one in failed:
        faults.setdefault(f"[{one.code}]: {_with_text(one)}", []).append(str(one.block))
    for fault, numbers in faults.items():
        yield f"{part.capitalize()}{'s' * (len(numbers) > 1)} {', '.join(numbers)} {fault}"


def _with_text(error: EditError, again: str = "") -> str:
    text = f"{error.message}{again}"
    return f"{text}\nThe file has:\n{error.nearest}" if error.nearest else text
