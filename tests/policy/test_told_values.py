"""What the policy tells of a value without running anything is what bash makes of it."""

import shlex
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.policy.marks import UNKNOWN
from treadle.policy.shell.expand import Variables, printed, trimmed
from treadle.policy.shell.shell_parser import parse
from treadle.policy.shell.syntax import Simple, Substitution

_TEXTS = st.text(alphabet="ab.e/X \\n%s0-x1", max_size=6)
_FORMS = st.text(alphabet="a.%sbn\\x41-0 d", max_size=6)
_WORDS = st.one_of(
    st.lists(_TEXTS, max_size=4).map(lambda words: ["echo", *words]),
    st.tuples(_FORMS, st.lists(_TEXTS, max_size=4)).map(lambda both: ["printf", both[0], *both[1]]),
)
_OPERATORS = st.sampled_from(["#", "##", "%", "%%", "/", "//", "^", "^^", ",", ",,", ":"])
_OPERANDS = st.one_of(
    st.just(""), st.text(alphabet="ab./X", max_size=4), st.from_regex(r"[0-4](:[0-4])?", fullmatch=True)
)


def _bash(script: str) -> list[str]:
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.split("\1")[:-1]


def _told(line: str) -> str:
    (command,) = parse(f"echo {line.replace(' 2>/dev/null', '')}").pipelines[0].commands
    assert isinstance(command, Simple)
    (segment,) = command.words[1].segments
    assert isinstance(segment, Substitution)
    return printed(segment, Variables("/home/user"))


@settings(max_examples=8)
@given(st.lists(_WORDS, min_size=40, max_size=60))
def test_what_is_told_of_echo_and_printf_is_what_they_print(commands: list[list[str]]) -> None:
    lines = [f"$({shlex.join(words)} 2>/dev/null)" for words in commands]
    told = [(line, text) for line in lines if (text := _told(line)) != UNKNOWN]
    script = "\n".join(f"x={line}; printf '%s\\1' \"$x\"" for line, _ in told)
    assert [text for _, text in told] == _bash(script)


@settings(max_examples=8)
@given(st.lists(st.tuples(_OPERATORS, st.text(alphabet="aabbeX./", max_size=8), _OPERANDS), min_size=40, max_size=60))
def test_what_is_told_of_an_expansion_is_what_it_gives(cases: list[tuple[str, str, str]]) -> None:
    told = [(case, text) for case in cases if (text := trimmed(*case)) != UNKNOWN]
    script = "\n".join(
        f"x={shlex.quote(value)}; printf '%s\\1' \"${{x{operator}{operand}}}\""
        for (operator, value, operand), _ in told
    )
    assert [text for _, text in told] == _bash(script)
