"""The files that a session changed have one order, wherever they are listed: by name, folder by folder."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make
from tests.web.in_process import idle, page_here
from tests.web.test_commit import DONE, repository
from treadle.headless.progress import summary_lines
from treadle.present.items import TurnItem
from treadle.present.record_words import file_lines
from treadle.providers.scripted.script import Turn
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.printed_lines import item_lines
from treadle.tui.paint.theme import Signs

WRITTEN = ("b.txt", "a/x.txt", "Z.txt", "a-b.txt", "a.txt", "a/b/c.txt")
BY_NAME = ["Z.txt", "a/b/c.txt", "a/x.txt", "a-b.txt", "a.txt", "b.txt"]


def _named(lines: Iterable[str]) -> list[str]:
    """The files that lines name with their figures."""
    return [found[1] for line in lines if (found := re.match(r" *(\S+) +\(?\+\d+ -\d+\)?$", line))]


async def test_each_list_of_the_files_of_a_session_has_them_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    writes = Turn(items=tuple(make("write_to_file", path=name, content="1\n") for name in WRITTEN))
    async with page_here(tmp_path, monkeypatch, [writes, DONE], mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Write.")
        await idle(page)
        path = f"/s/{page.session.id}"
        (end,) = (one.item for one in page.content.items() if isinstance(one.item, TurnItem))
        shown = (await visit.get(path)).partition('<ul class="files">')[2].partition("</ul>")[0]
        review = await visit.get(f"{path}/review")
        lists = {
            "end": re.findall(r"<code[^>]*>([^<]*)</code>", shown),
            "panel": re.findall(r'data-path="([^"]*)"', await visit.get(f"{path}/review/panel")),
            "review": re.findall(r'<section class="file-changed"[^>]* data-path="([^"]*)"', review),
            "list beside the review": re.findall(r'class="viewed"[^>]* aria-label="(.*?) viewed"', review),
            "commit": re.findall(r'name="path" value="([^"]*)" checked', await visit.get(f"{path}/commit")),
            "export": _named(file_lines(end)),
            "script": [one.removeprefix(f"{here.folder}/") for one in _named(summary_lines(end.outcome))],
            "terminal": _named(map(line_text, item_lines(end, 99, Signs()))),
        }
        assert lists == dict.fromkeys(lists, BY_NAME)
