"""What a model reads of a call that may not run: the reason that decides, what would run, and its own mistakes."""

from pathlib import Path

import pytest

from tests.app.rehearsal import call, rehearse, run
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Outcome


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "src").mkdir(parents=True)
    (tmp_path / "ws" / "src" / "a.py").write_text("x = 1\n")
    return (tmp_path / "ws").resolve()


async def test_a_denial_gives_one_reason_and_what_would_run_separately(folder: Path) -> None:
    lines = ("cat src/a.py && git push origin main", "cd src && ls && git fetch", "wc -l src/a.py; cat .env")
    seen = await rehearse(folder, [*map(run, lines), call("read_file", path=".env")], mode=Mode.EDITS)
    assert [result.outcome for result in seen.results[:4]] == [Outcome.DENIED] * 4
    nobody = "It needs approval, and nobody is here to give it."
    way_on = "Continue without it, or finish and say what could not be done."
    fetch = "git connects to another repository."
    env = ".env is protected from being read."
    assert seen.texts[0] == (
        "Denied [no-user]: `git push origin main`: git push publishes commits. "
        f"{nobody} Called separately, `cat src/a.py` would run without asking. {way_on}"
    )
    assert seen.texts[1] == (
        f"Denied [no-user]: `git fetch`: {fetch} "
        f"{nobody} Called separately, `cd src && ls` would run without asking. {way_on}"
    )
    assert seen.texts[2] == (
        f"Denied [no-user]: `cat .env`: {env} {nobody} "
        f"Called separately, `wc -l src/a.py` would run without asking. Do not try to get around this. {way_on}"
    )
    assert seen.texts[3] == f"Denied [no-user]: {env} {nobody} Do not try to get around this. {way_on}"


async def test_what_is_said_to_run_separately_does(folder: Path) -> None:
    lines = ("cat src/a.py && git push origin main", "cd src && ls && git fetch", "cat src/a.py | wc -l; git fetch")
    seen = await rehearse(folder, list(map(run, lines)), mode=Mode.EDITS)
    said = [text.partition("separately, `")[2].partition("` would")[0] for text in seen.texts[:3]]
    assert said == ["cat src/a.py", "cd src && ls", "cat src/a.py"], "what only filters a pipe is not named"
    again = await rehearse(folder, list(map(run, said)), mode=Mode.EDITS)
    assert [result.outcome for result in again.results[:3]] == [Outcome.OK] * 3


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.EDITS, Mode.FULL])
async def test_a_line_that_is_no_valid_shell_is_a_mistake_and_no_denial(folder: Path, mode: Mode) -> None:
    broken = {
        "if then": "a block is empty",
        "cat src/a.py &amp;&amp; ls": "Write `&`, `<` and `>` as they are",
        "echo 'a": "a quote or bracket is not closed",
        "touch made\nfor i in 1 2; do": "a block is empty",
    }
    seen = await rehearse(folder, [call("list_files", path="."), *map(run, broken)][:3], mode=mode)
    seen2 = await rehearse(folder, list(map(run, list(broken)[2:])), mode=mode)
    results, texts = [*seen.results[1:3], *seen2.results[:2]], [*seen.texts[1:3], *seen2.texts[:2]]
    assert [result.outcome for result in results] == [Outcome.INVALID] * len(broken)
    for text, says in zip(texts, broken.values(), strict=True):
        assert text.startswith("Not run: this is not valid shell: ")
        assert says in text
        assert "get around" not in text
    assert not (folder / "made").exists(), "nothing of a broken line runs, not even its valid first line"


async def test_shell_that_only_treadle_cannot_follow_still_asks(folder: Path) -> None:
    seen = await rehearse(folder, [run("coproc X { cat; }; echo ok")], mode=Mode.FULL)
    assert seen.results[0].outcome is Outcome.DENIED


async def test_looking_for_mistakes_in_a_line_runs_nothing_of_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rc").write_text(f"touch {folder}/sourced\n")
    monkeypatch.setenv("BASH_ENV", str(folder / "rc"))
    lines = (f"echo $(touch {folder}/a) `touch {folder}/b` ; if then", f"touch {folder}/c\n(")
    seen = await rehearse(folder, list(map(run, lines)), mode=Mode.FULL)
    assert [result.outcome for result in seen.results[:2]] == [Outcome.INVALID] * 2
    assert sorted(path.name for path in folder.iterdir()) == ["rc", "src"]
