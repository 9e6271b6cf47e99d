from typing import cast

import pytest

from treadle.app.security.trusting import SessionTrust
from treadle.app.session.own_commands.command_answers import CommandAnswer
from treadle.app.session.own_commands.slash_commands import SLASH_TABLE, SlashCommand
from treadle.app.session.shared.access import SessionAccess
from treadle.app.slash import answer_without_session, do_command
from treadle.protocol.events import Delivery, SetMode
from treadle.protocol.permissions import Mode
from treadle.tui.session.entered_lines import (
    ChooseModel,
    ChooseSession,
    ChooseTurn,
    DoCommand,
    DropPrompt,
    EditPrompt,
    InputCommand,
    Quit,
    SendPrompt,
    ShowHelp,
    StartSession,
    Wrong,
    next_mode,
    parse_input,
)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("  do it\n", SendPrompt("  do it\n", Delivery.QUEUE)),
        (" /literal", SendPrompt(" /literal", Delivery.QUEUE)),
        ("/steer  left ", SendPrompt("left", Delivery.STEER)),
        ("/queue", DoCommand("queue")),
        ("/drop 2", DropPrompt(2)),
        ("/edit 1", EditPrompt(1)),
        ("/mode full", DoCommand("mode", "full")),
        ("/model a/b", DoCommand("model", "a/b")),
        ("/model", ChooseModel()),
        ("/resume", ChooseSession()),
        ("/rewind", ChooseTurn("rewind")),
        ("/fork", ChooseTurn("fork")),
        ("/rewind 3", DoCommand("rewind", "3")),
        ("/resume cart total", ChooseSession("cart total")),
        ("/new", StartSession()),
        ("/clear", StartSession()),
        ("/help", ShowHelp()),
        ("/?", ShowHelp()),
        ("/help mode", DoCommand("help", "mode")),
        ("/compact the names", DoCommand("compact", "the names")),
        ("/compact\nthe names", DoCommand("compact", "the names")),
        ("/trust", DoCommand("trust")),
        ("/quit", Quit()),
        ("/exit", Quit()),
        ("/own a b", SendPrompt("/own a b", Delivery.QUEUE)),
        ("/deep:own", SendPrompt("/deep:own", Delivery.QUEUE)),
    ],
)
def test_a_line_means_its_command(line: str, command: InputCommand) -> None:
    assert parse_input(line, named=lambda: ("own", "deep:own")) == command


@pytest.mark.parametrize("line", ["/", "/nope", "/drop", "/drop 0", "/drop x", "/edit -1", "/steer"])
def test_a_wrong_command_says_what_would_be_right(line: str) -> None:
    command = parse_input(line)
    assert isinstance(command, Wrong)
    assert "/" in command.text


def test_ctrl_s_steers() -> None:
    assert parse_input("left", steer=True) == SendPrompt("left", Delivery.STEER)


def test_the_cycle_of_modes_never_reaches_the_wide_ones() -> None:
    assert [next_mode(mode) for mode in Mode] == [Mode.ASK, Mode.EDITS, Mode.PLAN, Mode.ASK, Mode.ASK]


def test_every_listed_command_is_known() -> None:
    for row in SLASH_TABLE:
        command = parse_input(f"/{row.name}")
        assert not isinstance(command, Wrong) or "There is no" not in command.text


@pytest.mark.parametrize("path", ["/etc/hosts is wrong", "/ 3", "/usr/bin/env"])
def test_a_path_is_no_command(path: str) -> None:
    assert parse_input(path) == SendPrompt(path, Delivery.QUEUE)


@pytest.mark.parametrize(("typed", "near"), [("qiut", "quit"), ("sttaus", "status"), ("own-comand", "own-command")])
def test_a_refused_command_names_the_nearest(typed: str, near: str) -> None:
    command = parse_input(f"/{typed}", named=lambda: ("own-command",))
    assert command == Wrong(f"There is no /{typed}. Did you mean /{near}?")


@pytest.mark.parametrize("row", SLASH_TABLE, ids=lambda row: str(row.name))
def test_words_behind_a_command_are_taken_or_refused_and_never_lost(row: SlashCommand) -> None:
    command = parse_input(f"/{row.name} two words")
    refused = isinstance(command, Wrong) and command.kept
    assert refused is (not row.arguments)
    if refused:
        answer = do_command(row.name, "two words", cast("SessionAccess", None))
        assert isinstance(command, Wrong)
        assert (answer.text, answer.warning, answer.ops) == (command.text, True, ())
        assert answer_without_session(row.name, "two words", cast("SessionTrust", None)) == ""


@pytest.mark.parametrize(("name", "mode"), [("plan", Mode.PLAN), ("act", Mode.ASK)])
def test_the_text_behind_plan_and_act_is_sent_in_their_mode(name: str, mode: Mode) -> None:
    session = cast("SessionAccess", None)
    assert do_command(name, "fix it", session) == CommandAnswer(ops=(SetMode(mode=mode),), send="fix it")
    assert do_command(name, "", session) == CommandAnswer(ops=(SetMode(mode=mode),))
