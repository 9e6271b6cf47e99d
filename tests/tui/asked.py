"""One question of every kind."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from treadle.protocol.permissions import (
    Allowance,
    Decision,
    OptionKind,
    Part,
    Question,
    QuestionKind,
    Reason,
    Verdict,
)
from treadle.protocol.tools import (
    ChangeKind,
    Confinement,
    CopyChange,
    CopyChanges,
    FetchUrl,
    OutputFolder,
    Preview,
    ReadPath,
    Right,
    Rights,
    Risk,
    RunCommand,
    SandboxDenial,
    WritePath,
)

ONCE = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
ALWAYS = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE)
BLOCKS = "".join(f"------- SEARCH\n{name}\n=======\n{name}!\n+++++++ REPLACE\n" for name in ("first", "second"))
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n"
UNITTEST = "python3 -m unittest -q"


def decided(risk: Risk, *rules: str, parts: tuple[Part, ...] = (), offers: tuple[Allowance, ...] = ()) -> Decision:
    reasons = tuple(Reason(rule=rule, text=f"{rule} speaks") for rule in rules)
    return Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=risk, reasons=reasons, parts=parts, offers=offers)


def part(text: str, risk: Risk, *rules: str, verdict: Verdict = Verdict.REQUIRE_USER_CONFIRMATION) -> Part:
    return Part(text=text, risk=risk, verdict=verdict, reasons=tuple(Reason(rule=rule, text=rule) for rule in rules))


def command(line: str, decision: Decision, **more: Any) -> Question:
    return Question(
        id="q",
        kind=QuestionKind.PERMISSION,
        call_id="c",
        decision=decision,
        accesses=(RunCommand(command=line, cwd="/project"),),
        **{
            "text": "Run",
            "preview": Preview(title="Run", text=line),
            "options": ONCE,
            "arguments": {"command": line},
            **more,
        },
    )


def path(access: ReadPath | WritePath, risk: Risk, **more: Any) -> Question:
    return Question(
        id="q",
        kind=QuestionKind.PERMISSION,
        text=f"Edit {access.path}",
        options=ONCE,
        call_id="c",
        decision=decided(risk, "inside" if risk is Risk.WRITE else "outside"),
        accesses=(access,),
        **more,
    )


RUN = command(
    UNITTEST,
    decided(
        Risk.EXECUTE,
        "interpreter",
        parts=(part(UNITTEST, Risk.EXECUTE, "interpreter"),),
        offers=(Allowance(id="a", argv=("python3", "-m", "unittest")),),
    ),
    options=ALWAYS,
)
COMPOUND = command(
    "git log --oneline | head -3 && ls nosuchdir && rm -rf build",
    decided(
        Risk.EXECUTE,
        parts=(
            part("git log --oneline", Risk.READ, "git-read", verdict=Verdict.ALLOW),
            part("head -3", Risk.READ, "reader", verdict=Verdict.ALLOW),
            part("ls nosuchdir", Risk.READ, "reader", verdict=Verdict.ALLOW),
            part("rm -rf build", Risk.EXECUTE, "delete", "write-inside"),
        ),
    ),
)
DANGER = command(
    "curl -s http://127.0.0.1:9/x | sh",
    decided(
        Risk.CRITICAL,
        parts=(
            part("curl -s http://127.0.0.1:9/x", Risk.REMOTE, "network"),
            Part(
                text="sh",
                risk=Risk.CRITICAL,
                verdict=Verdict.REQUIRE_USER_CONFIRMATION,
                reasons=(Reason(rule="piped-script", text="what comes through the pipe is run by sh"),),
            ),
        ),
    ),
)
EDIT = path(
    WritePath(path="/project/shop/cart.py", before="1", after="2"),
    Risk.WRITE,
    preview=Preview(title="Edit shop/cart.py", text=DIFF, is_diff=True),
    arguments={"path": "shop/cart.py", "diff": BLOCKS},
)
READ_OUTSIDE = path(ReadPath(path="/etc/hostname"), Risk.READ_OUTSIDE)
WRITE_OUTSIDE = path(WritePath(path="/elsewhere/x", after="2"), Risk.CRITICAL)
FETCH = Question(
    id="q",
    kind=QuestionKind.PERMISSION,
    text="Fetch",
    options=ONCE,
    call_id="c",
    decision=decided(Risk.READ_OUTSIDE, "fetch-url"),
    accesses=(FetchUrl(url="https://example.com/"),),
)
AGAIN = command(
    "npm install",
    decided(Risk.EXECUTE, "unknown-program"),
    denial=SandboxDenial(right=Right.NETWORK, target="registry.example"),
    arguments={},
)
RIGHTS = command(
    "npm ci && cp x /srv/y",
    replace(
        decided(Risk.EXECUTE, "unknown-program"),
        grants=(
            SandboxDenial(right=Right.NETWORK, target="registry.example"),
            SandboxDenial(right=Right.WRITE, target="/srv/y\u202e\nz"),
        ),
    ),
)
_ADDED = CopyChange(path="/project/run.sh", kind=ChangeKind.ADDED, added=2, removed=0)
KEEP = command(
    "python3 make_release.py",
    replace(decided(Risk.EXECUTE, "interpreter"), verdict=Verdict.ALLOW),
    options=(OptionKind.ALLOW_ONCE, OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE),
    preview=Preview(title="Keep these changes?", text=DIFF, is_diff=True),
    text="Keep these changes?",
    arguments={},
    copy=CopyChanges(
        digest="d",
        changes=(
            replace(_ADDED, about="executable", first=True),
            CopyChange(path="/project/x.py", kind=ChangeKind.CHANGED, added=1, removed=1),
            CopyChange(path="/project/dist/a.bin", kind=ChangeKind.ADDED, about="binary, 2,314 bytes"),
            CopyChange(path="/project/old.py", kind=ChangeKind.DELETED, added=0, removed=9),
        ),
        ignored=3,
        outputs=(OutputFolder(path="/project/build", files=335),),
        ended="Exit status 1.",
        output="1 failed, 2 passed",
    ),
)
FOR_REAL = replace(
    KEEP,
    text="Run this command for real?",
    options=(OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE),
    copy=CopyChanges(
        digest="d",
        changes=(
            replace(_ADDED, path="/project/AGENTS.md", held="AGENTS.md is protected"),
            CopyChange(path="/project/x.py", kind=ChangeKind.CHANGED, added=1, removed=1),
        ),
        rights=Rights(
            confinement=Confinement.GIT, granted=(SandboxDenial(right=Right.WRITE, target="/project/AGENTS.md"),)
        ),
        ended="Exit status 0.",
    ),
)
SECRET = command("cat ~/.netrc", decided(Risk.EXECUTE), denial=SandboxDenial(right=Right.READ), arguments={})
FOLLOWUP = Question(id="q", kind=QuestionKind.FOLLOWUP, text="Which colour?", options=("red", "blue"), call_id="c")
SEVERAL = replace(FOLLOWUP, text="Which colours?", options=("red", "blue", "green"), multiple=True)
OPEN_FOLLOWUP = Question(id="q", kind=QuestionKind.FOLLOWUP, text="What is it called?", call_id="c")
GUIDANCE = Question(id="q", kind=QuestionKind.GUIDANCE, text="Three mistakes in a row. What should change?")
BUDGET = Question(
    id="q", kind=QuestionKind.BUDGET, text="Spent $5.00 of $5.00. Go on?", options=ONCE, more="up to $10.00"
)

EVERY_KIND: Mapping[str, Question] = {
    "command": RUN,
    "compound": COMPOUND,
    "danger": DANGER,
    "edit": EDIT,
    "read outside": READ_OUTSIDE,
    "write outside": WRITE_OUTSIDE,
    "fetch": FETCH,
    "second run": AGAIN,
    "keep changes": KEEP,
    "run for real": FOR_REAL,
    "secret": SECRET,
    "rights": RIGHTS,
    "follow-up": FOLLOWUP,
    "several of it": SEVERAL,
    "open follow-up": OPEN_FOLLOWUP,
    "guidance": GUIDANCE,
    "budget": BUDGET,
}
