"""Shell lines by class: each file of `lines/` holds one line per row, `⏎` for a line break."""

from pathlib import Path

import pytest

from tests.policy.views import HOME, ROOT, MemoryView, context
from treadle.policy.classify import classify_command
from treadle.policy.context import FileFacts, FileKind
from treadle.policy.findings import CommandClass

_LINES = Path(__file__).parent / "lines"


def _class(line: str, files: MemoryView | None = None) -> CommandClass:
    return classify_command(line, ROOT, context(files=files)).command_class


@pytest.mark.parametrize("expected", list(CommandClass))
def test_lines_have_their_class(expected: CommandClass) -> None:
    lines = (_LINES / f"{expected.value}.txt").read_text().splitlines()
    found = {line: _class(line.replace("⏎", "\n")) for line in lines}
    assert {line: given.value for line, given in found.items() if given is not expected} == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cat *.txt", CommandClass.READ_ONLY),
        ("cat docs/*", CommandClass.DANGEROUS),
        ("cat out/*.txt", CommandClass.NEEDS_CONFIRMATION),
        ("sort *.odd", CommandClass.NEEDS_CONFIRMATION),
        ("cat missing/*.txt", CommandClass.READ_ONLY),
    ],
)
def test_a_glob_is_judged_by_the_files_it_stands_for(line: str, expected: CommandClass) -> None:
    files = MemoryView(
        files={f"{ROOT}/a.txt": "", f"{ROOT}/docs/server.key": "", f"{ROOT}/-o.odd": "", f"{ROOT}/out": None},
        links={f"{ROOT}/out/x.txt": "/srv/x.txt"},
    )
    assert _class(line, files) is expected


def test_a_directory_is_followed_by_its_name_like_the_shell_does() -> None:
    files = MemoryView(links={f"{ROOT}/deep": f"{ROOT}/a/b/c"})
    classes = [_class(line, files) for line in ("cd deep && cat ../x", "cd deep && cd .. && cat ../x")]
    assert classes == [CommandClass.READ_ONLY, CommandClass.NEEDS_CONFIRMATION]


def test_a_line_outside_the_workspace_asks() -> None:
    assert classify_command("ls", HOME, context()).command_class is CommandClass.NEEDS_CONFIRMATION


@pytest.mark.parametrize(
    "hidden", ["\r", "\x07", "\x7f", "\x85", "\u00a0", "\u2003", "\u200b", "\u202e", "\ufeff", "\U000e0041"]
)
def test_characters_that_hide_something_are_dangerous(hidden: str) -> None:
    assert _class(f"ls {hidden}x") is CommandClass.DANGEROUS


def test_a_look_alike_letter_asks() -> None:
    assert _class("cat \u0441onfig.yml") is CommandClass.NEEDS_CONFIRMATION


@pytest.mark.parametrize(
    "line",
    ["foo " + " ".join(f"b{number}" for number in range(3000)), "(" * 20_000, "$((" * 3000, "echo " + "{a,b}" * 100,
     "`\\" * 5000, "foo " + "'a b' " * 2000, "cd a;" * 600, "cat " + "*a?" * 2000, "a|b;" * 5000],
)  # fmt: skip
def test_a_line_made_to_take_long_is_answered(line: str) -> None:
    assert _class(line) is not CommandClass.READ_ONLY


@pytest.mark.parametrize(
    "line", ["cd a && cd b; cat ../x", "cd src; cat ../x", "cd a || cat ../x", "{ cd a && cd b; }; cat ../../x"]
)
def test_a_change_of_directory_that_may_fail_leaves_both_directories_possible(line: str) -> None:
    assert _class(line) is CommandClass.NEEDS_CONFIRMATION


def test_a_program_of_the_system_that_others_can_change_asks() -> None:
    class _Writable(MemoryView):
        def facts(self, path: str) -> FileFacts | None:
            return FileFacts(kind=FileKind.FILE, uid=1000, mode=0o755) if path == "/usr/bin/ls" else None

    assert (_class("/usr/bin/ls"), _class("/usr/bin/ls", _Writable())) == (
        CommandClass.READ_ONLY,
        CommandClass.NEEDS_CONFIRMATION,
    )
