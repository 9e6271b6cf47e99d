"""What a person reads of a question before the answer: what would happen, one line of why, and the details."""

import os
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.asked_parts import AskedPart, asked_part
from treadle.present.child_words import asker_words
from treadle.present.escape import exact, exact_line, printable
from treadle.present.figures import diff_figures, shown_figures
from treadle.present.forms import form_lines
from treadle.present.git_titles import git_title
from treadle.present.question_details import details_of_question
from treadle.present.trial_words import changes_of, figures_of
from treadle.present.words import counted
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Decision, Question, QuestionKind, Reason, Verdict
from treadle.protocol.reasons import PartEffect, words_of_decision
from treadle.protocol.tools import (
    Access,
    Confinement,
    CopyChanges,
    FetchUrl,
    ReadPath,
    Right,
    Risk,
    RunCommand,
    SandboxDenial,
    WritePath,
)

_COUNTED = regex(r" \(\+\d+ -\d+\)$")

_IN_TITLE = frozenset({"inside", ""})
"""Rules of which the title says what the headline would: that a file of the project is changed, or nothing."""


class QuestionStyle(Enum):
    """How a question is shown; danger begins with no."""

    USUAL = "usual"
    DANGER = "danger"


class QuestionWords(Struct, frozen=True, kw_only=True):
    """A question in words. `text` is what it is about, such as a command, exactly; `parts` those of several that do not
    only read, `every` all in their order; `effects` say what is asked about, also of one.

    `headline` is the reason of the decision that every surface gives, `whole_headline` has the commands that would
    change it, too. `figures` are the lines that are added and removed, `counted` says them. `rights` says which rights
    beyond the sandbox a yes gives. `why` are further sentences, of which `others` are the other reasons of something
    dangerous; `details` are for who wants to know more. All is harmless.
    """

    title: str
    style: QuestionStyle = QuestionStyle.USUAL
    headline: str = ""
    whole_headline: str = ""
    counted: str = ""
    figures: tuple[int, int] | None = None
    text: str = ""
    parts: tuple[AskedPart, ...] = ()
    every: tuple[AskedPart, ...] = ()
    effects: frozenset[PartEffect] = frozenset()
    rights: str = ""
    why: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


def question_style(question: Question) -> QuestionStyle:
    """Say how a question is shown, by what a yes gives."""
    return QuestionStyle.DANGER if question.dangerous else QuestionStyle.USUAL


def is_edit(question: Question) -> bool:
    """Whether the call writes files and does nothing else."""
    paths = all(isinstance(access, WritePath | ReadPath) for access in question.accesses)
    return paths and any(isinstance(access, WritePath) for access in question.accesses)


def once(question: Question) -> str:
    """Say yes to something dangerous."""
    runs = any(isinstance(access, RunCommand) for access in question.accesses)
    writes = any(isinstance(access, WritePath) for access in question.accesses)
    return "Yes, run it once" if runs else "Yes, write it once" if writes else "Yes, once"


def asked_in_words(question: Question, roots: Sequence[str]) -> QuestionWords:
    """Put a question as asked in a workspace into words; of a subagent's it says whose it is."""
    words = _in_words(question, roots)
    if not question.child:
        return words
    beside: Sequence[str] = ()
    if _brings_in(question):
        title, *beside = printable(question.text).splitlines()
        words = replace(words, title=title)
    return replace(words, why=(asker_words(question.agent, question.task), *beside, *words.why))


def _brings_in(question: Question) -> bool:
    """Whether changes of a subagent are to come into the workspace; below its title the text has what stays out."""
    return question.kind is QuestionKind.PERMISSION and bool(question.child) and not question.child_call


def _in_words(question: Question, roots: Sequence[str]) -> QuestionWords:
    match question.kind:
        case QuestionKind.PERMISSION if question.denial is not None:
            return _stopped(question, question.denial)
        case QuestionKind.PERMISSION if question.copy is not None:
            return _keeping(question, question.copy, roots)
        case QuestionKind.PERMISSION:
            return _permission(question, roots)
        case QuestionKind.SUMMARY:
            text = "" if question.preview is None else question.preview.text
            return QuestionWords(title=printable(question.text), text=printable(text).strip("\n"))
        case QuestionKind.ELICITATION:
            wanted = [question.url] if question.url else form_lines(question.form, question.arguments)
            return QuestionWords(title=printable(question.text), text=printable("\n".join(wanted)))
        case QuestionKind.FOLLOWUP | QuestionKind.GUIDANCE | QuestionKind.BUDGET:
            title, _, rest = printable(question.text).strip().partition("\n")
            return QuestionWords(title=title, text=rest.strip("\n"))


def in_short(question: Question) -> str:
    """Say what a question is about in a few words, to follow a colon and to end with a question mark."""
    match question.kind:
        case QuestionKind.PERMISSION if question.copy is not None and not question.copy.whole:
            return f"{_short(question.accesses[-1], question)} for real"
        case QuestionKind.PERMISSION if question.copy is not None:
            return f"keep {counted(len(question.copy.changes), 'change')} of {_short(question.accesses[-1], question)}"
        case QuestionKind.PERMISSION if _brings_in(question):
            title = printable(question.text).splitlines()[0].rstrip("?")
            return title[:1].lower() + title[1:]
        case QuestionKind.PERMISSION if question.accesses:
            return _short(question.accesses[-1], question)
        case QuestionKind.PERMISSION:
            return exact_line(question.text)
        case _:
            return printable(" ".join(question.text.split())).rstrip("?")


def asked_in_line(question: Question) -> str:
    """Say without its question mark what a permission was for that no call of the conversation shows."""
    if question.child and not question.child_call:
        return printable(question.text).partition("\n")[0].rstrip("?")
    again = " once more with more rights" if question.denial is not None and question.accesses else ""
    about = f"{_COUNTED.sub('', in_short(question))}{again}"
    whose = f"Subagent {printable(question.agent)}".rstrip()
    return f"{whose}: {about}" if question.child else f"{about[:1].upper()}{about[1:]}"


def _short(access: Access, question: Question) -> str:
    match access:
        case RunCommand(command=command):
            return f"run {exact_line(command)}"
        case FetchUrl(url=url):
            return f"fetch {exact_line(url)}"
        case ReadPath() | WritePath():
            return exact_line(question.text[:1].lower() + question.text[1:])


def _stopped(question: Question, denial: SandboxDenial) -> QuestionWords:
    base = _permission(question, ())
    target = exact_line(denial.target)
    title, missing = {
        Right.NETWORK: ("Run it again with network access?", f"tried to reach {target or 'the network'}"),
        Right.WRITE: ("Run it again with the right to write?", f"tried to write {target or 'outside this project'}"),
        Right.READ: ("Run it again with the right to read a secret?", f"tried to read {target or 'a secret'}"),
        Right.UNSANDBOXED: ("Run it again without the sandbox?", "tried something that the sandbox does not allow"),
    }[denial.right]
    seen = f" {printable(denial.text)}" if denial.text else ""
    why = f"The command {missing}, and the sandbox stopped it.{seen}"
    if denial.by_output:
        why = f"Its own output says that the sandbox is in the way, which a program can print for any reason:{seen}"
    if denial.unrun:
        title, why = title.replace("again ", ""), f"The command did not run.{seen}."
    return QuestionWords(
        title=title,
        style=question_style(question),
        text=base.text,
        rights=base.rights,
        why=(why,),
        details=base.details,
    )


def _keeping(question: Question, copy: CopyChanges, roots: Sequence[str]) -> QuestionWords:
    """Ask whether what a command changed in its throw-away copy is applied, or else whether it runs for real."""
    base = _permission(question, roots)
    figures, rights = figures_of(copy), copy.rights if not copy.whole else None
    granted = [] if rights is None else list(map(_right, rights.granted))
    if rights is not None and rights.confinement is Confinement.GIT:
        granted.insert(0, "with the right to change the repository")
    unshown = [f"{exact_line(one.path)}: {printable(one.about)}" for one in copy.unshown] if question.more else []
    return QuestionWords(
        title=exact_line(question.text),
        style=question_style(question),
        counted="" if figures is None else shown_figures(*figures),
        figures=figures,
        text=base.text,
        rights=_runs(granted),
        why=(*unshown, *changes_of(copy, roots)),
        details=base.details,
    )


def _permission(question: Question, roots: Sequence[str]) -> QuestionWords:
    decision = question.decision or Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=Risk.NONE)
    style = question_style(question)
    title, text = _title(question, roots)
    words, preview = words_of_decision(decision), question.preview
    figures = diff_figures(preview.text) if preview is not None and preview.is_diff else None
    every = tuple(map(asked_part, decision.parts))
    parts = tuple(part for part in every if part.asked)
    others = tuple(map(printable, words.further)) if style is QuestionStyle.DANGER else ()
    return QuestionWords(
        title=title,
        style=style,
        headline="" if words.rule in _IN_TITLE else printable(words.headline),
        whole_headline="" if words.rule in _IN_TITLE else printable(words.whole_headline),
        counted="" if figures is None else shown_figures(*figures),
        figures=figures,
        text=text,
        parts=parts if len(every) > 1 else (),
        every=every if len(every) > 1 else (),
        effects=frozenset(part.effect for part in parts),
        rights=_rights(decision),
        why=(*_touched(question.accesses, roots, text), *others, *_reason_of_model(question.accesses)),
        others=others,
        details=tuple(details_of_question(question, decision)),
    )


def _title(question: Question, roots: Sequence[str]) -> tuple[str, str]:
    """Give the question, and the text that it is about."""
    preview = question.preview
    own = exact(preview.text).rstrip("\n") if preview is not None and not preview.is_diff else ""
    outside = _outermost(question.accesses, roots)
    match question.accesses:
        case (*_, RunCommand(command=command)):
            return _command_title(question), own or exact(command)
        case (FetchUrl() as access,):
            return "Fetch this address?", _sent(access)
        case (WritePath(),) if preview is not None and preview.title.startswith(_REMEMBERS):
            return f"{exact_line(preview.title)}?", own
        case _ if outside is not None:
            return f"{_OUTSIDE[_verb(outside)][0]} outside this project?", exact_line(outside.path)
        case (*_, WritePath()):
            return _edit_title(question, roots), own
        case _:
            return f"Allow this: {exact_line(question.text)}?", own


_REMEMBERS = "Remember "
"""How the title of a preview begins that says what is remembered, for whom, and what that costs (`new_rule`)."""

_OUTSIDE = {
    "list": ("List a folder", "Lists"),
    "read": ("Read a file", "Reads"),
    "write": ("Write a file", "Writes"),
    "delete": ("Delete a file", "Deletes"),
}


def _verb(access: ReadPath | WritePath) -> str:
    if isinstance(access, ReadPath):
        return "list" if access.listing else "read"
    return "delete" if access.delete else "write"


def _outermost(accesses: Sequence[Access], roots: Sequence[str]) -> ReadPath | WritePath | None:
    """Find a path outside the project; one that is written before one that is read."""
    paths = [access for access in accesses if isinstance(access, ReadPath | WritePath)]
    paths.sort(key=lambda access: isinstance(access, ReadPath))
    return next((access for access in paths if _outside(access.path, roots)), None)


def _sent(access: FetchUrl) -> str:
    return exact_line(access.url if access.method == "GET" else f"{access.method} {access.url}")


def _edit_title(question: Question, roots: Sequence[str]) -> str:
    """Say what an edit does to its file, or to how many."""
    written = {access.path: access for access in question.accesses if isinstance(access, WritePath)}
    if len(written) > 1:
        return f"Apply this edit to {len(written)} files?"
    (access,) = written.values()
    path = exact_line(access.path.removeprefix(f"{next(iter(roots), '')}/"))
    if access.delete:
        return f"Delete {path}?"
    # What no hash is known of may be there or not.
    return f"Create {path}?" if access.after and not access.before else f"Apply this edit to {path}?"


def _command_title(question: Question) -> str:
    decision = question.decision
    if git := git_title(decision):
        return git
    piped = decision is not None and any(reason.rule == "piped-script" for reason in _reasons(decision))
    network = decision is not None and any(reason.rule == "network" for reason in _reasons(decision))
    return "Run a script straight from the network?" if piped and network else "Run this command?"


def _reasons(decision: Decision) -> Iterator[Reason]:
    yield from decision.reasons
    for part in decision.parts:
        yield from part.reasons


def _rights(decision: Decision) -> str:
    """Say which rights beyond the sandbox a yes gives, in one line."""
    return _runs(list(dict.fromkeys(map(_right, decision.grants))))


def _runs(rights: Sequence[str]) -> str:
    *most, last = rights or [""]
    return f"Runs {', '.join(most)} and {last}." if most else f"Runs {last}." if last else ""


def _right(grant: SandboxDenial) -> str:
    target = exact_line(grant.target)
    return {
        # What is opened is the network, not the hosts that the command names.
        Right.NETWORK: "with network access",
        Right.WRITE: f"with the right to change {target or 'files outside this project'}",
        Right.READ: f"with the right to read {target or 'what the sandbox hides'}",
        Right.UNSANDBOXED: "without the sandbox",
    }[grant.right]


def _outside(path: str, roots: Sequence[str]) -> bool:
    return not any(Path(os.path.realpath(path)).is_relative_to(root) for root in roots)


def _reason_of_model(accesses: Sequence[Access]) -> Iterator[str]:
    """Give the reason that the model gives, in quotation marks that its words cannot end."""
    for access in accesses:
        if isinstance(access, RunCommand) and access.reason:
            said = exact_line(access.reason).translate({0x201C: '"', 0x201D: '"'})
            yield f"The model writes: \u201c{said}\u201d"


def _touched(accesses: Sequence[Access], roots: Sequence[str], shown: str) -> Iterator[str]:
    """Name what is touched outside the project and not shown yet, and where links lead."""
    for access in accesses:
        if isinstance(access, FetchUrl) and _sent(access) != shown:
            yield f"Sends {_sent(access)}."
        if isinstance(access, RunCommand) and roots and access.cwd not in roots:
            yield f"Runs in {exact_line(access.cwd.removeprefix(f'{roots[0]}/'))}."
        if not isinstance(access, ReadPath | WritePath) or not _outside(access.path, roots):
            continue
        path, resolved = exact_line(access.path), os.path.realpath(access.path)
        leads = "" if resolved == access.path else f" leads to {exact_line(resolved)}"
        if path != shown:
            leads = f", which{leads}" if leads else ""
            yield f"{_OUTSIDE[_verb(access)][1]} outside this project: {path}{leads}"
        elif leads:
            yield f"{path}{leads}"
