"""A review of a diff: what a model is shown, which findings are shown, and a change that is applied and undone."""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.needed import needs
from treadle.app.checkpoints.opening_checkpoints import findings_file
from treadle.app.code_review.applying_findings import apply_finding
from treadle.app.code_review.changes_to_review import ChangesToReview, changes_to_review
from treadle.app.code_review.diff_files import DiffFile, NumberedHunk, files_of_diff, fit_into, shown_diff
from treadle.app.code_review.finding_book import kept_findings
from treadle.app.code_review.finding_forms import FoundAnswer, ReviewFinding, UnreadableAnswerError, read_review_answer
from treadle.app.code_review.review_run import ReviewEffort, ReviewReport, finding_lines, record_of_review, run_review
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.history.keeping_sessions import delete_session, find_session
from treadle.app.reports.known_sessions import sessions_usage
from treadle.app.security.trusting import SessionTrust, session_trust
from treadle.app.session.own_commands.slash_commands import find_slash
from treadle.app.session.shared.turn_asking import SessionClient
from treadle.app.slash.entering import run_entered
from treadle.protocol.errors import ConfigError, StoreError, TreadleError
from treadle.protocol.events import Op, Prompt, Source
from treadle.protocol.messages import text_of
from treadle.protocol.notifications import TurnStop
from treadle.protocol.permissions import Mode
from treadle.workspace.sandbox.backend import SandboxState

BEFORE = "def mean(values):\n    if not values:\n        return 0\n    return sum(values) / len(values)\n"
AFTER = "def mean(values):\n    return sum(values) / len(values)\n"
FIXED = AFTER.replace("len(values)\n", "len(values) if values else 0\n")
CHANGE = (
    "<<<<<<< SEARCH\n    return sum(values) / len(values)\n=======\n"
    "    return sum(values) / len(values) if values else 0\n>>>>>>> REPLACE"
)
MEAN: Mapping[str, Any] = {
    "file": "src/stats.py",
    "line": 2,
    "severity": "error",
    "confidence": 0.9,
    "title": "mean fails on an empty list",
    "text": "It divides by 0.",
}
HEADLESS = Source(kind="headless", id="main")


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "core.quotePath=true")
    return subprocess.run(("git", *who, "-C", str(folder), *words), check=True, capture_output=True, text=True).stdout


@dataclass
class Place:
    """A repository with a commit and a change, and a model that plays a script."""

    folder: Path
    script: Path

    @property
    def trust(self) -> SessionTrust:
        return session_trust(self.folder, once=True)

    def says(self, *turns: Mapping[str, Any] | str) -> None:
        rows = [{"items": [{"type": "text", "text": one}]} if isinstance(one, str) else one for one in turns]
        self.script.write_text(json.dumps({"turns": rows}))

    def opening(self, resume: str = "", **settings: Any) -> Opening:
        return Opening(
            workspace=self.folder,
            settings=Settings(model=f"scripted/{self.script}", mode=Mode.PLAN, **settings),
            user_present=False,
            trust=self.trust,
            resume=resume,
        )

    async def review(self, effort: ReviewEffort = ReviewEffort.LOW, book: str = "", **settings: Any) -> ReviewReport:
        changes = changes_to_review(self.trust)
        return await run_review(changes, lambda: self.opening(**settings), effort=effort, book=book)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "src" / "stats.py").write_text(BEFORE)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    (folder / "src" / "stats.py").write_text(AFTER)
    return Place(folder, tmp_path / "script.json")


def found(*findings: Mapping[str, Any]) -> str:
    return json.dumps({"findings": findings})


def when(words: str, text: str) -> Mapping[str, Any]:
    return {"when": {"last_user": {"contains": [words]}}, "items": [{"type": "text", "text": text}]}


# The diff


def hunk_of(header: str, *lines: str, old: str = "a/x", new: str = "b/x") -> str:
    return "\n".join([f"--- {old}", f"+++ {new}", header, *lines, ""])


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("", []),
        ("no diff\n", []),
        (hunk_of("@@ -1 +1 @@", "-a", "+b"), [("x", "changed", {1: "b"})]),
        (hunk_of("@@ -4,2 +5,2 @@ f", " a", "-b", "+c", old="x\t1", new="y\t2"), [("y", "changed", {5: "a", 6: "c"})]),
        (hunk_of("@@ -0,0 +1 @@", "+a", "\\ No newline", old="/dev/null"), [("x", "new", {1: "a"})]),
        (hunk_of("@@ -1 +0,0 @@", "-a", new="/dev/null"), [("x", "deleted", {})]),
        (
            hunk_of("@@ -1,3 +1,3 @@", "--- a/x", "-++ b/x", "+--- y", "++++ y", " z"),
            [("x", "changed", {1: "--- y", 2: "+++ y", 3: "z"})],
        ),
        (hunk_of("@@ -1,9 +1,9 @@", " a", "", "+b"), [("x", "changed", {1: "a", 2: "", 3: "b"})]),
    ],
)
def test_the_counts_of_a_hunk_say_where_it_ends(text: str, files: Sequence[tuple[str, str, Mapping[int, str]]]) -> None:
    assert [(one.path, one.kind, dict(one.new_side)) for one in files_of_diff(text)] == list(files)


def test_every_line_of_a_real_diff_has_its_number_in_the_new_file_whatever_its_name_is(place: Place) -> None:
    names = ["a b.txt", "tab\tx", 'quote"x', "ä€.txt", "b/ c/d", "-x", "new", "same"]
    for name in names[:-2]:
        (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / name).write_text("".join(f"{number}\n" for number in range(40)))
    (place.folder / "gone é").write_text("x\n")
    (place.folder / "old name").write_text("moved\n" * 9)
    git(place.folder, "add", "-A")
    git(place.folder, "commit", "-q", "-m", "two")
    (place.folder / "src" / "stats.py").write_text(BEFORE)
    for name in names[:-2]:
        (place.folder / name).write_text("".join(f"{number}\n" for number in range(-1, 40) if number not in (7, 20)))
    (place.folder / "new").write_text("1\n2")
    (place.folder / "gone é").unlink()
    git(place.folder, "mv", "old name", "new name")
    (place.folder / "new name").write_text("moved\n" * 9 + "more\n")
    git(place.folder, "add", "-A")
    files = files_of_diff(git(place.folder, "diff", "--cached", "-M"))
    kinds = {one.path: one.kind for one in files}
    assert kinds == {
        **dict.fromkeys([*names[:-2], "src/stats.py"], "changed"),
        "new": "new",
        "gone é": "deleted",
        "new name": "renamed from old name",
    }
    for one in files:
        lines = [] if one.kind == "deleted" else (place.folder / one.path).read_text().split("\n")
        assert {number: lines[number - 1] for number in one.new_side} == one.new_side
        assert one.new_side or one.kind == "deleted"


def test_a_model_is_shown_the_number_of_each_line() -> None:
    hunk = NumberedHunk(first=9, lines=(" a", "-b", "+c\x1b"), about="def f():")
    assert shown_diff([DiffFile(path="x.py", hunks=(hunk,))]) == (
        "### x.py (changed, +1 -1)\n@@ def f():\n     9  a\n       -b\n    10 +c\\x1b\n"
    )


def test_of_a_large_diff_the_hunks_that_fit_are_shown_and_the_rest_is_named() -> None:
    small, large = NumberedHunk(first=1, lines=("+a",)), NumberedHunk(first=9, lines=("+b" * 90,))
    files = [
        DiffFile(path="both", hunks=(large, small)),
        DiffFile(path="none", hunks=(large,)),
        DiffFile(path="pic", kind="binary"),
        DiffFile(path="mode"),
        DiffFile(path="fits", hunks=(small,)),
    ]
    kept, left_out = fit_into(files, 25)
    assert [(one.path, len(one.hunks)) for one in kept] == [("both", 1), ("mode", 0), ("fits", 1)]
    assert left_out == (
        "both (+2 -0): 1 hunk of 2: the diff is too large",
        "none (+1 -0): the diff is too large",
        "pic: it is binary",
    )


# Which changes


def paths(changes: ChangesToReview) -> list[str]:
    return [one.path for one in changes.files]


def test_what_is_not_committed_is_reviewed_with_new_files_and_what_may_not_be_read_is_named(place: Place) -> None:
    (place.folder / "new.py").write_text("a = 1\n")
    (place.folder / "empty").touch()
    (place.folder / "data.bin").write_bytes(b"\xff\0")
    (place.folder / ".env").write_text("KEY=1\n")
    (place.folder / "link").symlink_to("/etc/passwd")
    changes = changes_to_review(place.trust)
    assert paths(changes) == ["src/stats.py", "empty", "new.py"]
    assert changes.left_out == (
        ".env: .env is protected from being read",
        "data.bin: it is binary",
        "link: " + next(one for one in changes.left_out if one.startswith("link")).removeprefix("link: "),
    )


def test_staged_changes_and_ranges_are_those_of_git(place: Place) -> None:
    (place.folder / "b.py").write_text("b = 1\n")
    git(place.folder, "add", "b.py")
    assert paths(changes_to_review(place.trust, staged=True)) == ["b.py"]
    git(place.folder, "commit", "-q", "-am", "two")
    (place.folder / "c.py").write_text("c = 1\n")
    assert paths(changes_to_review(place.trust, "HEAD~1..HEAD")) == ["b.py", "src/stats.py"]
    assert paths(changes_to_review(place.trust, "HEAD")) == []
    assert paths(changes_to_review(place.trust)) == ["c.py"]


@pytest.mark.parametrize("wanted", ["-x", "--output=/tmp/x", "nope", "main..nope", "src/stats.py", "HEAD main"])
def test_what_is_no_range_is_refused(place: Place, wanted: str) -> None:
    with pytest.raises(ConfigError) as refused:
        changes_to_review(place.trust, wanted)
    assert refused.value.code == "review-range"


def test_a_hook_does_not_keep_git_from_being_asked_and_does_not_run(place: Place, tmp_path: Path) -> None:
    for folder in (".git/hooks", "own"):
        hook = place.folder / folder / "post-index-change"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    git(place.folder, "config", "core.hooksPath", "own")
    assert "src/stats.py" in paths(changes_to_review(place.trust))
    assert not (tmp_path / "ran").exists()
    git(place.folder, "add", "src")
    assert (tmp_path / "ran").exists(), "the hook must be one that runs"


@pytest.mark.parametrize("key", ["filter.x.clean", "diff.external", "diff.x.textconv", "core.fsmonitor"])
def test_git_is_not_asked_where_the_repository_names_a_program(place: Place, tmp_path: Path, key: str) -> None:
    (place.folder / ".gitattributes").write_text("* filter=x diff=x\n")
    git(place.folder, "config", key, f"touch {tmp_path}/ran; cat")
    with pytest.raises(ConfigError) as refused:
        changes_to_review(place.trust)
    assert (refused.value.code, refused.value.why) == ("review-programs", f"It has the setting {key}.")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("silent", "what"), [("ls-files", "list the new files"), ("rev-parse HEAD", "name the last")])
def test_what_git_does_not_say_is_not_taken_for_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: str, what: str
) -> None:
    real = shutil.which("git")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    command, _, last = silent.partition(" ")
    fails = f'[ "$1" = {command} ] && [ "$last" = "{last or "."}" ] && exit 9'
    program.write_text(f'#!/bin/sh\nfor last; do :; done\n{fails}\nexec {real} "$@"\n')
    program.chmod(0o755)
    assert "src/stats.py" in paths(changes_to_review(place.trust))
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(ConfigError, match=f"git does not {what}"):
        changes_to_review(place.trust)


@needs("sandbox")
def test_in_a_folder_that_is_not_trusted_git_runs_only_where_something_confines_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    distrusted = session_trust(place.folder)
    (place.folder / "new.py").write_text("a = 1\n")
    assert changes_to_review(distrusted) == changes_to_review(place.trust)
    none = SandboxState(backend=None, reason="there is none")
    monkeypatch.setattr("treadle.workspace.sandbox.reading_git.probe", lambda: none)
    with pytest.raises(ConfigError) as refused:
        changes_to_review(distrusted)
    assert refused.value.code == "review-trust"


def test_a_diff_in_a_file_needs_no_repository(place: Place, tmp_path: Path) -> None:
    diff = git(place.folder, "diff")
    (place.folder / "my.diff").write_text(diff)
    (place.folder / "bad.patch").write_text("hello\n")
    distrusted = session_trust(place.folder)
    (tmp_path / "other").mkdir()
    for trust, wanted, code in (
        (session_trust(tmp_path / "other", once=True), "", "review-repository"),
        (place.trust, "bad.patch", "review-diff"),
        (place.trust, "none.diff", "review-diff"),
    ):
        with pytest.raises(ConfigError) as refused:
            changes_to_review(trust, wanted)
        assert refused.value.code == code
    assert paths(changes_to_review(distrusted, "my.diff")) == ["src/stats.py"]


def test_a_secret_is_hidden_and_the_lines_keep_their_numbers(place: Place) -> None:
    secret = "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 3
    (place.folder / "src" / "stats.py").write_text(f"{BEFORE}KEY = '{secret}'\nlast = 1\n")
    (file,) = changes_to_review(place.trust).files
    assert secret not in str(file)
    assert file.new_side[6] == "last = 1"


# The form of the answer


@pytest.mark.parametrize(
    "text",
    [
        found(MEAN),
        f"I looked.\n```json\n{found(MEAN)}\n```\nThat is all {{really}}.",
        f"{found(MEAN)}\nOnce more:\n{found(MEAN)}",
        f'{{"note": {{}}}} {found(MEAN)}',
    ],
)
def test_an_answer_is_read_whatever_stands_around_it(text: str) -> None:
    (one,) = read_review_answer(text, FoundAnswer).findings
    assert (one.file, one.line, one.severity, one.change) == ("src/stats.py", 2, "error", None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'There is no JSON object with "findings" in it.'),
        ("[1]", 'There is no JSON object with "findings" in it.'),
        ('{"findings": [', 'There is no JSON object with "findings" in it.'),
        (f"{found(MEAN)} or {found()}", 'There are 2 different JSON objects with "findings" in them.'),
        (found({**MEAN, "severity": "bad"}), "Invalid enum value 'bad' - at `$.findings[0].severity`."),
        (found({**MEAN, "confidence": 90}), "Expected `float` <= 1.0 - at `$.findings[0].confidence`."),
        (found({**MEAN, "line": "2"}), "Expected `int`, got `str` - at `$.findings[0].line`."),
        (found({**MEAN, "title": ""}), "Expected `str` of length >= 1 - at `$.findings[0].title`."),
    ],
)
def test_an_answer_that_cannot_be_read_in_one_way_says_why(text: str, why: str) -> None:
    with pytest.raises(UnreadableAnswerError) as unreadable:
        read_review_answer(text, FoundAnswer)
    assert str(unreadable.value) == why


# The review


async def test_an_answer_that_cannot_be_read_is_asked_for_once_more(place: Place) -> None:
    place.says("I have no idea.", found({**MEAN, "change": CHANGE}))
    report = await place.review()
    (one,) = report.findings
    assert (one.number, one.finding.title, one.finding.change) == (1, MEAN["title"], CHANGE)
    assert record_of_review(report).findings == (one.finding,)
    assert report.has_errors
    assert report.cost == 0
    place.says("I have no idea.", "None.", found(MEAN))
    with pytest.raises(TreadleError) as failed:
        await place.review()
    assert failed.value.code == "review-answer"


async def test_what_lies_outside_the_diff_and_changes_that_do_not_apply_are_left_out_and_named(place: Place) -> None:
    (place.folder / "gone.py").write_text("x\n")
    git(place.folder, "add", "gone.py")
    git(place.folder, "commit", "-q", "-m", "two", "gone.py")
    (place.folder / "gone.py").unlink()
    place.says(
        found(
            {**MEAN, "file": "gone.py", "line": 0, "title": "it is still imported", "severity": "warning"},
            {**MEAN, "line": 77},
            {**MEAN, "file": "other.py", "line": 1},
            {**MEAN, "file": "./src/stats.py", "title": "it\n fails", "change": CHANGE.replace("len", "length")},
        )
    )
    report = await place.review()
    assert [(one.finding.file, one.finding.line, one.finding.title) for one in report.findings] == [
        ("src/stats.py", 2, "it fails"),
        ("gone.py", 0, "it is still imported"),
    ]
    assert [one.finding.change for one in report.findings] == [None, None]
    assert report.notes == (
        "2 findings outside the diff left out: src/stats.py:77, other.py:1.",
        "The change for src/stats.py:2 is left out: Refused [not_found]: nothing was changed in src/stats.py.",
    )


OTHER = {**MEAN, "line": 1, "severity": "warning", "title": "no docstring"}
THIRD = {**MEAN, "line": 1, "severity": "note", "title": "the name is short"}


@pytest.mark.parametrize(
    ("effort", "titles", "sessions"),
    [
        (ReviewEffort.LOW, [MEAN["title"], OTHER["title"], THIRD["title"]], 1),
        (ReviewEffort.MEDIUM, [MEAN["title"], THIRD["title"]], 1),
        (ReviewEffort.HIGH, [MEAN["title"], THIRD["title"]], 2),
    ],
)
async def test_findings_are_checked_as_far_as_the_effort_goes(
    place: Place, effort: ReviewEffort, titles: Sequence[str], sessions: int
) -> None:
    verdicts = [{"number": 1, "confirmed": True}, {"number": 2, "confirmed": False, "why": "It has one."}]
    place.says(
        when("Review the enclosed diff", found(MEAN, OTHER, THIRD)),
        when("Check each of the enclosed", json.dumps({"verdicts": verdicts})),
    )
    started: list[str] = []
    report = await run_review(
        changes_to_review(place.trust),
        place.opening,
        effort=effort,
        started=lambda session, _: started.append(session),
    )
    assert [one.finding.title for one in report.findings] == titles
    assert len(started) == sessions
    checked = (
        "src/stats.py:1 left out: the second pass did not confirm it. It has one.",
        "The second pass says nothing of src/stats.py:1: it is shown unchecked.",
    )
    assert report.notes == (() if effort is ReviewEffort.LOW else checked)
    assert (place.folder / "src" / "stats.py").read_text() == AFTER


@pytest.mark.parametrize("damage", [b"", b"[{", b"{}", b'[{"number": 1}]'])
async def test_findings_that_cannot_be_read_are_not_written_over(place: Place, damage: bytes) -> None:
    place.says(found(MEAN))
    first = await place.review()
    findings_file(first.session).write_bytes(damage)
    place.says(found(OTHER))
    with pytest.raises(StoreError, match="cannot be read"):
        await place.review(book=first.session)
    assert findings_file(first.session).read_bytes() == damage


async def test_what_the_first_pass_found_stays_where_the_second_cannot_be_read(place: Place) -> None:
    place.says(found(MEAN), "None.", "None.")
    report = await place.review(effort=ReviewEffort.MEDIUM)
    assert [one.finding.title for one in report.findings] == [MEAN["title"]]
    assert any(note.startswith("The findings were not checked: ") for note in report.notes)


async def test_a_finding_is_shown_once_over_a_session_however_it_is_said(place: Place) -> None:
    place.says(found(MEAN, MEAN))
    first = await place.review()
    assert (len(first.findings), first.notes) == (1, ("1 finding left out: said twice.",))
    (place.folder / "src" / "stats.py").write_text(f"import os\n\n{AFTER}")
    place.says(found({**MEAN, "line": 4, "title": "mean fails on an empty list of values"}, {**OTHER, "line": 3}))
    again = await place.review(book=first.session)
    assert [(one.number, one.finding.title) for one in again.findings] == [(2, OTHER["title"])]
    assert again.session == first.session
    assert find_session(first.session).title == "Review of the changes that are not committed"
    assert [one.number for one in kept_findings(first.session)] == [1, 2]
    delete_session(find_session(first.session))
    assert kept_findings(first.session) == ()


async def test_two_findings_with_one_title_at_two_lines_are_two(place: Place) -> None:
    (place.folder / "src" / "stats.py").write_text(f"{AFTER}\n\n{AFTER.replace('mean', 'other')}")
    twice = (MEAN, {**MEAN, "line": 6})
    place.says(found(*twice))
    first = await place.review()
    assert [one.finding.line for one in first.findings] == [2, 6]
    place.says(found(*twice, {**MEAN, "line": 5}))
    again = await place.review(book=first.session)
    assert [one.finding.line for one in again.findings] == [5]
    assert again.notes == ("2 findings left out: shown before.",)


async def test_a_review_that_is_cut_short_says_so_and_keeps_what_was_found(place: Place) -> None:
    look = {"items": [{"type": "call", "name": "read_file", "arguments": {"path": "src/stats.py"}}]}
    place.says(look, look)
    report = await place.review(max_steps=1)
    assert report.ended is not None
    assert (report.ended.stop, report.findings) == (TurnStop.MAX_TURN_REQUESTS, ())
    place.says(found(MEAN), look, look)
    report = await place.review(ReviewEffort.MEDIUM, max_steps=1)
    assert report.ended is not None
    assert [one.finding.title for one in report.findings] == [MEAN["title"]]
    assert report.notes == ("The findings were not checked: the second pass did not finish.",)


async def test_what_does_not_fit_a_small_window_is_left_out_and_named(place: Place) -> None:
    place.says(found(MEAN, {**MEAN, "file": "large.py"}))
    (place.folder / "large.py").write_text("large = 'large'\n" * 2_000)
    model = f"scripted/{place.script}"
    report = await place.review(models={model: ModelSettings(context_window=16_000)})
    assert [one.finding.file for one in report.findings] == ["src/stats.py"]
    assert report.notes == (
        "Left out: large.py (+2000 -0): the diff is too large.",
        "1 finding outside the diff left out: large.py:2.",
    )
    with pytest.raises(TreadleError) as failed:
        await place.review(models={model: ModelSettings(context_window=40)})
    assert failed.value.code == "review-left-out"


async def test_a_review_changes_nothing_and_asks_nobody(place: Place) -> None:
    calls = [
        {"type": "call", "name": "write_to_file", "arguments": {"path": "src/stats.py", "content": "x"}},
        {"type": "call", "name": "execute_command", "arguments": {"command": "touch made"}},
    ]
    place.says({"items": calls}, found(MEAN))
    report = await place.review()
    assert [one.finding.title for one in report.findings] == [MEAN["title"]]
    assert (place.folder / "src" / "stats.py").read_text() == AFTER
    assert not (place.folder / "made").exists()


# Applying


async def test_a_change_is_applied_as_an_edit_and_undo_takes_it_back(place: Place) -> None:
    place.says(found({**MEAN, "change": CHANGE}))
    report = await place.review()
    file = place.folder / "src" / "stats.py"
    finding, used = report.findings[0].finding, models_used()
    applied = await apply_finding(finding, lambda: place.opening(report.session))
    assert models_used() == used, "no model applies it"
    assert (applied.problem, file.read_text()) == ("", FIXED)
    assert [(Path(one.path).name, one.added, one.removed) for one in applied.changes] == [("stats.py", 1, 1)]
    again = await apply_finding(finding, lambda: place.opening(report.session))
    assert again.problem.startswith("Refused [already_applied]: nothing was changed in src/stats.py.")
    undo = find_slash("undo")
    assert undo is not None
    live = await open_session(place.opening(report.session))
    async with SessionClient(live, HEADLESS) as client:
        assert (live.status.mode, live.status.model) == (Mode.PLAN, f"scripted/{place.script}")
        await run_entered(undo, "", live, client.post)
        async for _ in _until_quiet(client):
            pass
    assert file.read_text() == AFTER


def models_used() -> Counter[str]:
    """How many requests each model had in all sessions."""
    slots = [slot for one in sessions_usage(None) for slot in one.usage.slots]
    return Counter(one.model for one in slots for _ in range(one.amounts.requests))


async def _until_quiet(client: SessionClient) -> Any:
    live = client.session
    feed = live.follow()
    async with feed:
        while live.status.turn_active or not getattr(live, "quiet", True):
            yield await anext(feed)


async def test_a_change_of_a_protected_file_is_not_applied(place: Place) -> None:
    (place.folder / ".env").write_text("A=1\n")
    place.says(found(MEAN))
    report = await place.review()
    change = "<<<<<<< SEARCH\nA=1\n=======\nA=2\n>>>>>>> REPLACE"
    finding = ReviewFinding(**{**MEAN, "file": ".env", "line": 1, "change": change})
    applied = await apply_finding(finding, lambda: place.opening(report.session))
    assert applied.problem
    assert (place.folder / ".env").read_text() == "A=1\n"


# In a session


async def test_in_a_session_it_runs_beside_the_work_and_the_conversation_has_nothing_of_it(place: Place) -> None:
    row = find_slash("review")
    assert row is not None
    place.says(
        when("Review the enclosed diff", found({**MEAN, "change": CHANGE})),
        when("Check each of the enclosed", json.dumps({"verdicts": [{"number": 1, "confirmed": True}]})),
    )
    live = await open_session(place.opening())
    posted: list[Op] = []

    async def post(op: Op) -> None:
        posted.append(op)

    async with live:

        async def said(argument: str) -> str:
            return (await run_entered(row, argument, live, post)).text

        shown = await said("")
        assert shown.startswith("Reviewing the changes that are not committed: 1 file, +0 -2.\n1. src/stats.py:2 error")
        assert shown.endswith("/review apply N has the model apply the change that a finding suggests.")
        assert (await said("")).endswith("1 finding left out: shown before.\nNothing was found.")
        assert await said("list") == "\n".join(finding_lines(kept_findings(live.id)[0]))
        assert (await said("main..nope")).startswith("git gives no changes for 'main..nope'.")
        assert (await said("a b")).startswith("/review takes a range of git")
        assert (await said("apply x")).startswith("/review apply needs the number of a finding")
        assert posted == []
        assert live.empty
        assert await said("apply 1") == "The model applies the change of finding 1."
        (prompt,) = posted
        assert isinstance(prompt, Prompt)
        assert text_of(prompt.content) == "Apply the change of the enclosed finding 1, and nothing else."
        assert CHANGE in text_of(prompt.enclosed[0].content)
