"""The screen of batches: what their line on the terminal says, a square for each task, and how each came to its end."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.web.in_process import page_here
from treadle.app.hosting.batch_control import add_task, batch_results, begin_again
from treadle.app.reports.known_batches import keep_progress, known_batches
from treadle.door.opening import this_process
from treadle.present.batch_progress import BatchProgress, TaskMark
from treadle.present.spending_words import Spending

DONE = TaskMark(id="a", state="done", session="run-1.a", cost=0.5)
GONE = this_process().rpartition(":")[0].rpartition(":")[0] + ":1999999999:0-0"
BROKEN = TaskMark(id="b", state="error", kind="provider-rate_limit", cost=None)


def progress(run: str = "run-1", **more: object) -> BatchProgress:
    known = {
        "folder": "/out",
        "process": this_process(),
        "began_at": 1_000,
        "at": 61_000,
        "tasks": 5,
        "workers": 2,
        "spending": Spending(ended=1.5),
        "most": 9.0,
        "states": {"done": 1, "error": 1},
        "running": {"c": "run 3"},
        "ended": (DONE, BROKEN),
        "before": (TaskMark(id="old", state="failed", kind="check"),),
    }
    return BatchProgress(run=run, **{**known, **more})  # type: ignore[arg-type]


async def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *batches: BatchProgress) -> str:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        for one in batches:
            keep_progress(one)
        visit = here.visit()
        status, text = await visit.look("/fleet")
        assert status == 200
        assert (await visit.get("/fleet/rows")).count("<section") == len(batches)
        return text


async def test_what_passed_is_among_no_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = TaskMark(id="curl", state="done", kind="denied")
    text = await shown(
        tmp_path, monkeypatch, progress(before=(denied, TaskMark(id="old", state="failed", kind="check")))
    )
    failures, _, remarks = text.partition(">Failures by kind")[2].partition("<h3>Passed, with a remark")
    assert [("curl" in part, "old" in part) for part in (failures, remarks.partition("</div>")[0])] == [
        (False, True),
        (True, False),
    ]


async def test_a_batch_at_work_has_a_square_for_each_task_its_failures_money_rate_and_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = await shown(tmp_path, monkeypatch, progress())
    for words in (
        "Working",
        "3 <small>of 6",
        "$1.50 <small>of $9.00",
        "1 <small>33 %",
        "2.0 a minute",
        "about 2 min",
        "Running",
        "1 of 2 places",
        'Failed</dt><dd class="no">1<',
        'Broken off</dt><dd class="no">1<',
    ):
        assert words in text, words
    kinds = [
        re.sub(r"<[^>]+>|\s", " ", one).split() for one in re.findall(r"<summary>(.*?)</summary>", text, re.DOTALL)
    ]
    assert kinds == [["The", "check", "failed", "old", "1"], ["Provider:", "rate", "limit", "b", "1"]], "as they came"
    running = text.partition("<h3>Running")[2].partition("</div>")[0]
    assert ("<code>c</code><span>Works</span>" in running, "3 steps" in running) == (True, True)
    assert 'href="' in text.partition("a: passed, $0.50")[0].rpartition("<li")[2]
    squares, _, key = text.partition('<ul class="squares key ')
    signs = ("done", "failed", "error", "working", "waits")
    named = ("passed", "failed", "broken off", "running", "waiting")
    counts = [1, 1, 1, 1, 2]
    assert [squares.count(f'<li class="{sign}"') for sign in signs] == counts
    assert [f"</span>{word} {count}</li>" in key for word, count in zip(named, counts, strict=True)] == [True] * 5


async def test_each_task_that_is_begun_leads_to_its_session_and_those_that_wait_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        visit = here.visit()
        known: dict[str, Any] = {"chosen": ("a", "b", "c", "d", "e"), "sessions": {"c": "run-1.c", "d": "run-1.d"}}
        keep_progress(progress(**known))

        async def listed(query: str = "") -> list[str]:
            rows = (await visit.get(f"/fleet/run-1{query}")).partition("<tbody>")[2]
            return re.findall(r'<th scope="row">(?:<a class="mono" href="[^"]*/s/|<code>)([^"<]*)', rows)

        assert await listed() == ["run-1.c", "b", "run-1.a", "old", "run-1.d", "e"]
        assert await listed("?state=waits") == ["run-1.d", "e"]
        text = await visit.get("/fleet")
        assert text.count('/s/run-1.c"') == 2, "its square, and where it runs"
        assert text.count('/s/run-1.d"') == 1
        assert text.count('<li class="waits"') == 3, "two squares, and the key"
        keep_progress(progress(**known, process=GONE))
        assert await listed("?state=waits") == ["run-1.c", "run-1.d", "e"], "a batch that was killed works on none"
        keep_progress(progress(**known, database="postgresql://host/f"))
        assert "/s/" not in str(await listed()), "those of a fleet may be on another computer"


async def test_every_screen_says_how_far_the_batch_is_that_works_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, ()) as here:
        visit = here.visit()
        named = "<span>Batch runs</span>"
        keep_progress(progress(exit_code=0))
        assert f'{named}<span class="num meta" id="reached"></span>' in await visit.get("/inbox")
        keep_progress(progress())
        keep_progress(progress("later", exit_code=0))
        keep_progress(progress("killed", process=GONE))
        assert f'{named}<span class="num meta" id="reached">3 of 6</span>' in await visit.get("/inbox"), (
            "whatever ended since"
        )


async def test_of_more_than_a_thousand_tasks_one_bar_says_how_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = await shown(tmp_path, monkeypatch, progress(tasks=3_000))
    assert "waiting 2,997</li>" in text
    assert '<ul class="squares" ' not in text
    bar = text.partition('aria-label="Tasks by how they are"')[2].partition("</svg>")[0]
    assert re.findall(r"<title>([^<]*)", bar) == [
        "failed 1", "passed 1", "broken off 1", "running 1", "waiting 2,997",
    ]  # fmt: skip


async def test_a_killed_batch_says_so_and_one_of_a_fleet_leads_to_no_session_of_another_computer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = progress("killed", process=GONE)
    fleet = progress("fleet", exit_code=54, database="postgresql://host/f", running={})
    text = await shown(tmp_path, monkeypatch, gone, fleet, progress("all", exit_code=0, began_at=2_000))
    for words in ("Paused, as its program ended", "Its money is used up", "postgresql://host/f"):
        assert words in text, words
    killed = text.partition('id="batch-killed"')[2].partition('<ul class="squares key ')[0]
    assert ("about" in killed, killed.count('class="working"'), killed.count('class="waits"')) == (False, 0, 3)
    assert "run-1.a" not in text.partition('id="batch-fleet"')[2].partition("</section>")[0]
    assert text.index("batch-all") < text.index("batch-killed"), "the newest first"


async def test_without_a_batch_it_says_how_to_begin_one_and_a_broken_file_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "started together in a terminal of this computer" in await shown(tmp_path, monkeypatch)
    (tmp_path / "home" / "batches").mkdir()
    (tmp_path / "home" / "batches" / "x.json").write_text("{")
    keep_progress(progress())
    assert [one.run for one, _ in known_batches()] == ["run-1"]


async def test_each_kind_of_failure_has_a_bar_by_its_number_and_leads_to_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [TaskMark(id=f"t{n}", state="failed", kind="check", session=f"run-1.t{n}") for n in range(60)]
    late = [TaskMark(id=f"late{n}", state="error", kind="steps") for n in range(15)]
    text = await shown(tmp_path, monkeypatch, progress(ended=(DONE, *late, *broken), before=(), exit_code=0))
    second, first = re.findall(r"<details id=.*?</details>", text, re.DOTALL)
    assert [one.count("<li>") for one in (first, second)] == [50, 15]
    assert [re.findall(r'--danger\)" x="0" y="0" width="([\d.]+)"', one) for one in (first, second)] == [
        ["1000"],
        ["250.0"],
    ]
    assert "run-1.t0" in first
    assert "10 more" in first
    assert "Running" not in text


@pytest.mark.parametrize("now", ["run-1", "another", "", "{", "a pipe"])
async def test_a_batch_whose_folder_another_one_has_gives_no_results_and_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "results.jsonl").write_text('{"id": "a"}\n')
    if now == "a pipe":
        os.mkfifo(out / "batch.json")
    elif now:
        (out / "batch.json").write_text(now if now == "{" else f'{{"run": "{now}"}}')
    async with page_here(tmp_path, monkeypatch, ()) as here:
        keep_progress(progress(folder=str(out), process=GONE, command=("tasks.jsonl",), began_in=str(tmp_path)))
        text = await here.visit().get("/fleet/run-1")
        own = now != "another"
        assert [words in text for words in ("Download results", "Go on", "Add a task")] == [own] * 3
        assert (batch_results("run-1") is not None) == own
        if not own:
            assert begin_again("run-1") == "This batch cannot be begun from here now."
            assert "cannot be added" in add_task("run-1", {"prompt": "x"})
        shutil.rmtree(out)
        visit = here.visit()
        assert "Download results" not in await visit.get("/fleet/run-1"), "the folder is gone"
        assert (await visit.look("/fleet/run-1/results"))[0] == 404
