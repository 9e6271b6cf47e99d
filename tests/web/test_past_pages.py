"""What the review and the timeline serve, without a browser: hostile content, odd requests, and their outcome."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from tests.app.reviewing import ID, Worked, worked
from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.config.places import config_file
from treadle.app.history.offline import closed_session
from treadle.app.reports.session_review import review_marks
from treadle.protocol.attach import SessionStatus
from treadle.protocol.events import EditChecklist
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import Phase
from treadle.protocol.permissions import Mode, Question, QuestionKind
from treadle.protocol.tools import ChangeKind, CopyChange, CopyChanges
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.page_keys import Keys
from treadle.web.page_view import PageContent

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e</code><img src=x onerror=alert(2)>&amp;"
TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture
async def session() -> AsyncIterator[Worked]:
    async with worked() as found:
        yield found


@pytest.fixture
def client(session: Worked) -> TestClient:
    return visiting(SessionBook(session.work, {}))


def visiting(book: SessionBook) -> TestClient:
    keys = Keys()
    application, _ = web_application(book, keys, ["127.0.0.1:1"], cookie="c")

    async def below(scope: Scope, receive: Receive, send: Send) -> None:
        await application({**scope, "path": keys.base + scope["path"]}, receive, send)

    client = TestClient(
        below,
        base_url="http://127.0.0.1:1",
        headers={"origin": "http://127.0.0.1:1"},
        client=("127.0.0.1", 50_000),
    )
    entrance = keys.let_in(keys.token)
    assert entrance is not None
    client.headers.update({"x-treadle-key": entrance.key, "cookie": f"c={entrance.cookie}"})
    return client


async def test_a_session_whose_folder_is_gone_says_so(session: Worked, client: TestClient) -> None:
    await changed(session)
    session.work.rename(session.work.with_name("elsewhere"))
    for screen in ("review", "timeline", "context", "share"):
        page = client.get(f"/s/{ID}/{screen}", headers={"accept": "text/html"})
        assert (screen, page.status_code) == (screen, 400 if screen == "review" else 200)
    refused = client.get(f"/s/{ID}/review").json()
    assert refused["what"] == f"The folder {session.work} that the session worked in is not there."


class Refused(SessionBook):
    """A book on a disk that refuses to be read."""

    def past(self, session_id: str) -> Any:
        raise PermissionError(13, "Permission denied", f"/disk/{session_id}")


def test_what_the_disk_refuses_is_a_page_with_the_reason(session: Worked) -> None:
    page = visiting(Refused(session.work, {})).get(f"/s/{ID}", headers={"accept": "text/html"})
    assert (page.status_code, f"/disk/{ID}" in page.text, "<h1 " in page.text) == (500, True, True)


def two_changes(work: Path) -> None:
    (work / "a.txt").write_text(TEN.replace("line 2\n", "second\n").replace("line 9\n", "ninth\n"))


async def changed(session: Worked) -> Path:
    file = session.work / "a.txt"
    file.write_text(TEN)
    await session.step(lambda: two_changes(session.work))
    return file


async def test_a_file_with_lines_of_others_says_so_where_its_lines_are_counted(
    session: Worked, client: TestClient
) -> None:
    file = await changed(session)
    assert "with lines of others" not in client.get(f"/s/{ID}/review").text
    file.write_text(file.read_text() + "theirs\n")
    assert client.get(f"/s/{ID}/review").text.count("with lines of others") == 1


async def test_hostile_names_and_lines_are_inert_and_long_ones_are_cut(session: Worked, client: TestClient) -> None:
    name = HOSTILE.replace("/", "_")

    def work() -> None:
        (session.work / name).write_text(f"{HOSTILE}\n" + "y" * 10_000_000 + "\n")
        (session.work / "long.txt").write_text("z\n" * 6_000)

    await session.step(work)
    async with closed_session(session.store, ID, opened_checkpoints(session.store, session.row)) as closed:
        await closed.post(EditChecklist(text=HOSTILE))
    last = session.row.events
    pages = [
        client.get(f"/s/{ID}/{path}").text
        for path in ("review", "timeline", "timeline/rows", f"timeline/event/{last}", "review/file?path=long.txt")
    ]
    for page in pages:
        assert "<script>alert" not in page
        assert "<img" not in page
        assert not {"\x1b", "\u202e"} & set(page)
        assert len(page) < 2_000_000
    assert "Show 6,000 changed lines" in pages[0] or "Show 6000 changed lines" in pages[0]
    assert "&lt;script&gt;alert(1)" in pages[0]
    assert "more lines of this change" in pages[4]


async def test_a_change_is_taken_back_marked_and_undone_by_requests(session: Worked, client: TestClient) -> None:
    file = await changed(session)
    before = file.read_text()
    page = client.get(f"/s/{ID}/review").text
    trees = page.partition('data-trees="')[2].partition('"')[0].split(",")
    key = page.partition('data-key="')[2].partition('"')[0]
    said = {"trees": trees, "path": "a.txt", "hunks": [{"index": 0}], "marks": {key: "rejected", "x" * 99: "else"}}
    answer = client.post(f"/s/{ID}/review/take-back", json=said)
    assert (answer.status_code, answer.json()["files"], answer.json()["conflicts"]) == (200, ["a.txt"], [])
    assert file.read_text() == TEN.replace("line 9\n", "ninth\n")
    assert dict(review_marks(ID)) == {key: "rejected"}
    undone = client.post(f"/s/{ID}/restore", json=answer.json()["undo"])
    assert (undone.status_code, file.read_text()) == (200, before)
    text = client.get(f"/s/{ID}/review/text?path=a.txt&index=1").json()
    assert text == {"text": "ninth\n"}
    comments = [{"path": "a.txt", "index": 1, "text": "Why?"}]
    message = client.post(f"/s/{ID}/review/message", json={"trees": trees, "comments": comments}).json()["text"]
    assert "-line 9\n+ninth\n```\n\nWhy?" in message


async def test_nothing_is_taken_back_while_another_process_has_the_session(session: Worked, client: TestClient) -> None:
    file = await changed(session)
    before = file.read_text()
    await session.store.acquire(ID)
    answer = client.post(f"/s/{ID}/review/take-back", json={"path": "a.txt", "hunks": []})
    assert (answer.status_code, answer.json()["code"], file.read_text()) == (404, "session-busy", before)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("review?from=99", 404),
        ("review?from=x", 400),
        ("review?from=9999999999999", 400),
        ("review?trees=../../etc", 400),
        (f"review?trees={'0' * 64}", 500),
        ("review/file?path=/etc/passwd", 400),
        ("review/text?path=a.txt&index=-1", 400),
        ("review/text?path=a.txt&index=7", 400),
        ("timeline?at=-1", 400),
        ("timeline?at=99999999999999", 400),
        ("timeline?at=999999", 200),
        ("timeline?topic=nonsense", 200),
        ("timeline/event/0", 404),
        ("timeline/event/x", 400),
    ],
)
async def test_an_odd_request_is_refused_in_words(session: Worked, client: TestClient, path: str, status: int) -> None:
    await changed(session)
    answer = client.get(f"/s/{ID}/{path}")
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["what"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("review/take-back", {"path": "../x", "hunks": []}, 400),
        ("review/take-back", {"path": "a.txt", "hunks": [{"index": 5}]}, 400),
        ("review/take-back", {"path": "a.txt", "hunks": [{"index": -1}]}, 400),
        ("review/take-back", {"path": "a.txt", "trees": ["zz"]}, 400),
        ("restore", {"checkpoint": 1}, 400),
        ("restore", {"checkpoint": 1, "files": True, "to": -5}, 400),
        ("restore", {"checkpoint": 77, "files": True}, 404),
        ("restore/preview", {"checkpoint": 77, "files": True}, 404),
        ("timeline/fork", {"seq": 1}, 404),
    ],
)
async def test_an_odd_wish_changes_nothing(
    session: Worked, client: TestClient, path: str, body: dict[str, object], status: int
) -> None:
    file = await changed(session)
    before, events = file.read_text(), session.row.events
    answer = client.post(f"/s/{ID}/{path}", json=body)
    assert (answer.status_code, file.read_text(), session.row.events) == (status, before, events)


async def test_a_session_without_changes_and_one_that_is_not_there_have_pages(
    session: Worked, client: TestClient
) -> None:
    assert "This session has changed no files." in client.get(f"/s/{ID}/review").text
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text("[checkpoints]\nenabled = false\n")
    for path in ("review", "review/panel"):
        assert "Checkpoints are off: checkpoints.enabled is false" in client.get(f"/s/{ID}/{path}").text
    gone = client.get("/s/nothing/review", headers={"accept": "text/html"})
    assert (gone.status_code, "<h1 " in gone.text) == (404, True)
    assert client.get(f"/s/{ID}/news").json().items() >= {"events": 1, "steps": 0, "checkpoints": 0}.items()


async def test_a_preview_comes_from_a_checkpoint(session: Worked, client: TestClient) -> None:
    file = await changed(session)
    preview = client.post(f"/s/{ID}/restore/preview", json={"checkpoint": 1, "files": True}).json()["html"]
    assert "write" in preview
    assert '<span class="sg" role="img" aria-label="added">+</span><span class="tx">line 2</span>' in preview
    assert client.post(f"/s/{ID}/restore", json={"checkpoint": 1, "files": True}).json()["files"] == ["a.txt"]
    assert file.read_text() == TEN


class _Asked(Struct):
    """A session that is open, and in which a question waits."""

    session: "_Asked | None" = None
    questions: tuple[Question, ...] = ()
    workspace: str = "/ws"
    roots: tuple[str, ...] = ()
    own: bool = True
    empty: bool = True
    status: Any = None
    content: Any = None


class _AskingBook(SessionBook):
    @property
    def opened(self) -> Any:
        changes = CopyChanges(
            digest="d",
            changes=(CopyChange(path="/ws/made.txt", kind=ChangeKind.ADDED, added=1, removed=0),),
            diff="--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1,1 @@\n+<script>made</script>\n",
        )
        question = Question(id="q", kind=QuestionKind.PERMISSION, text="Keep these changes?", copy=changes)
        status = SessionStatus(
            phase=Phase.AWAITING_USER_CONFIRMATION,
            turn_active=True,
            mode=Mode.ASK,
            model="m",
            tool_protocol=ToolProtocol.NATIVE,
            questions=(question,),
        )
        content = PageContent("/ws")
        return {ID: _Asked(session=_Asked(status=status), questions=(question,), content=content)}


async def test_what_a_command_left_in_its_copy_is_shown_while_its_question_is_open(session: Worked) -> None:
    await changed(session)
    page = visiting(_AskingBook(session.work, {})).get(f"/s/{ID}/review").text
    assert "A command waits for your answer: Keep these changes?" in page
    assert "A made.txt  +1 −0" in page
    assert '<span class="tx">&lt;script&gt;made' in page
    assert "A command waits" not in visiting(SessionBook(session.work, {})).get(f"/s/{ID}/review").text


async def test_what_others_changed_is_named_below_the_files_of_the_session(session: Worked, client: TestClient) -> None:
    await changed(session)
    (session.work / "theirs.txt").write_text("theirs\n")
    page = client.get(f"/s/{ID}/review").text
    own, _, others = (
        page.partition('<nav class="tree"')[2].partition("</nav>")[0].partition("Changed by others meanwhile")
    )
    assert ("a.txt" in own, "theirs.txt" in own, "theirs.txt" in others) == (True, False, True)
    assert "1 file changed by others meanwhile" in page
