"""Numbers and calls in a few words."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.core.texts import rejected
from treadle.present.edit_words import first_reason, refused_edit
from treadle.present.escape import printable
from treadle.present.result_counts import count_matches, count_read_lines
from treadle.protocol.messages import (
    OWN_COMMAND,
    Document,
    Image,
    ResultContent,
    Text,
    UserContent,
    without_own_commands,
)
from treadle.protocol.models import money
from treadle.protocol.notifications import CallChanged, ContextCompacted, TurnStop
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import COMMAND_HOSTS, Allowance, Decision, OptionKind, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import CallResult, FileChange, Outcome, ToolCall, ToolKind
from treadle.protocol.usage import Usage

_SHOWN_TITLE, _SHOWN_REASON, _MOST_NAMED = 160, 240, 20
_STATUS = regex(r"Exit status (\d+)(?: \([^)]*\))?\.$")
_GOES_ON = regex(r"Command \d+ continues in the background\.")
_PATCHED = regex(r"(?m)^\*\*\* (?:Add|Update|Delete) File: *(.+)$")
_NOTHING_PRINTED = "(no output)"
CHANGED_BY_HOOK = "A hook changed this call. "
_CHANGED = ("The user changed this call before approving it. ", CHANGED_BY_HOOK)
_SAID_NO = rejected(" ").strip()
"""What stands before a person's words in what the model reads of their no."""

ANSWERS: Mapping[OptionKind, str] = MappingProxyType(
    {
        OptionKind.ALLOW_ONCE: "yes",
        OptionKind.ALLOW_ALWAYS: "yes, always",
        OptionKind.REJECT_ONCE: "no",
        OptionKind.REJECT_ALWAYS: "no, always",
        OptionKind.ANSWER: "with a text",
        OptionKind.RUN_FOR_REAL: "run it for real",
    }
)
"""What a person answered, in a few words."""


def elsewhere(by: str) -> str:
    """Say where another surface is: `in terminal 2`, `on Pixel 8`, `in Firefox on macOS`, `by cursor 3 over MCP`."""
    kind, _, name = by.partition(":")
    match kind:
        case "tui":
            return "in the first terminal" if name == "main" else f"in {name}"
        case "mcp":
            return f"by {printable(name)} over MCP"
        case "acp":
            return "in the editor"
        case "web":
            return f"{'in' if ' on ' in name or name.startswith('browser ') else 'on'} {printable(name)}"
        case _:
            return f"in {kind}"


def what_came_of(changed: CallChanged, result: CallResult) -> str:
    """Say of a call whether it was asked about, and how it ended: `asked, ok`."""
    asks = changed.decision is not None and changed.decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION
    # What is denied although it would be asked about was not asked about: nobody was there.
    return f"asked, {result.outcome}" if asks and result.outcome is not Outcome.DENIED else result.outcome.value


_WRITERS = {"monitor": "a watched command", "parent": "the agent that began it", "goal": "the check of the goal"}


def written_by(by: str) -> str:
    """Name who wrote a prompt that the user did not: `From cursor 3, over MCP:`."""
    kind, _, name = by.partition(":")
    about = f" ({printable(name)})" if name else ""
    if kind == "mcp":
        return f"From {printable(name)}, over MCP:"
    return f"From {_WRITERS.get(kind, f'a {kind}')}{about}:"


def clip_text(text: str, limit: int) -> str:
    """Put a text on one line of at most `limit` characters."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def shorten_middle(text: str, *, lines: int, characters: int) -> str:
    """Leave out the middle of a long text, and say how much; at most so many lines and characters stay."""
    kept = text.split("\n")
    if len(kept) > lines:
        half = lines // 2
        kept = [*kept[:half], f"… {len(kept) - 2 * half:,} more lines …", *kept[-half:]]
    short = "\n".join(kept)
    if len(short) <= characters:
        return short
    half = characters // 2
    return f"{short[:half]} … {len(short) - 2 * half:,} more characters … {short[-half:]}"


def plain(content: tuple[ResultContent, ...]) -> str:
    """Give the text of a content; what is no text is named."""
    return "\n".join(_block(block) for block in content)


def written_text(content: tuple[UserContent, ...]) -> str:
    """Give what the user wrote and attached; the output of their own commands is left out."""
    return plain(without_own_commands(content))


def own_commands(content: tuple[UserContent, ...]) -> tuple[str, ...]:
    """Give the commands that the user ran and sent along, each with its output."""
    texts = (block.text for block in content if isinstance(block, Text))
    return tuple(text.removeprefix(OWN_COMMAND) for text in texts if text.startswith(OWN_COMMAND))


def enclosed_line(origins: Sequence[str]) -> str:
    """Say in a line what went along with a message."""
    shown = ", ".join(map(printable, origins[:_MOST_NAMED]))
    more = len(origins) - _MOST_NAMED
    return f"Enclosed: {shown}{f' and {more} more' if more > 0 else ''}"


def _block(block: ResultContent) -> str:
    match block:
        case Text(text=text):
            return text
        case Image(media_type=media_type):
            return f"[{media_type}]"
        case Document(title=title, media_type=media_type):
            return f"[{title or media_type}]"


_VERBS = {
    "read_file": "Read",
    "list_files": "List",
    "search_files": "Search",
    "list_code_definition_names": "Outline",
    "replace_in_file": "Edit",
    "apply_patch": "Edit",
    "edit_notebook": "Edit",
    "write_to_file": "Create",
    "new_rule": "Create",
    "use_skill": "Skill",
    "use_subagents": "Subagents",
    "execute_command": "Run",
    "web_fetch": "Fetch",
    "web_search": "Search the web",
    "browser_action": "Browse",
    "ask_followup_question": "Ask",
    "read_command_output": "Look at",
    "plan_mode_respond": "Plan",
    "attempt_completion": "Result",
    "run_code": "Program",
    "new_task": "New task",
    "condense": "Make room",
    "set_timer": "Timer",
}
_KNOWN = (*_VERBS.values(), "Delete", "Move", "Call", "Stop")
_RENAMED = {"Browser": "Browse", "Question": "Ask"}
_COUNTED = regex(r" \(\+(\d+) -(\d+)\)$")


class CallName(Struct, frozen=True):
    """What a call is called: a verb, what it is about, and how many lines an edit adds and removes."""

    verb: str
    about: str = ""
    figures: tuple[int, int] | None = None

    @property
    def counted(self) -> str:
        """The lines of an edit: `+3 -1`."""
        return "" if self.figures is None else "+{} -{}".format(*self.figures)

    @property
    def text(self) -> str:
        """All of it on one line."""
        return " ".join(filter(None, (self.verb, self.about, f"({self.counted})" if self.counted else "")))


def describe_call(changed: CallChanged) -> CallName:
    """Name a call by what it does; harmless to show, of a command all lines."""
    preview = changed.preview
    if preview is None:
        return call_name(changed.call)
    title = preview.title
    # What an edit shows in place of a diff is why it is refused; that is the reason of its failure.
    more = preview.text if preview.text and not preview.is_diff and changed.kind is not ToolKind.EDIT else ""
    found = _COUNTED.search(title)
    title, figures = (title[: found.start()], (int(found[1]), int(found[2]))) if found else (title, None)
    verb = next((verb for verb in (*_KNOWN, *_RENAMED) if f"{title} ".startswith(f"{verb} ")), title)
    place = title.removeprefix(verb).strip()
    if verb == "Search" and more:
        # What is searched says more than where; the project itself need not be named.
        place, more = more, "" if place in ("", ".") else f"in {place}"
    about = " ".join(filter(None, (place, more)))
    return CallName(_RENAMED.get(verb, printable(clip_text(verb, _SHOWN_TITLE))), printable(about), figures)


def call_name(call: ToolCall) -> CallName:
    """Name a call by its tool and its first argument in words, a patch by its files."""
    first = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    if call.name == "apply_patch":
        first = ", ".join(_PATCHED.findall(first)) or first
    return CallName(verb_of(call.name), printable(clip_text(first, _SHOWN_TITLE)))


def verb_of(tool: str) -> str:
    """Name what a tool does."""
    return _VERBS.get(tool, printable(clip_text(tool, _SHOWN_TITLE)))


def note_of(kind: ToolKind, result: CallResult, decision: Decision | None = None) -> str:
    """Say how a call went: why it failed or was denied, what the person said with a no, or how much came back."""
    text = plain(without_remarks(result.content)).strip()
    if result.outcome in (Outcome.INTERRUPTED, Outcome.SKIPPED, Outcome.UNKNOWN):
        return ""  # what the model reads of these says what it should do
    if result.outcome in (Outcome.REJECTED, Outcome.DENIED):
        return clip_text(result_for_person(result, decision), _SHOWN_REASON)
    if result.outcome is not Outcome.OK:
        first = refused_edit(result) or printable(clip_text(first_reason(text), _SHOWN_REASON))
        return f"exit {status[1]}" if (status := _STATUS.match(first)) else first
    if kind is ToolKind.SEARCH and (found := _found(text)):
        return found
    lines = text.count("\n") + 1 if kind is ToolKind.SEARCH and text else lines_read(kind, result)
    return counted(lines, "line") if lines else ""


def lines_read(kind: ToolKind, result: CallResult) -> int:
    """Count the lines that a call read; 0 for one that reads no file, or did not do it."""
    reads = kind is ToolKind.READ and result.outcome is Outcome.OK
    return count_read_lines(plain(without_remarks(result.content)).strip()) if reads else 0


_NOT_RUN = frozenset({Outcome.DENIED, Outcome.REJECTED, Outcome.SKIPPED})
"""Outcomes of which the text is for the model alone: a person reads why in the line of the call."""


def output_of(kind: ToolKind, result: CallResult) -> str:
    """Give what a call brought a person: what it printed or found, without what its line says anyway."""
    if result.outcome in _NOT_RUN or kind is ToolKind.EDIT:
        return ""
    text = plain(without_remarks(result.content))
    if kind is ToolKind.EXECUTE:
        first, _, rest = text.partition("\n")
        went_wrong = result.outcome is not Outcome.OK and len(first) <= _SHOWN_REASON
        said = went_wrong or _STATUS.match(first) or _GOES_ON.match(first)
        text = (rest if said else text).removeprefix(_NOTHING_PRINTED)
    return text


def result_for_person(result: CallResult, decision: Decision | None) -> str:
    """Give all that came of a call; where it was denied or refused, why, without what only the model is to do."""
    if result.outcome is not Outcome.DENIED:
        return said_no(result) if result.outcome is Outcome.REJECTED else plain(result.content)
    if decision is None:
        return ""
    nobody = decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION
    why = printable(words_of_decision(decision).headline)
    return f"{why}; nobody was there to say yes" if nobody else why


def remarks_of(result: CallResult) -> str:
    """Give what the session itself says after a result, as of changes that were discarded."""
    if result.outcome in _NOT_RUN:
        return ""
    return plain(result.content[len(without_remarks(result.content)) + changes_before(result.content) :]).strip()


def without_remarks(content: tuple[ResultContent, ...]) -> tuple[ResultContent, ...]:
    """Leave out what the session itself says to the model, before a result and after it."""
    content = content[changes_before(content) :]
    remarks = (number for number, one in enumerate(content) if isinstance(one, Text) and one.text.startswith("\n["))
    return content[: next((number for number in remarks if number), len(content))]


def changes_before(content: tuple[ResultContent, ...]) -> int:
    """Count the blocks before a result that tell the model who changed its call."""
    return [isinstance(one, Text) and one.text.startswith(_CHANGED) for one in (*content, None)].index(False)


def said_no(result: CallResult) -> str:
    """Give what a person said with their no to a call; empty where they said nothing."""
    return printable(plain(result.content).partition(_SAID_NO)[2].strip())


def _found(text: str) -> str:
    """Count what a search found: its results are a file's name, then numbered lines; empty for other results."""
    if text.startswith("[no match"):
        return "no match"
    matches, files = count_matches(text)
    found = f"{matches:,} {'match' if matches == 1 else 'matches'} in {counted(files, 'file')}"
    return found if matches and files else ""


def counted(number: int, noun: str) -> str:
    """Count things: 1 line, 2 lines."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def room_made(made: ContextCompacted) -> str:
    """Say what left the conversation, and what that won where it is known."""
    what = f"{counted(made.dropped, 'older message')} removed" if made.dropped else "Results that were repeated removed"
    won = f" ({tokens(made.before)} to {tokens(made.after)} tokens)" if made.before else ""
    return f"{what} to make room{won}"


def seen_from(root: str, change: FileChange) -> FileChange:
    """Name a changed file as seen from a folder."""
    return replace(change, path=change.path.removeprefix(f"{root}/")) if root else change


def tokens(count: int) -> str:
    """Give a count of tokens: 950, 12.3k, 200k, 1.2M."""
    if count < 1_000:
        return str(count)
    amount, unit = (count / 1_000, "k") if count < 999_500 else (count / 1_000_000, "M")
    return f"{amount:.0f}{unit}" if amount >= 99.95 else f"{amount:.1f}".removesuffix(".0") + unit


def spent(usage: Usage, cost: float | None) -> str:
    """Give what a model was paid for: money, or where the price is not known the tokens."""
    if cost is None:
        about = "about " if usage.estimated else ""
        return f"cost unknown, {about}{tokens(usage.context_tokens)} tokens"
    return money(cost, estimated=usage.estimated)


def span(seconds: float) -> str:
    """Give a span of time: 0.4 s, 7 s, 3m 05s, 2h 10m."""
    if 0 < seconds < 0.95:
        return f"{max(0.1, seconds):.1f} s"
    whole = max(0, int(seconds + 0.05))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}m {rest:02d}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02d}m"


def age(seconds: float) -> str:
    """Say how long ago something was: now, 5 min, 2 h, 3 d."""
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {name}"
    return "now"


def ago(seconds: float) -> str:
    """Say how long ago something was, in a sentence."""
    said = age(seconds)
    return "just now" if said == "now" else f"{said} ago"


def ended(stop: TurnStop) -> str:
    """Say why a turn ended."""
    match stop:
        case TurnStop.END_TURN:
            return "Done"
        case TurnStop.MAX_TURN_REQUESTS:
            return "Stopped at the limit of steps"
        case TurnStop.REFUSAL:
            return "The model refused"
        case TurnStop.CANCELLED:
            return "Stopped"
        case TurnStop.ERROR:
            return "Stopped by an error"
        case TurnStop.MISTAKES:
            return "Stopped after repeated mistakes"
        case TurnStop.LOOP:
            return "Stopped because it repeated itself"
        case TurnStop.BUDGET:
            return "Stopped at the limit of what it may spend"
        case TurnStop.TIME:
            return "Stopped at the limit of time"


def describe_allowance(allowance: Allowance) -> str:
    """Say what an allowance covers."""
    if allowance.tool == COMMAND_HOSTS:
        return f"connections of commands to {allowance.host}"
    tool, words = f" with {allowance.tool}" if allowance.tool else "", " ".join(allowance.argv)
    if words:
        return f"the command `{words}`" if allowance.exact else f"commands that begin with `{words}`"
    if allowance.path:
        return f"{'writing' if allowance.op == 'write' else 'reading'} {allowance.path}{tool}"
    return f"requests to {allowance.host}{tool}" if allowance.host else f"every call of {allowance.tool}"
