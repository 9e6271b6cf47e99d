"""What tools make of a known value is hidden too; what only looks like it stays."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.needed import require
from treadle.policy.secrets import Redactor, known_secrets

TOKEN = "tk_9fQx2LmZ7rB4vHs8Yw3K-pE5u"
REDACTOR = known_secrets({"MY_TOKEN": TOKEN})
COMMANDS = (
    "xxd", "xxd -p", "xxd -g1", "xxd -u -c 8", "xxd -e", "xxd -b -c 4 | cut -c1-9",
    "od", "od -c", "od -b", "od -x", "od -An -tx1", "od -tx1z", "od -tx4", "od -An -tx8", "od -tu1", "od -to4",
    "hexdump", "hexdump -C", "hexdump -c", "hexdump -b",
    "base64", "base32", "base32 -w 20", "tr a-z A-Z", "tr A-Z a-z", "sed 's/./& /g'", "fold -w1", "fold -w7",
    "sed 's/./&-/g'", "python3 -c 'import sys; print(\"\".join(f\"%{ord(c):02X}\" for c in input()))'",
    "python3 -c 'import sys; print(\"\".join(f\"%{ord(c):02x}\" for c in input()))'",
    "xxd -i", "python3 -c 'print(list(input()))'", "python3 -c 'print(list(input().encode()))'",
)  # fmt: skip


@pytest.mark.parametrize("before", ["", "x=", "export MY="])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_tool_makes_of_a_value_is_hidden(command: str, before: str) -> None:
    require(command.split(maxsplit=1)[0])
    made = subprocess.run(
        ["bash", "-c", command], input=f"{before}{TOKEN}\n", capture_output=True, text=True, check=True
    ).stdout
    shown = REDACTOR.redact(f"before\n{made}after\n")
    if "-b -c 4" not in command:
        assert "[hidden: MY_TOKEN]" in shown, made
    assert shown.startswith("before\n")
    assert shown.endswith("after\n")


@given(st.text("0123456789abcdefABCDEF \n|:.x-", max_size=400))
def test_other_dumps_stay_as_they_are(text: str) -> None:
    assert REDACTOR.redact(text) == Redactor().redact(text)


def test_a_value_of_words_is_not_looked_for_in_pieces() -> None:
    redactor = known_secrets({"APP_SECRET": "correct-horse-battery"})
    assert redactor.redact("Correct Horse Battery") == "Correct Horse Battery"


def test_of_a_dump_only_the_lines_with_the_value_are_hidden() -> None:
    dump = subprocess.run(
        ["od", "-An", "-v", "-tx1"], input="ab" * 32 + TOKEN + "cd" * 32, capture_output=True, text=True, check=True
    ).stdout
    shown = REDACTOR.redact(dump)
    assert "[hidden: MY_TOKEN]" in shown
    assert shown.count("61 62") == dump.count("61 62")
    assert shown.count("63 64") > dump.count("63 64") - 8
