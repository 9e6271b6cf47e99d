"""Clients of both eras start, follow, answer and steer tasks."""

import asyncio
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult

from tests.e2e.running import PATIENCE, log_of
from tests.mcp_server.serving import (
    ASK,
    DONE,
    ERAS,
    WRITE,
    Person,
    Place,
    accept,
    call,
    client,
    refused,
    text,
    until,
    use,
    wait,
)
from treadle.app.security.trusting import session_trust
from treadle.protocol.events import Answer, Prompt, Source
from treadle.protocol.messages import Text

both = pytest.mark.parametrize("era", ERAS)
one = pytest.mark.parametrize("era", ERAS[1:])


@both
async def test_a_whole_task_with_an_approval_and_a_question_that_the_clients_user_answers(
    place: Place, era: str
) -> None:
    place.script([text("I write it."), WRITE], [ASK], [DONE])
    person = Person([accept(decision="allow_once", comment="Use spaces."), accept(answer="Blue.")])
    told: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with client(place.stdio(), era, person) as connected:
        task = await use(connected, "start_task", task="Write a.txt.")
        assert (task["state"], task["folder"], task["trusted"]) == ("working", str(place.folder), False)
        found = task
        async with asyncio.timeout(PATIENCE):
            while found["state"] != "done":
                arguments = {"task_id": task["task_id"]}
                result = await connected.call_tool("task_result", arguments, progress_callback=progress)
                assert result.structured_content is not None
                found = result.structured_content
        diff = await use(connected, "task_diff", task_id=task["task_id"])
    assert (found["answer"], found["steps"], found["error"], found["cost"]) == ("It is done.", 3, "", 0.0)
    assert found["changes"] == [{"path": str(place.folder / "a.txt"), "added": 1, "removed": 0}]
    assert (place.folder / "a.txt").read_text() == "hello\n"
    assert diff["files"] == [f"added {place.folder / 'a.txt'}"]
    assert "+hello" in diff["diff"]
    approval, question = person.shown
    assert approval.startswith("Create a.txt? [q")
    assert "+hello" in approval
    assert question.startswith("Which colour? [q")
    assert "Create a.txt (+1 -0)" in told
    answers = [(event.source, event.data.text) for event in log_of(place.home) if isinstance(event.data, Answer)]
    assert answers == [(Source(kind="mcp", id="mcp"), "Use spaces."), (Source(kind="mcp", id="mcp"), "Blue.")]


@both
async def test_all_that_a_task_asks_is_asked_in_one_call_but_never_without_end(place: Place, era: str) -> None:
    writes = [call("write_to_file", path=f"{number}.txt", content="hello\n") for number in range(6)]
    place.script(*([one] for write in writes for one in (write, ASK)), [DONE])
    yes, blue = accept(decision="allow_once", comment=""), accept(answer="Blue.")
    person = Person([yes, blue] * 6)
    async with client(place.stdio(), era, person) as connected:
        task = await use(connected, "start_task", task="Write a.txt.")
        first = await use(connected, "task_result", task_id=task["task_id"])
        assert (first["state"], len(person.shown)) == ("needs_answer", 8)
        second = await use(connected, "task_result", task_id=task["task_id"])
    assert (second["state"], len(set(person.shown)), person.answers) == ("done", 12, [])
    assert len(list(place.folder.iterdir())) == 6


@one
async def test_an_answer_is_only_for_the_task_whose_question_was_shown(place: Place, era: str) -> None:
    async with client(place.stdio(), era, Person([])) as connected:
        tasks = [await use(connected, "start_task", task="Write a.txt.") for _ in range(2)]
        session = connected.session
        arguments = [{"task_id": task["task_id"]} for task in tasks]
        asked = await session.call_tool("task_result", arguments[0], allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        (name,) = asked.input_requests or {}
        responses: Any = {name: accept(decision="allow_once", comment="")}
        for wanted, state in ((arguments[1], asked.request_state), (arguments[0], f"{asked.request_state}x")):
            with pytest.raises(MCPError, match="requestState"):
                await session.call_tool("task_result", wanted, request_state=state, input_responses=responses)
        assert list(place.folder.iterdir()) == []


@both
async def test_without_a_form_the_question_waits_until_it_is_answered_by_its_id(place: Place, era: str) -> None:
    async with client(place.stdio(), era) as connected:
        task = await use(connected, "start_task", task="Write a.txt.")
        waiting = await until(connected, task, "needs_answer")
        (question,) = waiting["questions"]
        assert (question["kind"], question["options"]) == ("permission", ["allow_once", "allow_always", "reject_once"])
        assert "+hello" in question["text"]
        status = await use(connected, "task_status", task_id=task["task_id"])
        assert status["questions"] == [question]
        assert list(place.folder.iterdir()) == []
        arguments = {"task_id": task["task_id"], "decision": "allow_once"}
        assert "no open question 'q0'" in await refused(connected, "answer_question", question_id="q0", **arguments)
        await use(connected, "answer_question", question_id=question["id"], **arguments)
        assert (
            "already answered"
            in (words := await refused(connected, "answer_question", question_id=question["id"], **arguments))
            or "no open question" in words
        )
        assert (await until(connected, task, "done"))["answer"] == "It is done."
    assert (place.folder / "a.txt").exists()


@both
@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (accept(decision="reject_once", comment="Not here."), "done"),
        (ElicitResult(action="decline"), "done"),
        (ElicitResult(action="cancel"), "needs_answer"),
    ],
)
async def test_nothing_but_a_yes_lets_a_call_run(place: Place, era: str, answer: ElicitResult, state: str) -> None:
    person = Person([answer])
    async with client(place.stdio(), era, person) as connected:
        task = await use(connected, "start_task", task="Write a.txt.")
        assert (await use(connected, "task_result", task_id=task["task_id"]))["state"] == state
    assert list(place.folder.iterdir()) == []


@one
@pytest.mark.parametrize("content", [{}, {"decision": "yes"}, {"decision": "allow_once", "comment": 5}])
async def test_a_form_that_does_not_fit_allows_nothing(place: Place, era: str, content: dict[str, Any]) -> None:
    person = Person([ElicitResult.model_construct(action="accept", content=content)])
    async with client(place.stdio(), era, person) as connected:
        task = await use(connected, "start_task", task="Write a.txt.")
        assert await refused(connected, "task_result", task_id=task["task_id"])
        assert (await use(connected, "task_status", task_id=task["task_id"]))["state"] == "needs_answer"
    assert list(place.folder.iterdir()) == []


@both
@pytest.mark.parametrize(("decision", "trusted"), [("trust", True), ("not_now", False), ("never", False)])
async def test_a_folder_is_trusted_once_the_clients_user_said_so(
    place: Place, era: str, decision: str, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.folder / "AGENTS.md").write_text("Be kind.\n")
    place.script([DONE], [DONE])
    person = Person([accept(decision=decision), accept(decision=decision)])
    async with client(place.stdio(), era, person) as connected:
        first = await use(connected, "start_task", task="One.")
        again = await use(connected, "start_task", task="Two.")
    assert [first["trusted"], again["trusted"]] == [trusted, trusted]
    assert len(person.shown) == (2 if decision == "not_now" else 1)
    assert person.shown[0].startswith(f"Do you trust this folder? {place.folder}\n")
    assert "AGENTS.md" in person.shown[0]
    monkeypatch.setenv("TREADLE_HOME", str(place.home))
    assert (session_trust(place.folder).trusted, session_trust(place.folder).trust.refused) == (
        trusted,
        decision == "never",
    )


@both
async def test_a_folder_is_asked_about_when_a_session_in_it_is_taken_up_again(place: Place, era: str) -> None:
    (place.folder / "AGENTS.md").write_text("Be kind.\n")
    person = Person([accept(decision="not_now"), accept(decision="trust")])
    async with client(place.stdio(), era, person) as connected:
        task = await use(connected, "start_task", task="One.")
        assert task["trusted"] is False
        name = {"session_id": task["task_id"]}
        assert (await use(connected, "join_task", **name))["trusted"] is False
        await use(connected, "close_task", task_id=task["task_id"])
        assert (await use(connected, "join_task", **name))["trusted"] is True
    assert ["AGENTS.md" in words for words in person.shown] == [True, True]


@one
async def test_without_a_form_a_folder_stays_untrusted_and_a_notice_says_so(place: Place, era: str) -> None:
    (place.folder / "AGENTS.md").write_text("Be kind.\n")
    async with client(place.stdio(), era) as connected:
        task = await use(connected, "start_task", task="One.")
    assert task["trusted"] is False
    assert task["notices"][0].startswith("untrusted: not used: AGENTS.md.")


@one
async def test_only_the_folders_of_the_server_are_worked_in(place: Place, era: str) -> None:
    other, below, link = place.root / "other", place.folder / "below", place.folder / "link"
    for one in (other, below, place.root / "secret"):
        one.mkdir()
    link.symlink_to(place.root / "secret")
    async with client(place.stdio("--add-dir", str(other)), era) as connected:
        for folder in (str(other), str(below), "below"):
            assert (await use(connected, "start_task", task="x", folder=folder))["folder"].endswith(folder[-5:])
        for folder in ("/etc", str(link), "link", "..", str(place.home), "~"):
            words = await refused(connected, "start_task", task="x", folder=folder)
            assert "does not work in" in words or "There is no folder" in words or "too wide" in words


@one
async def test_an_approval_is_the_users_where_the_client_can_ask_them(place: Place, era: str) -> None:
    person = Person([ElicitResult(action="cancel")])
    async with client(place.stdio(), era, person) as connected:
        task = await use(connected, "start_task", task="Write a.txt.")
        waiting = await use(connected, "task_result", task_id=task["task_id"])
        given = {"task_id": task["task_id"], "question_id": waiting["questions"][0]["id"]}
        for decision in ("allow_once", "allow_always"):
            words = await refused(connected, "answer_question", decision=decision, **given)
            assert "Call task_result" in words
        await use(connected, "answer_question", decision="reject_once", **given)
        assert (await until(connected, task, "done"))["changes"] == []
    assert list(place.folder.iterdir()) == []


@one
@pytest.mark.parametrize("can_ask", [True, False])
async def test_what_is_too_long_to_be_shown_whole_cannot_be_approved(place: Place, era: str, can_ask: bool) -> None:
    long = "".join(f"{number}\n" for number in range(30_000))
    place.script([call("write_to_file", path="a.txt", content=long)], [DONE])
    person = Person([accept(decision="allow_once", comment="")]) if can_ask else None
    async with client(place.stdio(), era, person) as connected:
        task = await use(connected, "start_task", task="Write a.txt.")
        if can_ask:
            await refused(connected, "task_result", task_id=task["task_id"])
        (question,) = (
            (await until(connected, task, "needs_answer"))["questions"]
            if not can_ask
            else (await use(connected, "task_status", task_id=task["task_id"]))["questions"]
        )
        assert question["options"] == ["reject_once"]
        assert question["text"].endswith(f"treadle --attach {task['task_id']}")
        given = {"task_id": task["task_id"], "question_id": question["id"]}
        await refused(connected, "answer_question", decision="allow_once", **given)
        await use(connected, "answer_question", decision="reject_once", **given)
        assert (await until(connected, task, "done"))["changes"] == []


@one
async def test_a_client_narrows_the_mode_and_never_widens_it(place: Place, era: str) -> None:
    async with client(place.stdio("--mode", "edits"), era) as connected:
        assert (await use(connected, "start_task", task="x", mode="plan"))["mode"] == "plan"
        task = await use(connected, "start_task", task="x", mode="edits")
        assert (await until(connected, task, "done"))["mode"] == "edits"
        for mode in ("auto", "full"):
            assert "may not widen the mode" in await refused(connected, "start_task", task="x", mode=mode)
    # A session that was wider is no way around it.
    async with client(place.stdio(), era) as connected:
        assert (await use(connected, "join_task", session_id=task["task_id"]))["mode"] == "ask"


@one
async def test_a_mode_of_the_settings_is_held_back_in_a_folder_that_is_not_trusted(place: Place, era: str) -> None:
    (place.folder / "AGENTS.md").write_text("Be kind.\n")
    place.home.mkdir()
    (place.home / "config.toml").write_text('mode = "full"\n')
    async with client(place.stdio(), era) as connected:
        task = await use(connected, "start_task", task="x", mode="full")
        assert (task["mode"], task["trusted"]) == ("ask", False)
        await use(connected, "close_task", task_id=task["task_id"])
        assert (await use(connected, "join_task", session_id=task["task_id"]))["mode"] == "ask"


@one
async def test_messages_queue_and_steer_and_each_gets_its_own_answer(place: Place, era: str) -> None:
    look = call("list_files", path=".")
    place.script([wait(5), look], [DONE], [text("Second.")])
    async with client(place.stdio(), era) as connected:
        task = await use(connected, "start_task", task="First.")
        name = {"task_id": task["task_id"]}
        await use(connected, "send_message", text="Be quick.", steer=True, **name)
        later = await use(connected, "send_message", text="And then?", **name)
        assert later["queued"] >= 1
        found = await until(connected, task, "done")
    assert found["answer"] == "Second."
    prompts = [(event.source.id, event.data.content) for event in log_of(place.home) if isinstance(event.data, Prompt)]
    assert prompts == [
        ("mcp 1", (Text(text="First."),)),
        ("mcp 2", (Text(text="Be quick."),)),
        ("mcp 3", (Text(text="And then?"),)),
    ]


@one
async def test_a_task_is_interrupted_closed_listed_and_joined_again(place: Place, era: str) -> None:
    place.script([wait(60), text("late")], when={"Again.": [text("Back.")]})
    async with client(place.stdio(), era) as connected:
        task = await use(connected, "start_task", task="Wait.")
        name = {"task_id": task["task_id"]}
        short = await use(connected, "task_result", wait_seconds=0.05, **name)
        assert (short["state"], short["next"]) == ("working", "Call task_result to wait for it.")
        assert (await use(connected, "interrupt_task", **name))["state"] == "stopped"
        assert "nothing is running" in await refused(connected, "interrupt_task", **name)
        assert [one["task_id"] for one in (await use(connected, "list_tasks"))["tasks"]] == [task["task_id"]]
        assert (await use(connected, "close_task", **name))["state"] in ("stopped", "closed")
        assert "No task" in await refused(connected, "task_status", **name)
        listed = await use(connected, "list_tasks")
        assert (listed["tasks"], listed["sessions"]) == (
            [],
            [{"session_id": task["task_id"], "folder": str(place.folder), "title": "Wait."}],
        )
        again = await use(connected, "join_task", session_id=task["task_id"])
        assert (again["task_id"], again["state"]) == (task["task_id"], "idle")
        assert (await use(connected, "join_task", session_id=task["task_id"]))["task_id"] == task["task_id"]
        await use(connected, "send_message", text="Again.", **name)
        assert (await until(connected, task, "done"))["answer"] == "Back."


@one
async def test_a_task_that_a_hook_keeps_back_names_the_reason_and_no_task(place: Place, era: str) -> None:
    place.home.mkdir()
    hook = 'hooks = [{type = "command", command = "echo Not today. >&2; exit 2"}]'
    (place.home / "config.toml").write_text(f"[[hooks.UserPromptSubmit]]\n{hook}\n")
    async with client(place.stdio(), era) as connected:
        said = await refused(connected, "start_task", task="Go.")
    assert "A hook kept the message from being sent. Not today. It comes from the UserPromptSubmit hook" in said
    assert "task_status" not in said


@one
async def test_several_tasks_at_once_do_not_wait_for_each_other(place: Place, era: str) -> None:
    async with client(place.stdio("--mode", "edits"), era) as connected:
        tasks = await asyncio.gather(*(use(connected, "start_task", task=f"Task {one}.") for one in range(4)))
        assert len({task["task_id"] for task in tasks}) == 4
        found = await asyncio.gather(*(until(connected, task, "done") for task in tasks))
    assert [one["answer"] for one in found] == ["It is done."] * 4
