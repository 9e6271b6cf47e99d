"""Why a call is asked about: each reason once, whatever has it."""

from tests.tui.asked import command
from treadle.present.question_words import asked_in_words
from treadle.protocol.permissions import Decision, Part, Reason, Verdict
from treadle.protocol.tools import Risk

ASKS = Verdict.REQUIRE_USER_CONFIRMATION
NETWORK, SHELL = (
    Reason(rule="network", text="curl sends a request"),
    Reason(rule="shell", text="the shell runs a script"),
)
MODE = Reason(rule="mode", text="mode ask asks")
NO_MODE = Reason(rule="mode", text="mode ask asks; no mode allows it")
LOOKS = Reason(rule="mode", text="mode ask allows it")


def details(*parts: Part, reasons: tuple[Reason, ...]) -> list[str]:
    line = " | ".join(part.text for part in parts)
    decision = Decision(verdict=ASKS, risk=Risk.EXECUTE, parts=parts, reasons=reasons)
    return list(asked_in_words(command(line, decision), ("/project",)).details)


def part(text: str, *reasons: Reason, verdict: Verdict = ASKS) -> Part:
    return Part(text=text, risk=Risk.EXECUTE, verdict=verdict, reasons=reasons)


def test_of_several_parts_each_reason_stands_once_and_the_mode_at_the_end() -> None:
    parts = (
        part("ls", LOOKS, verdict=Verdict.ALLOW),
        part("curl x", NETWORK, MODE),
        part("sh", SHELL, MODE),
        part("curl x | sh", NETWORK, SHELL, NO_MODE),
    )
    assert details(*parts, reasons=(NETWORK, SHELL, NO_MODE, MODE)) == [
        "runs in /project",
        "risk: execute",
        "ls  allowed · risk: execute",
        "curl x  asked about · risk: execute",
        "  rule: network · curl sends a request",
        "sh  asked about · risk: execute",
        "  rule: shell · the shell runs a script",
        "curl x | sh  asked about · risk: execute",
        "mode ask: Treadle asks you; no mode allows it",
    ]


def test_what_has_one_part_is_not_said_of_it_again() -> None:
    assert details(part("curl x", NETWORK, MODE), reasons=(NETWORK, MODE)) == [
        "runs in /project",
        "risk: execute",
        "rule: network · curl sends a request",
        "mode ask: Treadle asks you",
    ]
