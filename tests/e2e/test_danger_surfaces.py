"""What a yes gives decides how dangerous a question is, by whichever way it came, on every surface alike."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from msgspec.structs import replace

from tests.policy.views import HOME, ROOT, MemoryView, context
from tests.web.test_question_cards import html_of
from treadle.acp.client_questions import put_question
from treadle.app.security.op_effects import FROM_AFAR, Reach
from treadle.app.session.files.answer_effects import answer_effect
from treadle.engine.core.texts import asked, stopped_by_sandbox
from treadle.policy.decide import decide
from treadle.present.answer_rows import Act, answer_rows
from treadle.present.question_words import QuestionStyle, asked_in_words, question_style
from treadle.protocol.events import Answer
from treadle.protocol.permissions import Decision, Mode, OptionKind, Question, QuestionKind, Verdict
from treadle.protocol.tools import (
    Access,
    ChangeKind,
    Confinement,
    CopyChange,
    CopyChanges,
    ReadPath,
    Right,
    Rights,
    Risk,
    RunCommand,
    SandboxDenial,
    WritePath,
)
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.tui.question.asked import GivenAnswer, Stage, ask, confirm

BASHRC, KEY, BESIDE, AGENTS = f"{HOME}/.bashrc", f"{HOME}/.ssh/id_rsa", "/srv/beside/x", f"{ROOT}/AGENTS.md"
FILES = MemoryView(files={ROOT: None, HOME: None, "/srv/beside": None, BASHRC: "", KEY: "", AGENTS: "", BESIDE: ""})
PRINTED = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
RUN = RunCommand(command="sh x.sh", cwd=ROOT)
TRIED = Decision(verdict=Verdict.ALLOW, risk=Risk.EXECUTE, confinement=Confinement.WORK)


def judged(access: Access, mode: Mode = Mode.AUTO) -> Question:
    """The question before a call: as the policy finds it."""
    decision = decide(EXECUTE_COMMAND, {}, (access,), context(mode, confines=True, brokers=True, files=FILES))
    assert decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION, decision
    text, once = asked("Run", decision), (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
    return Question(
        id="q", kind=QuestionKind.PERMISSION, text=text, options=once, decision=decision, accesses=(access,)
    )


def before(line: str) -> Question:
    return judged(RunCommand(command=line, cwd=ROOT))


def wanted(*needs: str) -> Question:
    return judged(RunCommand(command="true", cwd=ROOT, needs=needs))


def after(denial: SandboxDenial) -> Question:
    """The question after a run that the sandbox stopped."""
    once = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
    text = stopped_by_sandbox(denial)
    return Question(
        id="q",
        kind=QuestionKind.PERMISSION,
        text=text,
        options=once,
        decision=TRIED,
        accesses=(RUN,),
        denial=denial,
    )


def tried(copy: CopyChanges) -> Question:
    """The question after a trial."""
    keep = (OptionKind.ALLOW_ONCE,) * copy.whole
    options = (*keep, OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE)
    return replace(after(LACKS["the workspace"]), text="Keep?", options=options, denial=None, copy=copy)


def changed(path: str, *granted: SandboxDenial, held: str = "", trouble: str = "") -> CopyChanges:
    change = CopyChange(path=path, kind=ChangeKind.CHANGED, held=held)
    rights = Rights(confinement=Confinement.WORK, granted=granted) if held or trouble else None
    return CopyChanges(changes=(change,), trouble=trouble, rights=rights)


LACKS = {
    "the workspace": SandboxDenial(right=Right.WRITE, target=ROOT, usual=True),
    "the network": SandboxDenial(right=Right.NETWORK, target="example.org"),
    "a place outside": SandboxDenial(right=Right.WRITE, target=BESIDE),
    "a file that runs later": SandboxDenial(right=Right.WRITE, target=BASHRC),
    "a control file": SandboxDenial(right=Right.WRITE, target=AGENTS, text="It changes AGENTS.md", unrun=True),
    "a secret": SandboxDenial(right=Right.READ, target=KEY),
    "a secret, with others": SandboxDenial(right=Right.WRITE, target=f"{ROOT}/a", also=(AGENTS,)),
    "no sandbox, as a socket": SandboxDenial(right=Right.UNSANDBOXED, text="/run/docker.sock: Permission denied"),
    "no sandbox, as it prints": SandboxDenial(right=Right.UNSANDBOXED, text=PRINTED),
    "no sandbox, by Landlock": SandboxDenial(right=Right.UNSANDBOXED, target=f"{ROOT}/new"),
}
USUAL = frozenset({"nothing more", "the workspace", "the network", "a host", "a value"})
"""What a yes gives that is not dangerous; all else is."""


def _cases() -> Iterator[tuple[str, str, Callable[[], Question]]]:
    """The kinds of questions, what a yes to each gives, and the question."""
    lines = {
        "nothing more": "git rm -q --cached a; true",
        "the network": "dig example.org",
        "a place outside": f"echo x > {BESIDE}",
        "a file that runs later": f"echo x >> {BASHRC}",
        "a control file": "echo x >> AGENTS.md",
        "a secret": f"cat {KEY}",
        "no sandbox": "git remote add o http://x",
        "no sandbox, for docker": "docker ps",
        "no sandbox, and another program's end": "git remote add o http://x; pkill -f sleep",
        "a socket": "curl --unix-socket /var/run/docker.sock http://x/",
    }
    yield "before", "nothing more", lambda: judged(RunCommand(command="git add a", cwd=ROOT), Mode.ASK)
    for gives, line in list(lines.items())[1:]:
        yield "before", gives, lambda line=line: before(line)  # type: ignore[misc]
    needs = {
        "nothing more": "git",
        "the network": "network:example.org",
        "a place outside": f"outside:{BESIDE}",
        "a file that runs later": f"outside:{BASHRC}",
        "a control file": f"outside:{AGENTS}",
        "no sandbox": "host",
    }
    for gives, need in needs.items():
        yield "asked for", gives, lambda need=need: wanted(need)  # type: ignore[misc]
    yield "tool", "nothing more", lambda: judged(WritePath(path=f"{ROOT}/a"), Mode.ASK)
    for gives, path in {"a place outside": BESIDE, "a file that runs later": BASHRC, "a control file": AGENTS}.items():
        yield "tool", gives, lambda path=path: judged(WritePath(path=path))  # type: ignore[misc]
    yield "tool", "a secret", lambda: judged(ReadPath(path=KEY))
    for gives, denial in LACKS.items():
        yield "after", gives, lambda denial=denial: after(denial)  # type: ignore[misc]
    yield "applied", "nothing more", lambda: tried(changed(f"{ROOT}/a"))
    yield "for real", "nothing more", lambda: tried(changed(f"{ROOT}/a", trouble="The copy is full."))
    yield "for real", "a control file", lambda: tried(changed(AGENTS, LACKS["a control file"], held="protected"))
    for name in ("objects/ab/cdef", "refs/heads/main", "logs/HEAD", "index", "HEAD", "ORIG_HEAD", "index.lock", ""):
        kept = f"{ROOT}/.git/{name}".rstrip("/")
        yield "for real", "nothing more", lambda kept=kept: tried(changed(kept, held="the repository"))  # type: ignore[misc]
    for name in ("hooks/x", "config", "info/attributes", "modules/m/config", "odd"):
        acts = f"{ROOT}/.git/{name}"
        yield "for real", "a file git runs", lambda acts=acts: tried(changed(acts, held="the repository"))  # type: ignore[misc]
    yield "for real", "a secret", lambda: tried(changed(KEY, LACKS["a secret"], held="it could not be read"))
    yield "in the middle", "a host", lambda: Question(id="q", kind=QuestionKind.ELICITATION, text="Connect to x.org?")
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    yield "in the middle", "a value", lambda: Question(id="q", kind=QuestionKind.ELICITATION, text="?", form=form)


CASES = [(*case, child) for case in _cases() for child in ("", "s2")]


@pytest.mark.parametrize(
    ("way", "gives", "make", "child"),
    CASES,
    ids=[f"{way}: {gives}{child and ', of a subagent'}" for way, gives, _, child in CASES],
)
def test_a_yes_is_as_dangerous_as_what_it_gives(way: str, gives: str, make: Callable[[], Question], child: str) -> None:
    question = replace(make(), child=child, agent="worker") if child else make()
    danger = gives not in USUAL
    assert (question.dangerous, question.risk is Risk.CRITICAL) == (danger, danger)
    words = asked_in_words(question, (ROOT,))
    assert words.style is question_style(question) is (QuestionStyle.DANGER if danger else QuestionStyle.USUAL)
    for option in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.RUN_FOR_REAL):
        effect = answer_effect(Answer(question_id="q", option=option), question)
        assert effect is (Reach.CONTROL if danger else Reach.WORK)
    assert answer_effect(Answer(question_id="q", option=OptionKind.REJECT_ONCE), question) in FROM_AFAR
    if question.kind is QuestionKind.PERMISSION:
        _begins_with_no(question, danger=danger)
        assert f"risk: {question.risk}" in words.details


def _begins_with_no(question: Question, *, danger: bool) -> None:
    """In the terminal its yes is typed, an editor is told so, and a device gets a card without a yes."""
    rows = answer_rows(question, Mode.AUTO)
    assert (rows[0].act is Act.REJECT) is danger
    assert not danger or not {Act.SESSION, Act.ALWAYS, Act.EDITS} & {row.act for row in rows}
    yes = next(at for at, row in enumerate(rows) if row.act in (Act.ALLOW, Act.FOR_REAL))
    given = confirm(replace(ask(question, Mode.AUTO), chosen=yes))
    assert isinstance(given, GivenAnswer) is not danger
    assert isinstance(given, GivenAnswer) or given.stage is Stage.SURE  # type: ignore[union-attr]
    put = put_question(question, (ROOT,), Mode.AUTO)
    assert put is not None
    about = (put.call.meta or {})["treadle"]
    assert (about.get("dangerous", False), put.choices[0].kind == "reject_once") == (danger, danger)

    def refused(op: object) -> Reach | None:
        effect = answer_effect(op, question) if isinstance(op, Answer) else Reach.WORK
        return None if effect in FROM_AFAR else effect

    card = html_of(question, Mode.AUTO, refused)
    assert ("Answer this on the computer" in card) is danger


def test_a_question_that_a_programs_output_brought_says_so() -> None:
    question = after(LACKS["no sandbox, as it prints"])
    for said in (question.text, *asked_in_words(question, (ROOT,)).why):
        assert "its own output says" in said.lower()
        assert "for any reason" in said
        assert PRINTED in said
    for gives in LACKS.keys() - {"no sandbox, as it prints", "no sandbox, as a socket"}:
        assert "own output" not in after(LACKS[gives]).text


def test_a_yes_to_what_was_dangerous_is_so_when_it_is_run_once_more() -> None:
    question = after(LACKS["the network"])
    again = replace(question, decision=replace(TRIED, risk=Risk.CRITICAL))
    assert (question.dangerous, again.dangerous) == (False, True)


HELD = {
    "pkill -f sleep": "program",
    "crontab x": "program",
    "gdb -p 1": "dangerous-form",
    "kill -9 -1": "kill",
    "reboot": "program",
    "PATH=. make": "variable",
    "tool -v /:/h": "reach",
    "cat x | sh": "piped-script",
    "iptables -F": "network-control",
}
"""Lines that a confinement keeps from harm, and the rule that says what that would be."""
OPENS = {
    "git remote add o http://x": set(HELD.values()),
    "docker ps": set(HELD.values()),
    "ssh h id": set(HELD.values()),
    "dig example.org": {"network-control"},
    "ls": set[str](),
}
"""Lines that bring a right for the whole line, and the rules whose harm nothing keeps from it then."""


FORMS = ("{0}; {1}", "{1}; {0}", "{0} && {1}", "if {0}; then {1}; fi")


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.EDITS, Mode.AUTO])
@pytest.mark.parametrize("other", OPENS)
@pytest.mark.parametrize("line", HELD)
def test_what_one_part_of_a_line_is_given_holds_no_other_part(line: str, other: str, mode: Mode) -> None:
    rule = HELD[line]
    opened = rule in OPENS[other]
    for form, brokers in product(FORMS, (False, True)):
        access = RunCommand(command=form.format(line, other), cwd=ROOT)
        decision = decide(EXECUTE_COMMAND, {}, (access,), context(mode, confines=True, brokers=brokers, files=FILES))
        (found,) = [part for part in decision.parts if any(reason.rule == rule for reason in part.reasons)]
        assert (found.risk is Risk.CRITICAL, decision.risk is Risk.CRITICAL) == (opened, opened), access
        if opened:
            assert found.verdict is Verdict.REQUIRE_USER_CONFIRMATION
            assert rule in {reason.rule for reason in decision.reasons}
            assert not any("confined" in reason.text for part in decision.parts for reason in part.reasons)


def test_text_from_outside_is_asked_about_each_host_that_a_right_opens() -> None:
    tainted = context(Mode.AUTO, confines=True, brokers=True, files=FILES, tainted=True)
    for line, asks in {"curl http://one.example/": False, "curl http://one.example/; dig two.example": True}.items():
        decision = decide(EXECUTE_COMMAND, {}, (RunCommand(command=line, cwd=ROOT),), tainted)
        told = [reason.text for part in decision.parts for reason in part.reasons if reason.rule == "taint"]
        assert any("one.example" in text for text in told) is asks
