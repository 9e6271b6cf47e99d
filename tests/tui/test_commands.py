import pytest

from treadle.protocol.events import Delivery
from treadle.protocol.permissions import Mode
from treadle.tui.commands import (
    HELP,
    ChooseModel,
    ChooseSession,
    DropPrompt,
    EditPrompt,
    InputCommand,
    ListQueue,
    Quit,
    SendPrompt,
    ShowHelp,
    ShowTrust,
    UseMode,
    UseModel,
    Wrong,
    as_table,
    next_mode,
    parse_input,
)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("  do it\n", SendPrompt("  do it\n", Delivery.QUEUE)),
        (" /literal", SendPrompt(" /literal", Delivery.QUEUE)),
        ("/steer  left ", SendPrompt("left", Delivery.STEER)),
        ("/queue", ListQueue()),
        ("/drop 2", DropPrompt(2)),
        ("/edit 1", EditPrompt(1)),
        ("/mode full", UseMode(Mode.FULL)),
        ("/model a/b", UseModel("a/b")),
        ("/model", ChooseModel()),
        ("/resume", ChooseSession()),
        ("/resume cart total", ChooseSession("cart total")),
        ("/help", ShowHelp()),
        ("/trust", ShowTrust()),
        ("/quit", Quit()),
    ],
)
def test_a_line_means_its_command(line: str, command: InputCommand) -> None:
    assert parse_input(line) == command


@pytest.mark.parametrize("line", ["/", "/nope", "/drop", "/drop 0", "/drop x", "/edit -1", "/mode loud", "/steer"])
def test_a_wrong_command_says_what_would_be_right(line: str) -> None:
    command = parse_input(line)
    assert isinstance(command, Wrong)
    assert "/" in command.text


def test_ctrl_s_steers() -> None:
    assert parse_input("left", steer=True) == SendPrompt("left", Delivery.STEER)


def test_the_cycle_of_modes_never_reaches_the_wide_ones() -> None:
    assert [next_mode(mode) for mode in Mode] == [Mode.ASK, Mode.EDITS, Mode.PLAN, Mode.ASK, Mode.ASK]


def test_every_listed_command_is_known() -> None:
    for name, _ in HELP:
        command = parse_input(name.split()[0])
        assert not isinstance(command, Wrong) or "There is no" not in command.text


@pytest.mark.parametrize("path", ["/etc/hosts is wrong", "/ 3", "/usr/bin/env"])
def test_a_path_is_no_command(path: str) -> None:
    assert parse_input(path) == SendPrompt(path, Delivery.QUEUE)


def test_a_refused_command_names_the_nearest() -> None:
    command = parse_input("/qiut")
    assert isinstance(command, Wrong)
    assert command.text == "There is no /qiut. Did you mean /quit?"


def test_a_table_has_two_columns() -> None:
    assert as_table((("a", "one"), ("long", "two"))) == "a     one\nlong  two"
    assert as_table(()) == ""
