"""What is no command costs nothing: it is refused with the nearest command, and nothing is sent."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import Command
from treadle.app.errors.exits import Exit
from treadle.app.security.trusting import session_trust
from treadle.app.session.own_commands.slash_commands import SLASH_TABLE, find_slash
from treadle.app.session.own_commands.slash_lines import slash_word
from treadle.cli.task_words import COMMANDS, GROUPS, SELDOM, slash_task, task_of
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
    for words, groups in ((("help",), GROUPS.keys() - {SELDOM}), (("help", "--all"), GROUPS.keys())):
        said = {line.split()[0] for line in treadle(*words).out.splitlines() if line.startswith("  ") and line.strip()}
        assert said & COMMANDS.keys() == {name for group in groups for name in GROUPS[group]}


def test_help_says_common_options_once(treadle: Command) -> None:
    assert ("--max-cost" in treadle("--help").out, "--max-cost" in treadle("web", "--help").out) == (True, False)
    assert "--max-cost" in treadle("help", "web", "--all").out
    assert treadle("web", "--max-cost", "none").code == Exit.USAGE


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mode", "x"), ("--mode cannot be 'x'.", "It is one of plan, ask, edits, auto, full.")),
        (("--model",), ("--model needs a value.",)),
        (("delete",), ("Something is missing: SESSION.",)),
        (("policy", "foo"), ("'foo' is not expected here.", "It is one of test, explain,")),
        (("-c", "-r", "x"), ("--resume or -r cannot be given with --continue or -c.", "Each excludes the other.")),
        (("--max-steps", "0"), ("--max-steps or --max-turns: must be 1 or more.",)),
        (("--max-cost", "abc"), ("cannot be 'abc'.", "It is a number.")),
        (("checkpoint", "diff", "1", "--nope"), ("There is no option --nope.",)),
        (("-w", "feat", "--apply"), ("There is no option --apply.", "treadle copies apply NAME")),
        (("--modle", "a/b"), ("There is no option --modle. Did you mean --model?",)),
    ],
)
def test_a_mistake_in_the_words_is_told_as_any_error_is(
    treadle: Command, words: tuple[str, ...], said: tuple[str, ...]
) -> None:
    ended = treadle(*words)
    lines = ended.err.splitlines()
    assert (ended.code, ended.out, lines[0].startswith("treadle: ")) == (Exit.USAGE, "", True)
    assert [line[:7] for line in lines[1:]] in (["  fix: "], ["  why: ", "  fix: "])
    assert all(one in ended.err for one in said)
