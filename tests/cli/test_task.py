"""What is no command costs nothing: it is refused with the nearest command, and nothing is sent."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import Command
from treadle.app.errors.exits import Exit
from treadle.app.security.trusting import session_trust
from treadle.app.session.own_commands.slash_commands import SLASH_TABLE, find_slash, slash_word
from treadle.cli.task_words import COMMANDS, slash_task, task_of
from treadle.protocol.errors import ConfigError


@pytest.mark.parametrize(
    ("argv", "fix"),
    [
        ("sesions", "Did you mean: treadle sessions"),
        ("sesions --all --json", "Did you mean: treadle sessions"),
        ("Doctor", "Did you mean: treadle doctor"),
        ("resume", "Did you mean: treadle --resume ID"),
        ("--mode ask sessions", "Write: treadle sessions"),
        ("fix the failing test", "Write: treadle 'fix the failing test'"),
        ("sessions.", "Did you mean: treadle sessions"),
        ("....", "`treadle --help` lists the commands."),
        ("zzqqy", "`treadle --help` lists the commands."),
        ("./src", "`treadle --help` lists the commands."),
        ("help sesions", "Did you mean: treadle sessions"),
        ("--continue fix", "`treadle --help` lists the commands."),
    ],
)
def test_what_may_be_a_mistyped_command_is_refused(treadle: Command, argv: str, fix: str) -> None:
    said = treadle(*argv.split())
    assert (said.code, said.out) == (Exit.USAGE, "")
    assert f"  fix: {fix}\n" in said.err


@pytest.mark.parametrize("argv", ["--hlep", "--sesions", "sessions --jsn", "doctor now"])
def test_an_unknown_option_is_answered_with_the_nearest_and_not_with_a_page(treadle: Command, argv: str) -> None:
    said = treadle(*argv.split())
    assert (said.code, said.out, len(said.err.splitlines())) == (Exit.USAGE, "", 2)
    assert ("Did you mean --help?" in said.err) == (argv == "--hlep")
    assert ("Did you mean --json?" in said.err) == (argv == "sessions --jsn")


def test_help_shows_the_help_also_of_one_command(treadle: Command) -> None:
    assert treadle("help").out == treadle("--help").out
    assert treadle("help", "sessions").out == treadle("sessions", "--help").out
    assert all(f"  {name} " in treadle("help").out for name in COMMANDS)


@given(st.text(alphabet=string.ascii_letters + string.digits + "-_/:", min_size=1))
def test_no_single_word_without_blanks_is_a_task(word: str) -> None:
    with pytest.raises(ConfigError):
        task_of([word], COMMANDS)


@given(st.lists(st.text(), min_size=2))
def test_no_words_without_quotes_are_a_task(words: list[str]) -> None:
    with pytest.raises(ConfigError):
        task_of(words, COMMANDS)


@pytest.mark.parametrize(
    "task", ["make the tests pass", "修复失败的测试", "แก้ไขการทดสอบ", "sessions list", "Go.", "Weiter!", ""]
)
def test_one_argument_with_blanks_or_of_a_script_without_them_is_a_task(task: str) -> None:
    assert task_of([task] if task else [], COMMANDS) == task


@pytest.mark.parametrize(
    ("task", "fix"),
    [
        ("/hlep", "Did you mean /help?"),
        ("/compcat this", "Did you mean /compact?"),
        ("/resume", "treadle --resume ID"),
        ("/queue", "Start `treadle` and enter it there."),
        ("/quit now", "Start `treadle` and enter it there."),
        ("/zzqqy", "put another word before it"),
        ("!ls -l", "Say what to do in words."),
    ],
)
def test_signs_that_only_the_terminal_knows_are_refused(treadle: Command, tmp_path: Path, task: str, fix: str) -> None:
    (tmp_path / "README.md").touch()
    said = treadle("-p", task, "--directory", str(tmp_path), "--model", "openai-compatible/x")
    assert (said.code, said.out) == (Exit.USAGE, "")
    assert fix in said.err


@pytest.mark.parametrize(
    "task",
    [
        "/etc/hosts explain",
        "//comment style",
        "/ is full",
        "/",
        "say /hlep",
        "@README.md explain",
        "@property explain",
        "![logo](x.png) is missing",
        "!= should be ==",
        "! and ?",
        "@",
        "@\0",
        "",
    ],
)
def test_paths_and_other_text_are_a_task(tmp_path: Path, task: str) -> None:
    assert slash_task(task, session_trust(tmp_path), headless=True) is None


def test_every_slash_command_is_recognized() -> None:
    assert all(slash_word(row.usage) == row.name for row in SLASH_TABLE)


def test_a_command_of_the_table_is_one_where_it_works(tmp_path: Path) -> None:
    trust = session_trust(tmp_path)
    assert slash_task("/compact keep the API names", trust, headless=True) == (
        find_slash("compact"),
        "keep the API names",
    )
    assert slash_task("/init in German", trust, headless=True) is None
    with pytest.raises(ConfigError):
        slash_task("/status", trust, headless=False)
