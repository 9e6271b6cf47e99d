"""What an ignore file for agents lists is read and changed only with a yes, through whichever tool."""

from pathlib import Path
from typing import Any

import pytest

from tests.app.rehearsal import call, rehearse, run
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.tools import Outcome
from treadle.providers.scripted.script import MakeCall

SECRET = "the-quiet-part"
WHY = "is listed in .clineignore, line 2"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "vault").mkdir(parents=True)
    (root / "open").mkdir()
    (root / ".clineignore").write_text("# keep out\nvault/\n")
    (root / "vault" / "notes.py").write_text(f"def secret():\n    return '{SECRET}'\n")
    (root / "open" / "a.py").write_text("def plain():\n    return 1\n")
    (root / "open" / "link.py").symlink_to("../vault/notes.py")
    (root / "door").symlink_to("vault")
    return root.resolve()


def block(old: str, new: str) -> str:
    return f"------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE"


def patch(*lines: str) -> MakeCall:
    return call("apply_patch", patch="\n".join(("*** Begin Patch", *lines, "*** End Patch")))


TOOLS = [
    call("read_file", path="vault/notes.py"),
    call("read_file", path="./open/../vault/notes.py"),
    call("read_file", path="open/link.py"),
    call("read_file", path="door/notes.py"),
    call("read_file", path="VAULT/notes.py"),
    call("list_files", path="vault"),
    call("list_files", path="door", recursive=True),
    call("search_files", path="vault", regex="quiet"),
    call("search_files", path="vault/notes.py", regex="quiet"),
    call("list_code_definition_names", path="vault"),
    call("replace_in_file", path="vault/notes.py", diff=block("def secret():", "def other():")),
    call("replace_in_file", path="vault/notes.py", diff=block("not there", "x")),
    call("write_to_file", path="vault/new.py", content="x"),
    call("write_to_file", path="open/link.py", content="x"),
]
LINES = [
    "cat vault/notes.py",
    "cat VAULT/notes.py",
    "cat open/link.py",
    "cd vault && cat notes.py",
    "head -1 door/*.py",
    "ls vault",
    "grep -n quiet vault/notes.py",
    "cat < vault/notes.py",
    "echo x > vault/new.py",
    "echo x >> open/link.py",
    "cp vault/notes.py open/copy.py",
    "mv open/a.py vault/",
    "sed -i s/a/b/ vault/notes.py",
    "python3 tool.py vault/notes.py",
    "python3 tool.py --in=vault/notes.py",
    "for f in vault/*; do cat $f; done",
    "sh -c 'cat vault/notes.py'",
    "find vault -name '*.py'",
]


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("mode", [Mode.ASK, Mode.FULL])
async def test_every_tool_asks_before_it_touches_a_listed_path(folder: Path, mode: Mode, trusted: bool) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    seen = await rehearse(folder, TOOLS, mode=mode, trusted=trusted)
    results = zip(TOOLS, seen.results, seen.texts, strict=False)
    assert [made.arguments for made, result, _ in results if result.outcome is not Outcome.DENIED] == []
    assert [text for text in seen.texts[: len(TOOLS)] if WHY not in text or SECRET in text] == []
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


async def test_a_patch_asks_for_both_ends_of_a_move(folder: Path) -> None:
    out = patch("*** Update File: vault/notes.py", "*** Move to: open/b.py", "@@", "-def secret():", "+def b():")
    into = patch("*** Update File: open/a.py", "*** Move to: vault/b.py", "@@", "-def plain():", "+def b():")
    seen = await rehearse(folder, [out, into], mode=Mode.FULL, model="anthropic-compatible/gpt-5-scripted")
    assert [WHY in text for text in seen.texts[:2]] == [True, True]
    assert sorted(path.name for path in folder.rglob("*.py")) == ["a.py", "link.py", "notes.py"]


@pytest.mark.parametrize("mode", [Mode.EDITS, Mode.FULL])
async def test_a_shell_line_that_names_a_listed_path_asks(folder: Path, mode: Mode) -> None:
    (folder / "tool.py").write_text("import sys\nprint(open(sys.argv[-1].split('=')[-1]).read())\n")
    seen = await rehearse(folder, list(map(run, LINES)), mode=mode)
    ran = [line for line, result in zip(LINES, seen.results, strict=False) if result.outcome is not Outcome.DENIED]
    assert ran == []
    assert SECRET not in "".join(seen.texts)
    if mode is Mode.FULL:
        assert [line for line, text in zip(LINES, seen.texts, strict=False) if WHY not in text] == []


async def test_a_yes_opens_it_once(folder: Path) -> None:
    calls = [call("read_file", path="vault/notes.py"), run("cat vault/notes.py")]
    calls.append(call("search_files", path="vault", regex="quiet"))
    seen = await rehearse(folder, calls, mode=Mode.FULL, present=True)
    assert len(seen.asked) == 3
    assert [OptionKind.ALLOW_ALWAYS in question.options for question in seen.asked] == [False] * 3
    assert [SECRET in text for text in seen.texts[:3]] == [True] * 3


async def test_listed_names_stay_hidden_and_unlisted_work_goes_on(folder: Path) -> None:
    calls = [
        call("list_files", path=".", recursive=True),
        call("search_files", path=".", regex="quiet|plain"),
        call("read_file", path="open/a.py"),
        run("cat open/a.py"),
        call("list_code_definition_names", path="open"),
    ]
    seen = await rehearse(folder, calls, mode=Mode.ASK)
    assert [result.outcome for result in seen.results[:5]] == [Outcome.OK] * 5
    assert "notes.py" not in "".join(seen.texts)
    assert SECRET not in "".join(seen.texts)


@pytest.mark.parametrize("name", [".clineignore", ".agentignore", ".treadleignore"])
async def test_the_ignore_file_itself_is_changed_only_with_a_yes(folder: Path, name: str) -> None:
    calls = [
        call("read_file", path=name),
        call("write_to_file", path=name, content=""),
        call("write_to_file", path=f"vault/{name}", content="!*\n"),
        run(f"rm {name}"),
        run(f"echo '!vault/' >> {name}"),
    ]
    seen = await rehearse(folder, calls, mode=Mode.FULL)
    assert [result.outcome for result in seen.results[1:5]] == [Outcome.DENIED] * 4


async def test_no_rule_and_no_mode_takes_the_question_away(folder: Path) -> None:
    rules = folder.parent / "home" / "policy.toml"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(
        'version = 1\n[[rule]]\nid = "all"\nverdict = "allow"\npath = "vault/**"\nmatch = ["vault/a"]\n'
        '[[rule]]\nid = "cat"\nverdict = "allow"\nargv = ["cat"]\nmatch = ["cat vault/a"]\n'
    )
    seen = await rehearse(folder, [TOOLS[0], run(LINES[0])], mode=Mode.FULL)
    assert [result.outcome for result in seen.results[:2]] == [Outcome.DENIED] * 2


async def test_what_may_not_be_read_at_all_stays_so(folder: Path) -> None:
    (folder / ".clineignore").write_text("!.env\n!.git/\n")
    (folder / ".env").write_text("A=b\n")
    seen = await rehearse(folder, [call("read_file", path=".env"), run("cat .env")], mode=Mode.FULL)
    assert [result.outcome for result in seen.results[:2]] == [Outcome.DENIED] * 2
    assert all(".env is protected from being read" in text for text in seen.texts[:2])


async def test_gitignore_and_aiderignore_hide_names_and_keep_nothing(folder: Path) -> None:
    (folder / ".clineignore").unlink()
    (folder / ".gitignore").write_text("vault/\n")
    (folder / ".aiderignore").write_text("vault/\n")
    seen = await rehearse(folder, [TOOLS[0], run(LINES[0]), call("list_files", path=".", recursive=True)])
    assert [result.outcome for result in seen.results[:3]] == [Outcome.OK] * 3
    assert "notes.py" not in seen.texts[2]


async def test_plan_mode_denies_it(folder: Path) -> None:
    seen = await rehearse(folder, [TOOLS[0], run(LINES[0])], mode=Mode.PLAN, present=True)
    assert [result.outcome for result in seen.results[:2]] == [Outcome.DENIED] * 2
    assert seen.asked == []


def first_block(requests: list[Any]) -> str:
    return str(requests[0]["messages"][0])


async def test_the_model_is_told_in_a_line_that_there_is_such_a_file(folder: Path) -> None:
    told = "Paths listed in .clineignore need approval to be read or changed."
    assert told in first_block((await rehearse(folder, [])).requests)
    (folder / ".clineignore").unlink()
    assert "need a yes to be read" not in first_block((await rehearse(folder, [])).requests)
