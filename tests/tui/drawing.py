"""Every element of the app in its states: what goes to the scrollback, what moves, and the rows around the input."""

from collections.abc import Iterator

from msgspec.structs import replace

from tests.tui.asked import COMPOUND, DANGER, EDIT, GUIDANCE, RUN
from treadle.present.context_use import ContextUse
from treadle.present.items import (
    CallItem,
    ChecklistItem,
    NoteItem,
    Placed,
    ProblemItem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
    WritingItem,
)
from treadle.present.spending_words import Spending
from treadle.present.view import Retry, SessionView
from treadle.protocol.messages import Text
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import CallChanged, CallStatus, Phase, QueuedPrompt, TurnOutcome, TurnStop
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import FileChange, Outcome, Preview, ToolCall, ToolKind, result_text
from treadle.protocol.usage import Usage
from treadle.tui.paint.lines import Line, line
from treadle.tui.paint.printed_items import (
    CallLine,
    ContextItem,
    DiffItem,
    EnteredCommand,
    Greeting,
    LivingItem,
    PrintedItem,
    ReadsLine,
)
from treadle.tui.paint.theme import Signs
from treadle.tui.question.asked import Asking, ask, change, comment, confirm, keep_words, move
from treadle.tui.session.bottom import BottomState, above_rule, placeholder, rule, status


def called(
    kind: ToolKind,
    preview: Preview,
    outcome: Outcome = Outcome.OK,
    text: str = "",
    *,
    answer: str = "",
    seconds: float | None = None,
    diff: str = "",
) -> CallLine:
    """A call that has ended with this text for the model."""
    changed = CallChanged(
        call=ToolCall(id="c", name="x", arguments={}),
        kind=kind,
        status=CallStatus.FINISHED,
        preview=preview,
        result=result_text(outcome, text),
    )
    return CallLine(CallItem(changed, seconds=seconds), answer, diff)


def read(path: str, lines: int = 5) -> CallLine:
    return called(ToolKind.READ, Preview(title=f"Read {path}"), text="line\n" * lines)


def ran(
    command: str,
    outcome: Outcome = Outcome.OK,
    *,
    output: str = "",
    status: int = 0,
    answer: str = "",
    seconds: float | None = None,
) -> CallLine:
    shown = outcome in (Outcome.OK, Outcome.FAILED)
    text = f"Exit status {status}.\n{output or '(no output)'}" if shown and (output or status) else output
    return called(ToolKind.EXECUTE, Preview(title="Run", text=command), outcome, text, answer=answer, seconds=seconds)


DIFF = """--- a/shop/cart.py
+++ b/shop/cart.py
@@ -21,5 +21,7 @@ def total
         total = 0.0
         for item in self.items:
-            total += item.price
+            if item.count < 0:
+                raise ValueError(f"{item.name}: the count must not be negative, and it is not allowed to be {item}")
+            total += item.price * item.count
         return round(total, 2)
         # the end
@@ -81 +83 @@ class Line
-    old_name = 1
+    new_name = 1
\\ No newline at end of file
"""
LONG_DIFF = "--- a/x\n+++ b/x\n@@ -0,0 +1,92 @@\n" + "".join(f"+line {number}\n" for number in range(92))
CHANGES = (FileChange(path="shop/cart.py", before="", after="1", added=3, removed=1),)
OUTPUT = "".join(f"building module {number} of 40\n" for number in range(1, 41))
MARKDOWN = """# Heading

The cart has **two** methods that *matter*, `total()` and `discount()`. See [the manual](https://example.com/a).

> The price is the price of one.

- one
  - below it

```python
def total(self) -> float:
    return sum(self.prices)  # all
```

| name | where |
|---|---|
| a_long_identifier_of_a_function | src/a/long/path/to/a/file.py |

---
"""
TOUR: tuple[PrintedItem, ...] = (
    Greeting("0.1.0", "anthropic/claude-sonnet-4-5", "ask", "~/shop", "master"),
    SaidItem("Fix the total of the cart, it ignores the count"),
    ThoughtItem("hm", seconds=3.0),
    ProseItem(MARKDOWN),
    ThoughtItem("hm"),
    ReadsLine((read("shop/cart.py", 27), read("tests/test_cart.py", 12))),
    called(ToolKind.SEARCH, Preview(title="Search", text="def total"), text="a.py\n1: def total"),
    DiffItem(DIFF),
    called(ToolKind.EDIT, Preview(title="Edit shop/cart.py (+3 -1)"), answer="you allowed it"),
    ran("python3 -m unittest -q", output="Ran 3 tests in 0.001s\n\nOK\n", seconds=0.4, answer="allowed this session"),
    ran("npm run build", Outcome.FAILED, status=2, output=OUTPUT, seconds=8.0),
    called(
        ToolKind.EDIT, Preview(title="Edit shop/cart.py"), Outcome.REJECTED, answer="you said no: keep the old name"
    ),
    ran("./slow.sh 16", Outcome.INTERRUPTED, seconds=6.0),
    ran("cat <<EOF\none\ntwo\nEOF"),
    *(ran("x", outcome) for outcome in (Outcome.DENIED, Outcome.INVALID, Outcome.SKIPPED, Outcome.UNKNOWN)),
    NoteItem("Allowed this session: python3 -m unittest · /approvals"),
    NoteItem("There is no /moo.\nDid you mean /mode?", warns=True),
    ChecklistItem("- [x] Read the code\n- [x] Fix the total\n  - [x] Test it\n"),
    ProblemItem(
        "Anthropic refused the API key (401).",
        "invalid x-api-key (HTTP 401)",
        "treadle login anthropic, or /model for another provider.",
    ),
    TurnItem(
        TurnOutcome(
            stop=TurnStop.END_TURN,
            steps=6,
            cost=0.0912,
            changes=CHANGES,
            exact=True,
            usage=Usage(input_tokens=27_000, output_tokens=200),
        ),
        CHANGES,
        44.0,
        waited=41.0,
    ),
    EnteredCommand("/queue"),
    SaidItem("\n".join(f"line {number}" for number in range(26))),
    ContextItem(ContextUse(groups=(2_300, 5_100, 0, 900, 41_000), window=200_000)),
    ContextItem(ContextUse(groups=(2_300, 5_100, 40, 0, 0))),
    DiffItem(LONG_DIFF),
    TurnItem(TurnOutcome(stop=TurnStop.CANCELLED, steps=1, cost=0.02, usage=Usage(estimated=True)), seconds=4.0),
)
"""What a session leaves in the scrollback."""

TODO = "- [x] Look\n- [x] Think\n- [ ] Fix the total\n- [ ] Test the discount\n"
LONG_TODO = "".join(f"- [{'x' if number < 3 else ' '}] Thing {number}\n" for number in range(12))


def running(command: str) -> CallChanged:
    return CallChanged(
        call=ToolCall(id="c", name="execute_command", arguments={}),
        kind=ToolKind.EXECUTE,
        status=CallStatus.RUNNING,
        preview=Preview(title="Run", text=command),
    )


SLOW = running("./slow.sh 16")
EDITED = "------- SEARCH\n    total += item.price\n=======\n    total += item.price * item.count\n+++++++ REPLACE\n"
LIVING: dict[str, tuple[LivingItem, ...]] = {
    "thinking": (ThoughtItem("I look at it.\nThe total ignores\nthe count of the item.", growing=True),),
    "answer that grows": (ProseItem("The cart has **two** methods\n- one", growing=True),),
    "edit that is written": (
        WritingItem(
            index=0, tool="replace_in_file", first="path", argument="shop/cart.py", parameter="diff", text=EDITED
        ),
    ),
    "running": (CallItem(SLOW, output=OUTPUT, since=10.0),),
    "reads so far": (ReadsLine((read("shop/cart.py", 27), read("README.md", 3))),),
}
"""What still changes, above the rows around the input."""


def waiting(*texts: str) -> tuple[QueuedPrompt, ...]:
    return tuple(QueuedPrompt(id=text, content=(Text(text=text),)) for text in texts)


WINDOW = 200_000
IDLE = SessionView(model="anthropic/claude-sonnet-4-5")
WORKING = SessionView(
    phase=Phase.EXECUTING_TOOL,
    model="anthropic/claude-sonnet-4-5",
    active=True,
    started=100.0,
    since=150.0,
    received=205,
    speed=31.2,
    step=5,
    spending=Spending(ended=0.02),
    queue=waiting("also update the changelog", "and the README"),
    calls=(Placed(position=0, version=1, seq=1, item=CallItem(SLOW, since=152.0)),),
    checklist=TODO,
    added=3,
    removed=1,
)
ERROR = ModelError(kind=ErrorKind.OVERLOADED, message="Too busy.")
AROUND = BottomState(now=164.0, tokens=4_230, window=WINDOW)
MANY = waiting("a", "b", "c", "d", "e")
STATES = {
    "idle": (IDLE, BottomState(window=WINDOW, hint="? for keys", branch="master")),
    "working": (
        WORKING,
        replace(AROUND, hint="? for keys", branch="master", frame=2),
    ),
    "thinks": (
        replace(WORKING, phase=Phase.AWAITING_LLM_RESPONSE, calls=(), since=161.0, queue=MANY),
        replace(AROUND, hint="? for keys", frame=3),
    ),
    "to-do": (
        replace(WORKING, queue=(WORKING.queue[0], replace(WORKING.queue[1], steer=True))),
        replace(AROUND, unfolded=True),
    ),
    "long to-do": (
        replace(WORKING, checklist=LONG_TODO, queue=()),
        replace(AROUND, unfolded=True),
    ),
    "retry": (
        replace(WORKING, calls=(), retry=Retry(ERROR, 168.0, 2, 5)),
        replace(AROUND, hint="? for keys", frame=2),
    ),
    "asked": (
        replace(WORKING, questions=(RUN,), asking=160.0, phase=Phase.AWAITING_USER_CONFIRMATION),
        replace(AROUND, hint="tab to answer"),
    ),
    "held": (
        IDLE,
        BottomState(
            tokens=151_000, window=WINDOW, held=("also update the changelog", "b", "c", "d"), hint="? for keys"
        ),
    ),
    "full": (
        replace(IDLE, mode=Mode.FULL),
        BottomState(tokens=190_000, window=WINDOW, flash="Mode is now full.", hint="? for keys"),
    ),
    "plan": (
        replace(IDLE, mode=Mode.PLAN, spending=Spending(ended=0.004)),
        BottomState(hint="? for keys"),
    ),
}
"""The rows around the input."""


def below(view: SessionView, around: BottomState, width: int, signs: Signs) -> list[Line]:
    """Lay out the rows around the input, and the empty input itself."""
    rows = [*above_rule(view, around, width, signs), rule(view, width, signs)]
    empty = line(("accent", f"{signs.prompt} "), ("dim", placeholder(view, around, width)))
    return [*rows, empty, status(view, around, width, signs)]


def stages() -> Iterator[tuple[str, Asking]]:
    """The stages of a question after its list."""
    for name, asking in (
        ("block", confirm(move(ask(EDIT), 2))),
        ("rule", confirm(move(ask(RUN), 2))),
        ("sure", confirm(move(ask(DANGER), 1))),
        ("words", confirm(ask(GUIDANCE))),
        ("comment", comment(ask(RUN))),
        ("instead", comment(move(ask(RUN), 3))),
        ("commented", keep_words(comment(ask(RUN)), "be quick")),
        ("changed", change(ask(RUN), "command", "python3 -m unittest")),
        ("details", replace(ask(COMPOUND), details=True)),
    ):
        assert isinstance(asking, Asking)
        yield name, asking
