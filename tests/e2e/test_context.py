"""What was sent to the model, block by block; making room by hand; and what stays in the conversation for good."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.needed import require
from tests.pictures import drawn_png
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import Expectation, MakeCall, Refuse, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

MODEL = "anthropic-compatible/main"
PRICED = f'[models."{MODEL}"]\ncontext_window = 200000\ninput_price = 3.0\noutput_price = 15.0\n'


def call(name: str, **arguments: Any) -> MakeCall:
    return MakeCall(name=name, arguments=arguments)


def lay_out(folder: Path, settings: str = PRICED) -> tuple[Program, Path]:
    work = folder / "work"
    work.mkdir()
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text(settings)
    for number in range(4):
        (work / f"f{number}.txt").write_text(f"line of file {number}\n" * 400)
    return Program(folder / "home"), work


async def headless(program: Program, work: Path, server: ScriptedServer, *words: str) -> Ended:
    return await program.run("-p", *words, "--model", MODEL, "--base-url", server.base_url, cwd=work)


async def test_the_request_is_shown_block_by_block_with_its_price(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    # What a tokenizer of about four bytes a token says of such requests.
    turns = [Turn(items=(call("read_file", path=f"f{number}.txt"),)) for number in range(4)]
    script = Script(turns=(*turns, Turn(items=(call("attempt_completion", result="Done."),))))
    async with ScriptedServer(script) as server:
        ended = await headless(program, work, server, "Read them.")
        assert ended.code == Exit.DONE, ended.err
    shown = await program.run("context", "--json", cwd=work)
    report = json.loads(shown.out)
    assert report["estimated"] == sum(block["tokens"] for block in report["blocks"])
    sources = [block["source"] for block in report["blocks"]]
    assert {"f0.txt", "f3.txt", "user", "environment", "tool read_file", "system: work"} <= set(sources)
    assert (
        sources.index("tool read_file")
        < sources.index("system: work")
        < sources.index("user")
        < sources.index("f0.txt")
    )
    assert all(block["price"] is not None for block in report["blocks"])
    assert report["difference"] == report["reported"] - report["estimated"]
    assert abs(report["difference"]) <= report["reported"] * 0.05
    first = json.loads((await program.run("context", "--json", "--step", "1", cwd=work)).out)
    assert "f0.txt" not in [block["source"] for block in first["blocks"]]
    raw = json.loads((await program.run("context", "--raw", cwd=work)).out)
    assert len(raw["messages"]) == len(server.requests[-1].body["messages"])
    words = (await program.run("context", cwd=work)).out
    assert "counted by the provider" in words
    (program.home / "config.toml").write_text("[context]\nkeep = 5\n")
    wrong = await program.run("context", cwd=work)
    assert "context.keep cannot be 5. It must be a number from 0.05 to 0.9." in wrong.err
    (program.home / "config.toml").write_text(PRICED)
    missing = await program.run("context", "--step", "99", cwd=work)
    assert missing.code != Exit.DONE
    assert "no step 99" in missing.err


async def test_a_session_without_a_step_says_so(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    ended = await program.run("context", cwd=work)
    assert "There is no session to continue" in ended.err


SUMMARY = "## Task\nRead the files.\n## Decisions\nThe names of the API stay.\n## Next step\nRead f3.txt."
ROOMY = PRICED.replace("200000", "60000")


FILES = 12


def chapters(work: Path) -> None:
    """Files that are long enough to fill the window."""
    for number in range(FILES):
        (work / f"chapter{number}.txt").write_text(f"marker-{number}.\n" + f"words of chapter {number}\n" * 300)


def reading(summary: SayText | Refuse) -> Script:
    """Read one chapter after the other; asked for a summary, give this."""
    asks = Expectation(last_user=Texts(contains=("about to lose its older messages",)))
    begins = Expectation(last_user=Texts(contains=("Read them all",)), messages=1)
    reads = [
        Turn(
            when=begins if number == 0 else Expectation(last_result=Texts(contains=(f"marker-{number - 1}.",))),
            items=(SayText(text=f"Now chapter {number}."), call("read_file", path=f"chapter{number}.txt")),
        )
        for number in range(FILES)
    ]
    ends = Turn(
        when=Expectation(last_result=Texts(contains=(f"marker-{FILES - 1}.",))),
        items=(call("attempt_completion", result="Done."),),
    )
    return Script(turns=(Turn(when=asks, items=(summary,)), *reads, ends))


async def events_of(program: Program, work: Path) -> list[dict[str, Any]]:
    (listed, *_) = (await program.run("sessions", "--json", cwd=work)).out.splitlines()
    log = (await program.run("show", "--events", json.loads(listed)["id"], cwd=work)).out
    return [json.loads(line)["data"] for line in log.splitlines()]


async def test_the_model_sums_up_what_leaves_and_goes_on_from_it(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path, f"{ROOMY}[context]\ncompact_at = 14000\n")
    chapters(work)
    async with ScriptedServer(reading(SayText(text=SUMMARY))) as server:
        ended = await headless(program, work, server, "Read them all.")
        assert (ended.code, ended.out.strip()) == (Exit.DONE, "Done."), ended.err
        requests = [str(request.body["messages"]) for request in server.requests]
    asked = [at for at, request in enumerate(requests) if "about to lose its older messages" in request]
    assert asked
    for at in asked:
        after = requests[at + 1]
        assert "The names of the API stay." in after
        assert "Read them all." in after
        assert len(after) < len(requests[at]) * 0.8
    events = await events_of(program, work)
    written = [event for event in events if event["type"] == "summary_written"]
    assert len(written) == len(asked)
    assert all(event["cost"] > 0 for event in written)
    spent = json.loads((await program.run("sessions", "--json", cwd=work)).out.splitlines()[0])["cost"]
    billed = sum(event["cost"] for event in events if event["type"] in {"reply_finished", "summary_written"})
    assert spent == pytest.approx(billed)
    assert "older messages removed to make room (" in ended.err
    left = json.loads((await program.run("context", "--left", "--json", cwd=work)).out)
    changes = {"removed": [], "added": []}  # type: dict[str, list[str]]
    for block in left["blocks"]:
        changes[block["change"]].append(block["source"])
    assert changes["added"] == ["summary"]
    assert "summary" in changes["removed"] or len(asked) == 1
    assert [one for one in changes["removed"] if one.startswith("chapter")]
    assert left["before"] > left["after"]
    words = (await program.run("context", "--left", cwd=work)).out
    assert words.startswith(f"The compaction at step {left['step']}: about {left['before']:,} tokens before")
    assert "\n+ " in words
    assert words.count("\n- ") == len(changes["removed"])
    assert "treadle context --left shows which." in (await program.run("context", cwd=work)).out


async def test_where_the_model_writes_no_summary_the_log_makes_one(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path, f'{ROOMY}[context]\ncompact_at = 14000\nstrategy = "summary"\n')
    chapters(work)
    async with ScriptedServer(reading(Refuse(status=400, message="no"))) as server:
        ended = await headless(program, work, server, "Read them all.")
        assert (ended.code, ended.out.strip()) == (Exit.DONE, "Done."), ended.err
        last = str(server.requests[-1].body["messages"])
    assert "Files that you read" in last
    assert "chapter0.txt" in last
    assert "Now chapter 0." in last
    assert next(one for one in await events_of(program, work) if one["type"] == "summary_written")["error"]


async def test_a_file_that_is_read_again_and_again_leaves_first(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path, f"{ROOMY}[context]\ncompact_at = 14000\n")
    (work / "f0.txt").write_text("version 0\n" + "line of the file\n" * 400)
    steps = [
        call("read_file", path="f0.txt")
        if number % 2 == 0
        else call(
            "replace_in_file",
            path="f0.txt",
            diff=f"------- SEARCH\nversion {number // 2}\n=======\nversion {number // 2 + 1}\n+++++++ REPLACE\n",
        )
        for number in range(24)
    ]
    most = [Turn(when=Expectation(assistant_messages=number), items=(step,)) for number, step in enumerate(steps)]
    done = Turn(when=Expectation(assistant_messages=24), items=(call("attempt_completion", result="Done."),))
    async with ScriptedServer(Script(turns=(*most, done))) as server:
        ended = await headless(program, work, server, "Read it often.", "--mode", "edits", "--max-steps", "30")
        last = str(server.requests[-1].body["messages"])
    events = await events_of(program, work)
    rooms = [event for event in events if event["type"] == "compacted"]
    assert rooms
    assert all(room.get("dropped", 0) == 0 and room["shortened"] for room in rooms)
    assert "f0.txt was read again later" in last
    assert (ended.code, ended.out.strip()) == (Exit.DONE, "Done."), ended.err


async def test_room_is_made_by_hand_and_a_pin_stays_whatever_leaves(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    asks = Expectation(last_user=Texts(contains=("about to lose its older messages", "keep the API names")))
    said = Turn(items=(SayText(text="The answer. " * 60),))
    script = Script(turns=(Turn(when=asks, items=(SayText(text=SUMMARY),)), *(said,) * 8), otherwise=said)
    async with ScriptedServer(script) as server:
        for number in range(4):
            more = ("--continue",) if number else ()
            assert (await headless(program, work, server, f"Question {number}.", *more)).code == Exit.DONE
        pinned = await headless(program, work, server, "/pin The port is 8080.", "--continue")
        assert (pinned.code, pinned.out.strip()) == (Exit.DONE, "Pinned.")
        before = len(server.requests)
        made = await headless(program, work, server, "/compact keep the API names", "--continue")
        assert made.code == Exit.DONE, made.err
        assert len(server.requests) == before + 1
        assert "older messages removed to make room (" in made.err + made.out
        listed = await headless(program, work, server, "/pin", "--continue")
        assert "The port is 8080." in listed.out
        assert (await headless(program, work, server, "Go on.", "--continue")).code == Exit.DONE
        last = str(server.requests[-1].body["messages"])
    report = json.loads((await program.run("context", "--json", cwd=work)).out)
    assert abs(report["difference"]) <= report["reported"] * 0.1, "room was made one request ago"
    for kept in ("The names of the API stay.", "The port is 8080.", "Question 0.", "Question 1.", "Question 2."):
        assert kept in last
    assert last.count("The answer.") == 60


OTHERS = f"""{PRICED}
[models."anthropic-compatible/small"]
input_price = 0.5
output_price = 1.0
[models."anthropic-compatible/tiny"]
context_window = 8000
input_price = 0.01
output_price = 0.01
[models."anthropic-compatible/dear"]
input_price = 30.0
output_price = 30.0
"""
COSTLY = "With anthropic-compatible/small, which you have configured, it would cost about $0.0"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (f"{OTHERS}[context]\ncostly_request = 0.1\n", True),
        (f"{OTHERS}[context]\ncostly_request = 0\n", False),
        (f"{OTHERS}[context]\ncostly_request = 2.0\n", False),
        (f"{PRICED}[context]\ncostly_request = 0.1\n", False),
    ],
)
async def test_a_cheaper_configured_model_is_named_before_a_costly_request_and_never_switched_to(
    tmp_path: Path, settings: str, told: bool
) -> None:
    program, work = lay_out(tmp_path, settings)
    (work / "long.txt").write_text("some words of a long text\n" * 7_000)
    async with ScriptedServer(Script(turns=(Turn(items=(SayText(text="Fine."),)),) * 2)) as server:
        ended = await headless(program, work, server, "Read this.", "--file", "long.txt")
        assert {request.body["model"] for request in server.requests} == {"main"}
    assert (COSTLY in ended.err, "/model anthropic-compatible/small" in ended.err) == (told, told), ended.err
    assert ended.err.count("The next request has about") == told


async def test_the_variant_with_a_longer_window_is_asked_for_and_has_its_window_and_price(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path, "")
    program = Program(program.home, {"ANTHROPIC_API_KEY": "k"})
    script = Script(turns=(Turn(items=(SayText(text="Fine."),)),), otherwise=Turn(items=(SayText(text="Fine."),)))
    named = "anthropic/claude-sonnet-4-5:1m"
    (work / "long.txt").write_text("".join(f"{number} words of a long text {number}\n" for number in range(11_000)))
    files = ("--file", "long.txt") * 3
    async with ScriptedServer(script) as server:
        flags = ("--base-url", server.base_url)
        ended = await program.run("-p", "Read.", *files, "--model", named, *flags, cwd=work)
        assert ended.code == Exit.DONE, ended.err
        short = await program.run("-p", "Read.", *files, "--model", named.removesuffix(":1m"), *flags, cwd=work)
        assert "does not fit" in short.err or "too long" in short.err or "larger than" in short.err, short.err
        (sent, *_) = server.requests
        assert (sent.body["model"], sent.headers["anthropic-beta"]) == ("claude-sonnet-4-5", "context-1m-2025-08-07")
    sessions = [json.loads(line) for line in (await program.run("sessions", "--json", cwd=work)).out.splitlines()]
    used = json.loads((await program.run("context", "--json", sessions[-1]["id"], cwd=work)).out)
    assert used["reported"] > 200_000
    assert sessions[-1]["cost"] >= used["reported"] * 6 / 1_000_000
    assert sum(block["price"] for block in used["blocks"]) == pytest.approx(used["estimated"] * 6 / 1_000_000)
    listed = (await program.run("models", "--all", "anthropic/claude-sonnet-4-5:1m", cwd=work)).out
    assert "1,000,000" in listed
    assert "above 200,000 tokens: 6 in, 22.5 out" in listed


async def test_an_image_that_is_too_large_is_scaled_and_the_user_is_told(tmp_path: Path) -> None:
    require("PIL")
    program, work = lay_out(tmp_path)
    (work / "shot.png").write_bytes(drawn_png(9_000, 600))
    read = Turn(items=(call("read_file", path="shot.png"),))
    async with ScriptedServer(Script(turns=(read, Turn(items=(SayText(text="Fine."),))))) as server:
        ended = await headless(program, work, server, "Look.", "--file", "shot.png")
        sent = server.requests[-1].body["messages"]
    told = "shot.png is 9,000 by 600 pixels and was scaled to 2,000 by 133."
    assert (ended.code, told in ended.err) == (Exit.DONE, True), ended.err
    assert str(sent).count("'type': 'image'") == 2
    assert f"[{told}]" in str(sent)
    shown = json.loads((await program.run("context", "--json", cwd=work)).out)
    (block,) = [block for block in shown["blocks"] if block["source"] == "image"]
    assert block["tokens"] > 0
    assert block["price"] is not None


async def test_the_question_about_a_summary_is_left_with_esc_and_the_conversation_stays(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    asks = Expectation(last_user=Texts(contains=("about to lose its older messages",)))
    said = Turn(items=(SayText(text="The answer. " * 60),))
    last = Turn(when=Expectation(last_user=Texts(contains=("Go on.",))), items=(SayText(text="It went on."),))
    script = Script(turns=(Turn(when=asks, items=(SayText(text=SUMMARY),)), last, *(said,) * 8), otherwise=said)
    async with ScriptedServer(script) as server:
        for number in range(4):
            more = ("--continue",) if number else ()
            assert (await headless(program, work, server, f"Question {number}.", *more)).code == Exit.DONE
        flags = ("--model", MODEL, "--base-url", server.base_url, "--directory", str(work), "--continue")
        async with on_terminal(program, *flags) as terminal:
            await terminal.until_shown("Question 3.")
            terminal.type("/compact\r")
            await terminal.until_shown("Use this summary of them?")
            (listed,) = (await program.run("sessions", "--json", cwd=work)).out.splitlines()
            assert json.loads(listed)["state"] == "waiting"
            await asyncio.sleep(1)  # a key that follows at once is typing
            terminal.type("\x1b")
            await terminal.until(lambda shown: "Use this summary" not in shown, "without the question")
            terminal.type("Go on.")
            await asyncio.sleep(1)
            terminal.type("\r")
            await terminal.until_shown("It went on.")
    assert "Question 0." in str(server.requests[-1].body["messages"])
