"""What a hook printed, read: every decision in it, whatever stands around them, or why one cannot be read. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from treadle.app.config.hook_settings import POLICY_EVENTS, HookEvent
from treadle.app.hooks.hook_rows import HookAnswer
from treadle.protocol.patterns import regex

MOST_ANSWERED = 1024 * 1024
_MOST_TRIES = 2_000
"""Places at which an object could begin and does not."""

_LONGEST_PIECE = len("\\u0000")
_SHOWN = 60
_BESIDE = "it printed other text beside its answer"
_PLAIN_IS_CONTEXT = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.SESSION_START})

_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_ESCAPE = regex(
    r"\x1b(?:\[[0-?]*[ #$']*[@-z~]|[\]PX^_][^\x07\x1b\n{]*(?:\x07|\x1b\\)?|[ #%()*+./-]*[0-z])?|\x9b[0-?]*[@-z~]"
)
"""Of one that does not end, and of none that an object stands in, more than its own line is taken away."""

_UNSEEN = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\u2060\ufeff]")
_FENCE = regex(r"(?m)^[ \t]*(?:`{3,}|~{3,})[ \t]*\w*[ \t]*$")
_BEGINS = regex(r"""\{(?=\s*(?:["'\\}]|\w+\s*:|\Z))""")
_CODED = regex(r"\\u00([0-7][0-9a-fA-F])")
_SPEAKS_OF_ONE = regex(
    r"(?i)(?:permission_?decision|\bdecision|\bbehaviou?r)[\"'\\\s]*[:=>]+[\"'\\\s]*(?:block|deny|ask|defer|allow|approve)"
    r"|\bcontinue[\"'\\\s]*[:=>]+[\"'\\\s]*(?:false|no\b)"
)
"""Words of a decision in text that is no JSON."""

_ONE_WORD = frozenset({"block", "deny", "ask", "defer", "allow", "approve"})
_ANSWERS = frozenset(
    """
    decision reason continue stopReason systemMessage suppressOutput hookSpecificOutput permissionDecision
    permissionDecisionReason updatedInput additionalContext behavior
    """.lower().split()
)
"""Names that make an object an answer, not a line of some log."""

_DECIDES = frozenset({"decision", "permissiondecision", "behavior", "continue", "hookspecificoutput"})
_WORDS = frozenset(
    [
        "reason",
        "stopReason",
        "systemMessage",
        "permissionDecisionReason",
        "additionalContext",
        "message",
        "updatedToolOutput",
    ]
)
"""Values that people or the model read: what they speak of decides nothing."""

_OF_OTHERS = frozenset({"updatedInput", "updatedToolOutput", "tool_input", "tool_response"})
"""Values that belong to tools: what stands in them decides nothing."""


def read_answer(printed: bytes, event: str) -> HookAnswer:
    """Read what a hook printed: the objects in it that are answers, or plain words, which at some events are context.

    Where a hook decides, `unread` says what of it is no answer and may be a decision. More than a megabyte is none.
    """
    if len(printed) > MOST_ANSWERED:
        return HookAnswer(unread=f"it printed more than {MOST_ANSWERED:,} bytes")
    text = _text_of(printed)
    decides, plain = event in POLICY_EVENTS, event in _PLAIN_IS_CONTEXT
    found = _Found(text, plain=plain)
    answers = tuple(one for one in found.objects if _is_answer(one))
    alone = len(answers) == len(found.objects) and not (found.left or found.broken)
    if plain and not text.startswith("{") and not (answers and (decides or alone)):
        unread = (found.broken or _spoken(text, whole=True)) if decides else ""
        said: dict[str, Any] = {"hookSpecificOutput": {"additionalContext": text}}
        return HookAnswer(objects=(said,) if text and not unread else (), unread=unread)
    if decides:
        return HookAnswer(objects=answers, unread=found.broken or _spoken(found.left, whole=not answers), alone=alone)
    # What stands in the middle of other text may be the words of anybody, and nothing has to be kept from happening.
    unread = found.broken or (_BESIDE if answers else "") if text.startswith("{") and not alone else ""
    return HookAnswer(objects=answers if alone else (), unread=unread)


def misplaced(answer: Mapping[str, Any], event: str) -> str:
    """Name what says a decision in an answer where none is read at this event; empty where nothing does."""
    places: set[tuple[str, ...]] = {("decision",), ("continue",), ("hookSpecificOutput",)}
    if event == HookEvent.PERMISSION_REQUEST:
        places |= {("hookSpecificOutput", "decision"), ("hookSpecificOutput", "decision", "behavior")}
    elif event in (HookEvent.PRE_TOOL_USE, HookEvent.PRE_MODEL_SWITCH):
        places.add(("hookSpecificOutput", "permissionDecision"))
    waiting: list[tuple[tuple[str, ...], object]] = [((), answer)]
    for path, value in waiting:  # grows meanwhile
        if isinstance(value, Mapping):
            for name, inner in value.items():
                at = (*path, str(name))
                if _plain_name(name) in _DECIDES and at not in places:
                    return ".".join(at)[:_SHOWN]
                if isinstance(inner, str) and name not in _WORDS and _spoken(inner, whole=False):
                    return ".".join(at)[:_SHOWN]
                if name not in _OF_OTHERS:
                    waiting.append((at, inner))
        elif isinstance(value, list):
            waiting += [((*path, "[]"), inner) for inner in value]
    return ""


class _Found:
    """The JSON objects of a text, one after another, and what is `left` without them and the marks of code blocks.

    `broken` says why one that begins in it cannot be read. In `plain` words one begins with a line, or is cut off.
    """

    def __init__(self, text: str, *, plain: bool) -> None:
        self.objects: list[dict[str, Any]] = []
        self.broken = ""
        left, end, tries = [], 0, 0
        for at in _starts(text):
            if at < end:
                continue
            try:
                found, beyond = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                tries += 1
                if not plain or tries > _MOST_TRIES or _begins_a_line(text, at) or _is_cut(error, text):
                    self.broken = self.broken or f"it printed broken JSON ({error})"
                if tries > _MOST_TRIES:
                    break
                continue
            self.objects.append(found)
            left.append(text[end:at])
            end = beyond
        self.left = _FENCE.sub("", "\n".join((*left, text[end:]))).strip("[],; \r\n\t")


def _starts(text: str) -> Iterator[int]:
    """Give the places where an object may begin."""
    if text.startswith("{"):
        yield 0
    yield from (start.start() for start in _BEGINS.finditer(text))


def _begins_a_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t\r")


def _is_cut(error: Exception, text: str) -> bool:
    """Whether JSON ends before it is complete."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.pos >= len(text) - _LONGEST_PIECE or error.msg.startswith("Unterminated")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object. Raises `ValueError` where it says two things under one name: which one is meant is unknown."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise ValueError(f"{name[:_SHOWN]!r} has two values in it")
        found[name] = value
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object, strict=False)


def _text_of(printed: bytes) -> str:
    """Decode what was printed, without what terminals do not show.

    What is in UTF-16 only in part, or says nothing of it, is read without the zeros: names and decisions are ASCII.
    """
    encoding = _UTF_16.get(printed[:2])
    text = "" if encoding is None else printed.decode(encoding, errors="replace")
    bare = printed.replace(b"\x00", b"")
    if encoding is None or "\x00" in text or (b"{" in bare and "{" not in text):
        text = bare.decode(errors="replace")
    return _UNSEEN.sub("", _ESCAPE.sub("", text)).strip()


def _is_answer(found: Mapping[str, Any]) -> bool:
    return any(_plain_name(name) in _ANSWERS for name in found) or not found or bool(misplaced(found, ""))


def _plain_name(name: object) -> str:
    return "".join(letter for letter in str(name).casefold() if letter.isalnum())


def _spoken(text: str, *, whole: bool) -> str:
    """Say that text without JSON speaks of a decision, where it does; with `whole` also one word that is all of it."""
    plain = _CODED.sub(lambda coded: chr(int(coded[1], 16)), text)
    found = _SPEAKS_OF_ONE.search(plain)
    if found is None and not (whole and plain.strip("\"'`.! \r\n\t").casefold() in _ONE_WORD):
        return ""
    return f"it printed a decision that is not a JSON object ({(found[0] if found else plain)[:_SHOWN]!r})"
