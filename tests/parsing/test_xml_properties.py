"""XML text calls: what holds for any reply, however it is split."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parsing.replies import TOOLS, read, rebuilt

from treadle.parsing import CallComplete, CallOpened, Malformation, ParameterDelta, ParserEvent, XmlReader

PIECES = [
    *(f"<{name}>" for tool in TOOLS for name in (tool.name, *tool.parameters)),
    *(f"</{name}>" for tool in TOOLS for name in (tool.name, *tool.parameters)),
    *(
        "<file>",
        "</file>",
        "<",
        ">",
        "</",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "text",
        "é😀",
        "&lt;",
        "`",
        "```",
        "~~~",
    ),
    *("\n```xml\n", "\n```\n", "<think>", "</think>", "<thinking>\n", "</thinking>", "\n<reasoning>\n"),
    "<read_file>\n<path>a.py</path>\n</read_file>",
    "\n<write_to_file>\n<path>b</path>\n<content>\n",
    "\n</content>\n</write_to_file>\n",
    "\n<list_files>\n<path>",
]
REPLIES = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join)
EXAMPLES = settings(max_examples=200)


def split(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def previews(blocks: list[ParserEvent]) -> dict[int, dict[str, str]]:
    """The parameter deltas of each call, joined."""
    values: dict[int, dict[str, str]] = {}
    for block in blocks:
        if isinstance(block, ParameterDelta):
            of_call = values.setdefault(block.index, {})
            of_call[block.name] = of_call.get(block.name, "") + block.text
    return values


@EXAMPLES
@given(REPLIES, st.lists(st.integers(0, 10_000), max_size=12), st.booleans())
def test_any_split_gives_the_same_blocks(reply: str, cuts: list[int], reasoning: bool) -> None:
    whole = read([reply], reasoning=reasoning)
    assert read(split(reply, cuts), reasoning=reasoning) == whole
    assert read(list(reply), reasoning=reasoning) == whole


@EXAMPLES
@given(REPLIES)
def test_texts_and_sources_rebuild_the_reply(reply: str) -> None:
    assert rebuilt(read(list(reply))) == reply


@EXAMPLES
@given(REPLIES)
def test_every_call_starts_once_and_ends_once(reply: str) -> None:
    blocks = read(list(reply))
    started = [(block.index, block.name) for block in blocks if isinstance(block, CallOpened)]
    ended = [(block.index, block.name) for block in blocks if isinstance(block, CallComplete | Malformation)]
    assert started == ended
    assert [index for index, _ in started] == list(range(len(started)))


@EXAMPLES
@given(REPLIES)
def test_the_preview_of_a_complete_call_is_its_arguments(reply: str) -> None:
    blocks = read(list(reply))
    shown = previews(blocks)
    for block in blocks:
        if isinstance(block, CallComplete):
            given_arguments = {name: value for name, value in block.arguments.items() if value}
            assert shown.get(block.index, {}) == given_arguments


@EXAMPLES
@given(st.text(), st.text().filter(lambda content: not content.endswith("\r")))
def test_a_written_call_is_read_back_between_any_texts(before: str, content: str) -> None:
    source = f"<write_to_file>\n<path>a.py</path>\n<content>\n{content}\n</content>\n</write_to_file>"
    calls = [block for block in read([f"{before}\n{source}\n"]) if isinstance(block, CallComplete)]
    assert calls == [CallComplete(0, "write_to_file", {"path": "a.py", "content": content}, source=source)]


@EXAMPLES
@given(st.text(alphabet="abc <>/\n`"), st.integers(1, 4))
def test_text_without_tools_passes_unchanged(text: str, size: int) -> None:
    reader = XmlReader(())
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert [rebuilt(reader.feed(chunk)) for chunk in chunks] == chunks
    assert reader.finish() == []
