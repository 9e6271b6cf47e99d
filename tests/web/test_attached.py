"""Sessions that another program has open: the page follows them and answers in them, and leaves them open."""

import asyncio
from pathlib import Path

import pytest

from tests.e2e.faults.driving import attended, run
from tests.web.in_process import HOST, PATIENCE, Visit, until
from treadle.protocol.permissions import OptionKind
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.page_keys import Keys


async def test_a_question_of_another_program_is_answered_on_the_page_and_its_session_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attended(tmp_path, monkeypatch, run("git push origin main")) as there:
        await there.begin()
        question = await there.asked()
        keys, changed = Keys(), asyncio.Event()
        async with SessionBook(tmp_path, {}, trust=True) as book:
            visit = Visit(web_application(book, keys, [HOST], cookie="page")[0], keys.let_in(keys.token), keys.base)
            with book.changed.notifying(changed):
                async with asyncio.timeout(PATIENCE):
                    while there.live.id not in book.opened:
                        await changed.wait()
                        changed.clear()
            path, page = f"/s/{there.live.id}", book.opened[there.live.id]
            assert "git push origin main" in await visit.get("/inbox")
            assert "It is open in another program." in await visit.get(f"{path}/menu")
            assert f'data-load="{path}/servers"' in await visit.get("/health")
            assert "No MCP servers are used here." in await visit.get(f"{path}/servers")
            answer = {"question_id": question.id, "option": OptionKind.REJECT_ONCE, "text": "not today"}
            await visit.done(f"{path}/answer", **answer)
            await there.ended()
            status, said = await visit.post(f"{path}/answer", **answer)
            assert (status, said["what"]) == (409, "Answered in browser 1: rejected.")
            await until(page, lambda: page.content.view.stop is not None)
            status, said = await visit.post(f"{path}/close")
            assert (status, said["code"]) == (404, "session-elsewhere")
        assert not there.live.closed


async def test_a_page_that_is_not_there_says_so_as_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    keys = Keys()
    async with SessionBook(tmp_path, {}, trust=True) as book:
        visit = Visit(web_application(book, keys, [HOST], cookie="page")[0], keys.let_in(keys.token), keys.base)
        status, html = await visit.look("/s/<b>")
        assert status == 404
        assert '<h1 class="cut">There is no session ' in html
        assert "Choose one of All sessions, in the column." in html
        assert "treadle sessions" not in html
        assert "/<b>" not in html.partition("<main")[0].partition("<title")[2]
        assert "<b>" not in html.partition("<main")[2]
        assert (await visit.look("/nothing"))[0] == 404
