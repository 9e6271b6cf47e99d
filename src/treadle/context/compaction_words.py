"""What a user may set of compaction, and what the model is asked when it is to sum up a conversation."""

from enum import StrEnum

from msgspec import Struct


class CompactionStrategy(StrEnum):
    """What stands for messages that leave: what the log knows of them, a summary of the model's, or what fits."""

    SUMMARY = "summary"
    DROP = "drop"
    AUTO = "auto"


class CompactionSettings(Struct, frozen=True, kw_only=True):
    """When older messages leave the prompt, and how.

    `compact_at` is a part of the window up to 1, or a number of tokens; None is well before the window's end. `keep` is
    the part of the messages that stays.
    """

    compact_at: float | None = None
    keep: float = 0.5
    strategy: CompactionStrategy = CompactionStrategy.AUTO


SUMMARY_REQUEST = """\
The conversation is about to lose its older messages to make room. Write the summary that will replace them. \
You will go on with the task from it alone, so leave out nothing that you need. Do not call a tool. Write these \
sections:

## Task
What the user wants, in their words where the wording matters, with every later request.
## Decisions
What was decided, and why: by the user, and by you.
## Files
Each file that was read or changed and matters: its path, what was found or done, its state now.
## Commands and results
The commands that matter with their results: tests, checks, errors that are still open.
## Open items
What is still to be done, and what is not known yet.
## Next step
The exact next step, with the file, the function or the command."""

_FOCUS = """

The user asks that the summary keeps this above all:
{focus}"""


def summary_request(focus: str) -> str:
    """Ask for a summary that keeps `focus` above all."""
    return SUMMARY_REQUEST + (_FOCUS.format(focus=focus) if focus else "")
