"""Python functions as tools."""

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.tools import (
    CallResult,
    FetchUrl,
    Origin,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.tools.functions import FunctionTool, FunctionTraits, function_tool, read_docstring
from treadle.tools.plugins import installed_tools
from treadle.tools.quoted_words import result_of


class Point(msgspec.Struct):
    x: int
    y: int = 0


def repeat(text: str, times: int = 2, style: Literal["plain", "loud"] = "plain") -> str:
    """Repeat a text.

    Use it for echoes.

    Args:
        text: What to repeat,
            word by word.
        times (int): How often.

    Returns:
        The text so many times.
    """
    if times > 100:
        raise ValueError("too often")
    return (text.upper() if style == "loud" else text) * times


async def locate(points: list[Point], limits: dict[str, float] | None = None) -> Any:
    """Find the middle."""
    await asyncio.sleep(0)
    return {"x": sum(point.x for point in points) / len(points), "points": points, "limits": limits}


async def call(tool: FunctionTool, **arguments: Any) -> CallResult:
    return await (await tool.prepare(arguments)).run(lambda _: None)


def test_signature_and_docstring_become_the_declaration() -> None:
    assert function_tool(repeat).spec == ToolSpec(
        name="repeat",
        description="Repeat a text.\n\nUse it for echoes.",
        parameters={
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to repeat, word by word."},
                "times": {"type": "integer", "default": 2, "description": "How often."},
                "style": {"enum": ["loud", "plain"], "default": "plain"},
            },
            "required": ["text"],
            "additionalProperties": False,
        },
        traits=ToolTraits(kind=ToolKind.OTHER, effect=ToolEffect.ONCE),
        risk=Risk.EXECUTE,
    )


def test_records_in_the_signature_are_described_too() -> None:
    parameters = function_tool(locate).spec.parameters
    assert parameters["properties"]["points"] == {"type": "array", "items": {"$ref": "#/$defs/Point"}}
    assert parameters["$defs"]["Point"]["required"] == ["x"]


def test_what_the_signature_cannot_tell_is_given() -> None:
    def look(url: Annotated[str, msgspec.Meta(description="Where.")]) -> str:
        """Look."""
        return url

    traits = FunctionTraits(risk=Risk.READ, effect=ToolEffect.PURE, kind=ToolKind.FETCH)
    spec = function_tool(look, name="peek", description="Peek.", traits=traits).spec
    assert (spec.name, spec.description, spec.risk, spec.traits) == (
        "peek",
        "Peek.",
        Risk.READ,
        ToolTraits(kind=ToolKind.FETCH, effect=ToolEffect.PURE),
    )
    assert spec.parameters["properties"] == {"url": {"type": "string", "description": "Where."}}


async def test_accesses_for_the_policy_are_told_from_the_arguments() -> None:
    traits = FunctionTraits(accesses=lambda arguments: (FetchUrl(url=arguments["text"]),))
    prepared = await function_tool(repeat, traits=traits).prepare({"text": "http://a.test/\x1b"})
    assert prepared.accesses == (FetchUrl(url="http://a.test/\x1b"),)
    assert prepared.preview == Preview(title="Call repeat", text="text: http://a.test/\\x1b")


async def test_plain_functions_and_coroutines_run() -> None:
    assert await call(function_tool(repeat), text="ab", style="loud") == result_of(Origin.COMMAND, Outcome.OK, "ABAB")
    assert await call(function_tool(locate), points=[{"x": 1}, {"x": 3}]) == result_of(
        Origin.COMMAND, Outcome.OK, '{"x":2.0,"points":[{"x":1,"y":0},{"x":3,"y":0}],"limits":null}'
    )


async def test_what_is_returned_becomes_text() -> None:
    def give(what: Any) -> Any:
        """Give."""
        return {"none": None, "empty": "", "escape": "\x1b[2J", "result": result_text(Outcome.FAILED, "no")}[what]

    tool = function_tool(give)
    assert await call(tool, what="none") == result_of(Origin.COMMAND, Outcome.OK, "Done.")
    assert await call(tool, what="empty") == result_of(Origin.COMMAND, Outcome.OK, "(empty)")
    assert await call(tool, what="escape") == result_of(Origin.COMMAND, Outcome.OK, "\\x1b[2J")
    assert await call(tool, what="result") == result_text(Outcome.FAILED, "no")


async def test_long_results_are_cut() -> None:
    (block,) = (await call(function_tool(repeat), text="0123456789" * 1000, times=10)).content
    assert "[... 67,232 characters left out ...]" in getattr(block, "text", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Object missing required field `text`"),
        ({"text": 1}, "Expected `str`, got `int` - at `$.text`"),
        ({"text": "a", "more": 1}, "Object contains unknown field `more`"),
        ({"text": "a", "style": "odd"}, "Invalid enum value 'odd' - at `$.style`"),
    ],
)
async def test_arguments_that_do_not_fit_are_told(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolError) as refused:
        await function_tool(repeat).prepare(arguments)
    assert refused.value.text == f"The arguments do not fit: {said}. Correct them and call again."
    assert refused.value.invalid


async def test_errors_of_the_function_are_for_the_model() -> None:
    async def refuse() -> None:
        """Refuse."""
        raise ToolError("Ask first.")

    with pytest.raises(ToolError, match=r"^repeat failed: ValueError: too often. Check the arguments"):
        await call(function_tool(repeat), text="a", times=101)
    with pytest.raises(ToolError, match=r"^Ask first\.$"):
        await call(function_tool(refuse))


class _EndOfItAll(BaseException):
    """No error by its kind."""


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, StopIteration, _EndOfItAll])
async def test_whatever_a_function_raises_ends_its_call_alone(kind: type[BaseException]) -> None:
    def end() -> None:
        """End."""
        raise kind(3)

    async def end_later() -> None:
        """End."""
        await asyncio.sleep(0)
        raise kind(3)

    with pytest.raises(ToolError, match=rf"^end failed: {kind.__name__}: 3\. Check the arguments"):
        await call(function_tool(end))
    with pytest.raises(ToolError, match=rf"^end_later failed: .*({kind.__name__}|3)\. Check the arguments"):
        await call(function_tool(end_later))


def test_the_program_does_not_wait_for_a_function_whose_call_was_cancelled() -> None:
    go_on, ended, said = threading.Event(), threading.Event(), list[str]()

    async def cancelled() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait() -> None:
            """Wait."""
            loop.call_soon_threadsafe(begun.set)
            go_on.wait(20)
            ended.set()

        prepared = await function_tool(wait).prepare({})
        running = asyncio.ensure_future(prepared.run(said.append))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert not ended.is_set()
    assert said == ["wait cannot be stopped: its function may still run, and do all that it was called for."]
    go_on.set()


async def test_what_cannot_be_sent_is_told_without_a_second_run() -> None:
    def give() -> Any:
        """Give."""
        return object()

    with pytest.raises(ToolError, match="give did its work, but returned a object, which cannot be sent"):
        await call(function_tool(give))


async def test_a_coroutine_ends_when_its_call_is_cancelled() -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = asyncio.ensure_future(call(function_tool(wait)))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()


async def test_each_call_has_defaults_of_its_own() -> None:
    def collect(item: str, into: list[str] = []) -> list[str]:  # noqa: B006 - what plugins do
        """Collect."""
        into.append(item)
        return into

    tool = function_tool(collect)
    assert await call(tool, item="a") == await call(tool, item="a") == result_of(Origin.COMMAND, Outcome.OK, '["a"]')


def test_functions_that_are_no_tools_are_refused_with_the_reason() -> None:
    def no_hint(a) -> None:  # type: ignore[no-untyped-def]
        """Do."""

    def no_docstring(a: int) -> None: ...

    def any_number(*a: int) -> None:
        """Do."""

    def no_json(a: Path, b: "asyncio.Event") -> None:
        """Do."""

    def refusal(function: Any, **options: Any) -> str:
        with pytest.raises(ConfigError) as refused:
            function_tool(function, **options)
        return f"{refused.value.what} {refused.value.fix}"

    assert refusal(no_hint) == (
        "no_hint cannot become a tool: its parameter a has no type hint. Add one, such as `str`."
    )
    assert "it has no docstring. Write one" in refusal(no_docstring)
    assert "its parameter *a: int cannot be passed by name" in refusal(any_number)
    assert "Use types that JSON can express." in refusal(no_json)
    assert "letters, digits and `_` only" in refusal(repeat, name="a b")


def test_a_docstring_is_its_text_and_its_parameters() -> None:
    assert read_docstring("One.\n\nTwo:\n  three\nRaises:\n  x: y") == ("One.\n\nTwo:\n  three", {})
    assert read_docstring("One.\nArgs:\n  a: A\n  *b (list): B\n\n    more: of b\nNote: x") == (
        "One.\nNote: x",
        {"a": "A", "b": "B more: of b"},
    )


def package(directory: Path, name: str, entry_points: str) -> None:
    info = directory / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[treadle.tools]\n{entry_points}")


def test_tools_of_installed_packages_are_found_and_faults_are_told(tmp_path: Path) -> None:
    here = __name__
    package(tmp_path, "good", f"a = {here}:repeat\nb = {here}:OFFERED\n")
    package(tmp_path, "bad", f"c = {here}:nothing\nd = no_such_module\ne = {here}:HERE\nf = {here}:repeat\n")
    found = installed_tools([str(tmp_path)])
    assert [tool.spec.name for tool in found.tools] == ["repeat", "locate", "again"]
    assert [problem.partition(" (")[0] for problem in found.problems] == ["c", "d", "e", "f"]
    assert "ModuleNotFoundError: No module named 'no_such_module'" in found.problems[1]
    assert "It names a str, which is not a tool." in found.problems[2]
    assert found.problems[3].endswith("there is another tool named repeat")


OFFERED = [locate, function_tool(repeat, name="again")]
HERE = "a text"
