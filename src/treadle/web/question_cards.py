"""The card of a question: what would happen, why it is asked, and the answers, in the words of every surface."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.open_session import Reach
from treadle.present.answer_rows import Act, AnswerRow, answer_rows
from treadle.present.asked_parts import pieces_of
from treadle.present.escape import exact_line
from treadle.present.forms import form_fields, offered_values
from treadle.present.grants import Grants, grants_of
from treadle.present.question_words import QuestionStyle, QuestionWords, asked_in_words, is_edit
from treadle.present.trial_words import PRINTED
from treadle.present.words import counted
from treadle.protocol.events import Answer, Op, SetMode
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.web.changed_calls import blocks_to_choose, edit_blocks, fields_to_change
from treadle.web.changed_lines import DiffBlock, definitions, diff_blocks, near_changes
from treadle.web.question_kinds import asked_kind
from treadle.web.templating import render

_LINKS = ("http://", "https://")
_LONG_TEXT, _LONG_DIFF = 8, 24
"""Lines of what is asked about, and of a diff, of which more stand in a box of their own height."""

_LONGEST_SAID = 300
"""Characters of the model's words that stand in a card."""

_FIGURES = regex(r"(  \+\d+ )-(?=\d+(?:  |$))")
_NAMED = regex(r"(Apply this edit to |Create |Delete )(.+)\?")
_YES = {"Yes": "Allow once", "Yes, once, with this right": "Allow once, with this right"}
_PLAIN_KINDS = (QuestionKind.BUDGET, QuestionKind.ELICITATION)
_PLAIN = (Act.SHOW, Act.WORDS)
"""Rows that the card shows otherwise: the diff stands in it, and there is a field for words."""

_WORDS = {
    QuestionKind.SUMMARY: "What should change",
    QuestionKind.FOLLOWUP: "Something else",
}


OpRefusal = Callable[[Op], Reach | None]
"""Gives the effect of an op that whoever looks at a card may not have; None where they may ask for it."""

_ELSEWHERE = "the computer that Treadle runs on"


class AskedHow(Struct, frozen=True, kw_only=True):
    """One way to say yes: what it is called, what it covers, and what the button says once it is chosen."""

    act: str
    title: str
    button: str
    about: str = ""
    code: str = ""
    covers: str = ""
    leaves: str = ""


class AskedButton(Struct, frozen=True, kw_only=True):
    """A button of the card. `opens`: it asks for something first; `fills`: it may be the filled one."""

    act: str
    label: str
    opens: bool = False
    fills: bool = True


class WhyBlock(Struct, frozen=True):
    """Lines of what is said of a question: a sentence, or the lines that its command printed.

    `leads_to` is the session that a sentence is about, empty where there is none.
    """

    text: str
    printed: bool = False
    leads_to: str = ""


def question_html(
    session_id: str, question: Question, roots: Sequence[str], mode: Mode, *, refused: OpRefusal, said: str = ""
) -> str:
    """Give the card of a question of a session in a mode, with the answers that are not `refused`.

    `said` are the model's words that no conversation beside it shows.
    """
    words = asked_in_words(question, roots)
    kind = asked_kind(question, words)
    danger = words.style is QuestionStyle.DANGER
    preview = question.preview
    blocks = edit_blocks(question)
    every = [row for row in answer_rows(question, mode, blocks=len(blocks)) if row.act not in _PLAIN]
    rows = [row for row in every if not any(map(refused, _asked_for(row.act, question)))]
    acts = {row.act for row in rows}
    yes = not acts.isdisjoint((Act.ALLOW, Act.FOR_REAL))
    elicits = question.kind is QuestionKind.ELICITATION
    changes = [] if refused(_answer(question, OptionKind.ALLOW_ONCE, changed=True)) else fields_to_change(question)
    permits = question.kind is QuestionKind.PERMISSION
    grants = grants_of(question)
    shown = diff_blocks(preview.text) if preview is not None and preview.is_diff else []
    near = near_changes(shown)
    named = _NAMED.fullmatch(words.title) if is_edit(question) else None
    lines, rows_of_diff = words.text.count("\n") + 1, sum(len(block.rows) for block in near)
    changed = sum(row in ("add", "del") for block in shown for _, row, _ in block.rows)
    return render(
        "question.html",
        session_id=session_id,
        question=question,
        words=words,
        pieces=list(pieces_of(words.text, words.every)) if question.kind is not QuestionKind.ELICITATION else [],
        danger=danger,
        why=why_blocks(question, words),
        before=named[1] if named else "",
        file=named[2] if named else "",
        sign=kind.sign,
        effect=kind.effect,
        headline="" if kind.effect and words.headline.endswith(_SAYS_THE_EFFECT) else words.headline,
        said=_said(said),
        reasons=list(_reasons(words)),
        long_text=lines if lines > _LONG_TEXT else 0,
        blocks_of_diff=near,
        long_diff=rows_of_diff > _LONG_DIFF,
        diff_size=f"{counted(changed, 'changed line')} in {_blocks_words(shown)}",
        how=list(_how(acts, grants, str(next(iter(roots), "")))) if not danger else [],
        buttons=list(_buttons(rows, question, danger=danger)),
        rejects=_rejects_with_words(question) and Act.REJECT in acts,
        comments=permits and Act.ALLOW in acts and not danger and question.copy is None,
        elicits=elicits,
        elsewhere=_given_elsewhere(question, refused, some=len(rows) < len(every)),
        yes=yes,
        grants=grants if Act.ALWAYS in acts else None,
        own_words="" if permits or question.kind in _PLAIN_KINDS else _WORDS.get(question.kind, "Answer"),
        fields=_fields(question) if elicits else [],
        blocks=list(blocks_to_choose(question, blocks)) if Act.BLOCKS in acts else [],
        changes=changes,
        link=question.url if question.url.lower().startswith(_LINKS) else "",
    )


def _answer(
    question: Question, option: OptionKind, scope: AllowScope = AllowScope.SESSION, *, changed: bool = False
) -> Answer:
    arguments = {**question.arguments, "": ""} if changed else None
    return Answer(question_id=question.id, option=option, scope=scope, arguments=arguments)


def _asked_for(act: Act, question: Question) -> Iterator[Op]:
    """Give the ops that a row of the card asks for."""
    match act:
        case Act.ALLOW | Act.BLOCKS:
            yield _answer(question, question.yes)
        case Act.EDITS:
            yield SetMode(mode=Mode.EDITS)
            yield _answer(question, OptionKind.ALLOW_ONCE)
        case Act.SESSION:
            yield _answer(question, OptionKind.ALLOW_ALWAYS)
        case Act.ALWAYS | Act.SAVE:
            yield _answer(question, OptionKind.ALLOW_ALWAYS, AllowScope.USER)
        case Act.FOR_REAL:
            yield _answer(question, OptionKind.RUN_FOR_REAL)
        case Act.REJECT | Act.DROP | Act.DO_NOT_SAVE:
            yield _answer(question, OptionKind.REJECT_ONCE)
        case Act.OPTION | Act.CHOSEN | Act.WORDS | Act.TAKE:
            yield _answer(question, OptionKind.ANSWER)
        case Act.SHOW:
            return


def _given_elsewhere(question: Question, refused: OpRefusal, *, some: bool) -> str:
    """Say where the answers are given that the card leaves out: a yes, or `some` others."""
    effect = refused(_answer(question, question.yes))
    if effect is not None:
        return f"Answer this on {_ELSEWHERE}. A yes {effect}. From here you can say no."
    return f"Answers that apply beyond this question are given on {_ELSEWHERE}." if some else ""


_SAYS_THE_EFFECT = " runs a program"
"""How a reason ends that says no more than the word for the effect."""


def _said(words: str) -> str:
    """Put words of the model into quotation marks that they cannot end, cut to a few lines."""
    line = exact_line(" ".join(words.split())).translate({0x201C: '"', 0x201D: '"'})
    more = " …" if len(line) > _LONGEST_SAID else ""
    return f"\u201c{line[:_LONGEST_SAID].rstrip()}{more}\u201d" if line else ""


def _reasons(words: QuestionWords) -> Iterator[str]:
    """Give the lines of why it asks, each once: the parts of a call often have the same reason."""
    for line in dict.fromkeys(map(str.strip, words.details)):
        yield f"{line[:1].upper()}{line[1:]}" if line.startswith(("rule:", "risk:", "runs in ")) else line


def places_words(question: Question) -> str:
    """Say where an edit changes something: in how many blocks, and in which definitions as far as its diff has them."""
    preview = question.preview
    if preview is None or not preview.is_diff:
        return ""
    return ", ".join([_blocks_words(diff_blocks(preview.text)), *definitions(preview.text)])


def _blocks_words(blocks: Sequence[DiffBlock]) -> str:
    return counted(len(blocks), "block")


def why_blocks(question: Question, words: QuestionWords) -> list[WhyBlock]:
    """Put together what is said of a question, each sentence by itself, what its command printed as one text.

    Of the reasons of something dangerous the first stands there already; the others are under why it asks.
    """
    if question.child:
        whose, *rest = words.why
        own = replace(question, child="")
        return [
            WhyBlock(whose, leads_to=question.child),
            *why_blocks(own, replace(words, why=(*rest,))),
        ]
    if question.copy is None:
        return [WhyBlock(line) for line in words.why if line not in words.others]
    found = groupby(words.why, key=lambda line: line.startswith(PRINTED))
    blocks: list[WhyBlock] = []
    for printed, lines in found:
        texts = list(lines)
        whole = "\n".join(line.removeprefix(PRINTED) for line in texts)
        blocks += [WhyBlock(whole, printed=True)] if printed else [WhyBlock(_FIGURES.sub(r"\1−", one)) for one in texts]
    return blocks


def _how(acts: Collection[Act], grants: Grants | None, root: str) -> Iterator[AskedHow]:
    """Give the ways to say yes: once, and what lasts longer."""
    if Act.ALLOW not in acts:
        return
    yield AskedHow(act="allow", title="Once", button="Allow once", about="This call only")
    if Act.EDITS in acts:
        yield AskedHow(
            act="edits",
            title="All edits in this project, this session",
            button="Allow all edits",
            about="The mode becomes Edits; Treadle still asks before a command changes anything.",
        )
    if grants is None:
        return
    covers = {"about": "Covers", "covers": grants.match, "leaves": grants.other} if grants.match else {}
    code, always = ("", "") if grants.exact else (grants.session, grants.always)  # that line stands above
    if Act.SESSION in acts:
        said = {"about": _EXACTLY} if grants.exact else covers or {"about": "Until the session ends"}
        yield AskedHow(act="session", title="This session", button="Allow this session", code=code, **said)
    if Act.ALWAYS in acts:
        where = f"in {Path(root).name}" if grants.where == "for this project" else grants.where
        about = "Saved as a rule after one more question; listed and revocable in Settings, Rules"
        about = f"{_EXACTLY}. {about}" if grants.exact else about
        yield AskedHow(act="always", title=f"Always {where}", button="Always allow…", code=always, about=about)


_EXACTLY = "Covers this line only"


_IN_CARD = frozenset({Act.SESSION, Act.ALWAYS, Act.EDITS, Act.BLOCKS})
"""Rows that the card shows otherwise than as one of its first buttons."""


def _rejects_with_words(question: Question) -> bool:
    return question.kind is QuestionKind.PERMISSION and question.copy is None


def _buttons(rows: Sequence[AnswerRow], question: Question, *, danger: bool) -> Iterator[AskedButton]:
    """Give the first buttons of the card, in the order of the rows."""
    if question.kind is QuestionKind.ELICITATION and not question.offers:
        sends = "Send this" if form_fields(question.form) else "Yes, I opened it" if question.url else "Yes"
        yield AskedButton(act="allow", label=sends)
        yield AskedButton(act="reject", label="No")
        return
    for row in rows:
        match row.act:
            case Act.REJECT if _rejects_with_words(question):
                yield AskedButton(act="reject", label="Reject…", opens=True)
            case Act.ALLOW if danger:
                once = row.label.removeprefix("Yes, ")
                yield AskedButton(act="allow", label=f"{once[:1].upper()}{once[1:]}…", opens=True, fills=False)
            case Act.FOR_REAL if danger:
                yield AskedButton(act="for real", label=f"{row.label}…", opens=True, fills=False)
            case Act.ALLOW:
                yield AskedButton(act="allow", label=_YES.get(row.label, row.label))
            case Act.OPTION if question.multiple:
                pass  # a box of the card
            case act if act not in _IN_CARD:
                yield AskedButton(act=act.value, label=row.label, fills=act is not Act.OPTION)
            case _:
                pass
    if question.options and question.kind in _WORDS:
        yield AskedButton(act="else", label="Something else…", opens=True, fills=False)


def _fields(question: Question) -> list[dict[str, Any]]:
    """Give the fields of the form that an elicitation wants filled in."""
    required = question.form.get("required", ())
    fields = []
    for name, about in form_fields(question.form).items():
        value = question.arguments.get(name, about.get("default"))
        fields.append(
            {
                "name": name,
                "label": str(about.get("title") or name),
                "about": str(about.get("description", "")),
                "kind": str(about.get("type", "string")),
                "choices": [str(choice) for choice in offered_values(about)],
                "value": ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value),
                "on": value is True,
                "required": isinstance(required, list | tuple) and name in required,
            }
        )
    return fields
