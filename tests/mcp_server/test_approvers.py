"""Whose word an approval is: that of the user of the client whose task it is, whoever calls."""

from typing import Any

import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, ErrorData

from tests.mcp_server.serving import (
    DONE,
    TOKEN,
    WRITE,
    Person,
    Place,
    accept,
    call,
    client,
    refused,
    serving_http,
    text,
    until,
    use,
)
from tests.mcp_server.test_serving import http

DISMISSED = ElicitResult(action="cancel")


async def waiting(connected: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Give what names the open question of a task."""
    found = await until(connected, task, "needs_answer")
    return {"task_id": task["task_id"], "question_id": found["questions"][0]["id"]}


@pytest.mark.parametrize("caller_has_forms", [True, False])
@pytest.mark.parametrize("joins", [True, False])
@pytest.mark.parametrize("owner_has_forms", [True, False])
async def test_a_client_approves_only_where_neither_it_nor_the_owner_can_ask(
    place: Place, owner_has_forms: bool, joins: bool, caller_has_forms: bool
) -> None:
    owner = Person([DISMISSED]) if owner_has_forms else None
    caller = Person([DISMISSED]) if caller_has_forms else None
    async with (
        serving_http(place) as (_, address),
        http(TOKEN) as first,
        http(TOKEN) as second,
        client(streamable_http_client(address, http_client=first), "legacy", owner) as one,
        client(streamable_http_client(address, http_client=second), "legacy", caller) as other,
    ):
        task = await use(one, "start_task", task="Write a.txt.")
        if joins:
            await use(other, "join_task", session_id=task["task_id"])
        given = await waiting(one, task)
        if owner_has_forms or caller_has_forms:
            words = await refused(other, "answer_question", decision="allow_once", **given)
            assert ("Call task_result" if caller_has_forms else f"treadle --attach {task['task_id']}") in words
            await use(other, "answer_question", decision="reject_once", **given)
        else:
            await use(other, "answer_question", decision="allow_once", **given)
        await until(other, task, "done")
    assert (place.folder / "a.txt").exists() is not (owner_has_forms or caller_has_forms)


async def test_the_progress_of_a_call_rises_over_all_of_its_forms(place: Place) -> None:
    write = [{**WRITE, "arguments": {"path": f"{name}.txt", "content": "x\n"}} for name in "abc"]
    place.script(*([text("Next."), one] for one in write), [DONE])
    person, seen = Person([accept(decision="allow_once", comment="")] * 3), list[float]()

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with client(place.stdio(), "legacy", person) as connected:
        task = await use(connected, "start_task", task="Write.")
        await connected.call_tool("task_result", {"task_id": task["task_id"]}, progress_callback=progress)
    assert len(person.shown) == 3
    assert len(seen) > 3
    assert seen == sorted(set(seen))


async def test_a_form_that_a_client_cannot_show_is_an_error_that_says_what_to_do(place: Place) -> None:
    class Broken(Person):
        async def __call__(self, context: object, params: Any) -> Any:
            return ErrorData(code=-32000, message="no ui")

    async with client(place.stdio(), "legacy", Broken([])) as connected:
        task = await use(connected, "start_task", task="Write a.txt.")
        words = await refused(connected, "task_result", task_id=task["task_id"])
        assert ("no ui" in words, f"treadle --attach {task['task_id']}" in words) == (True, True)
        (question,) = (await use(connected, "task_status", task_id=task["task_id"]))["questions"]
        given = {"task_id": task["task_id"], "question_id": question["id"]}
        await use(connected, "answer_question", decision="reject_once", **given)


async def test_a_task_that_is_closed_lists_no_questions(place: Place) -> None:
    place.script([call("ask_followup_question", question="Which?")], [DONE])
    async with client(place.stdio(), "legacy") as connected:
        task = await use(connected, "start_task", task="Ask.")
        await until(connected, task, "needs_answer")
        closed = await use(connected, "close_task", task_id=task["task_id"])
    assert (closed["state"], closed["questions"]) == ("closed", [])
