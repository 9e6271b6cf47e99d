"""read_file, list_files and search_files."""

import base64
import json
import os
from functools import partial
from pathlib import Path

import pytest
from tests.pictures import gif, jpeg, png, webp
from tests.tools.calls import call, prepare, text

from treadle.present.words import counted, lines_read, note_of
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Image, text_of
from treadle.protocol.tools import Origin, Outcome, ReadPath, ToolKind
from treadle.tools.quoted_words import result_of
from treadle.workspace.files.text_files import sha256
from treadle.workspace.workspace import Conversation, Workspace, open_workspace


def _write(workspace: Workspace, name: str, content: str | bytes) -> Path:
    path = Path(workspace.root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


async def test_a_file_is_read_with_line_numbers_and_remembered(workspace: Workspace) -> None:
    path = _write(workspace, "a.py", "one\r\n\ttwo\x1b\r\n")
    prepared = await prepare(workspace, "read_file", path="a.py")
    assert prepared.accesses == (ReadPath(path=str(path)),)
    assert await prepared.run(lambda _: None) == result_of(
        Origin.WORKSPACE,
        Outcome.OK,
        "1 | one\n2 | \ttwo\\x1b\n[control characters are shown as escapes, such as \\x1b; edits can copy them so]",
    )
    assert workspace.seen.stale(str(path), "other bytes")
    assert not workspace.seen.stale(str(path), sha256(path.read_bytes()))


async def test_a_long_file_comes_in_pages(workspace: Workspace) -> None:
    _write(workspace, "long", "".join(f"{n}\n" for n in range(1, 4502)))
    first = await text(workspace, "read_file", path="long")
    assert first.startswith("1 | 1\n2 | 2\n")
    assert first.endswith("2000 | 2000\n[lines 1-2000 of 4501; read on with start_line=2001]")
    last = await text(workspace, "read_file", path="long", start_line=4001)
    assert last.endswith("4501 | 4501")


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("naïve rôle\ndéjà\n".encode("latin-1"), 2),
        (b"", 0),
        (b"x\n" * 2001, 2000),
        (b"[a note]\n=== b\n\n1 | one\n", 4),
        (b"two\x1b\n", 1),
    ],
)
async def test_the_lines_of_a_file_are_counted_without_the_notes_on_it(
    workspace: Workspace, content: bytes, lines: int
) -> None:
    _write(workspace, "a", content)
    _write(workspace, "b", content)
    one, both = [await call(workspace, "read_file", path="a", other_paths=others) for others in ([], ["b"])]
    assert [lines_read(ToolKind.READ, result) for result in (one, both)] == [lines, 2 * lines]
    assert note_of(ToolKind.READ, one) == (counted(lines, "line") if lines else "")


async def test_the_lines_that_a_tool_without_numbers_reads_are_all_counted(workspace: Workspace) -> None:
    _write(workspace, "a.py", "def one(): pass\n\n\ndef two(): pass\n")
    outline = await call(workspace, "list_code_definition_names", path="a.py")
    assert lines_read(ToolKind.READ, outline) == len(text_of(outline.content).splitlines())


async def test_a_range_is_read_without_a_note_when_it_is_all_there(workspace: Workspace) -> None:
    _write(workspace, "a", "1\n2\n3\n4\n")
    assert await text(workspace, "read_file", path="a", start_line=2, end_line=3) == "2 | 2\n3 | 3"


async def test_ranges_that_cannot_be_read_are_explained(workspace: Workspace) -> None:
    _write(workspace, "a", "1\n2\n")
    with pytest.raises(ToolError, match="only 2 lines; start_line 9 is past its end"):
        await call(workspace, "read_file", path="a", start_line=9)
    with pytest.raises(ToolError, match="end_line 1 is before start_line 2"):
        await call(workspace, "read_file", path="a", start_line=2, end_line=1)


async def test_an_empty_file_and_a_foreign_encoding_are_said(workspace: Workspace) -> None:
    _write(workspace, "empty", "")
    _write(workspace, "latin", "naïve rôle déjà\n".encode("latin-1"))
    assert await text(workspace, "read_file", path="empty") == "[empty is empty]"
    assert await text(workspace, "read_file", path="latin") == "1 | naïve rôle déjà\n[the file's encoding is cp1252]"


async def test_nothing_is_looked_at_before_the_call_is_judged(workspace: Workspace) -> None:
    for name in ("read_file", "list_files"):
        assert (await prepare(workspace, name, path="/no/such/place")).accesses[0] == ReadPath(
            path="/no/such/place", listing=name == "list_files"
        )


async def test_a_directory_is_listed_with_hidden_entries(workspace: Workspace) -> None:
    for name in ("b/c.py", ".hidden", "a.py"):
        _write(workspace, name, "")
    assert await text(workspace, "list_files", path=".") == ".hidden\na.py\nb/"
    assert await text(workspace, "list_files", path=".", recursive=True) == "a.py\nb/\nb/c.py"


async def test_listings_that_cannot_be_made_are_explained(workspace: Workspace) -> None:
    _write(workspace, "file", "")
    Path(workspace.root, "none").mkdir()
    assert await text(workspace, "list_files", path="none") == "[none has no entries]"
    with pytest.raises(ToolError, match="file is a file, not a directory"):
        await call(workspace, "list_files", path="file", recursive=True)
    with pytest.raises(ToolError, match="Did you mean file"):
        await call(workspace, "list_files", path="fil")


async def test_a_long_listing_is_cut(workspace: Workspace) -> None:
    for number in range(501):
        _write(workspace, f"d/{number:03}", "")
    for arguments in ({}, {"recursive": True}):
        lines = (await text(workspace, "list_files", path="d", **arguments)).split("\n")
        assert (len(lines), lines[499], lines[500].partition(".")[0]) == (
            501,
            "499",
            f"[only the first 500 entries; about 501 {'files' if arguments else 'entries'} in all",
        )


async def test_a_listing_of_long_names_is_bounded_by_its_size_and_nearest_first(workspace: Workspace) -> None:
    for number in range(200):
        _write(workspace, f"{number:03}{'n' * 200}", "")
        _write(workspace, f"d/e/{number:03}", "")
    for arguments in ({}, {"recursive": True}):
        said = await text(workspace, "list_files", path=".", **arguments)
        assert len(said) < 16_200
        assert said.startswith(f"000{'n' * 200}\n")
        assert f"about {400 if arguments else 201} " in said.splitlines()[-1]


async def test_a_loop_of_links_is_listed_like_a_file(workspace: Workspace) -> None:
    Path(workspace.root, "a").symlink_to("b")
    Path(workspace.root, "b").symlink_to("a")
    Path(workspace.root, "up").symlink_to(".")
    _write(workspace, "file", "")
    assert await text(workspace, "list_files", path=".") == "a\nb\nfile\nup/"
    assert await text(workspace, "list_files", path=".", recursive=True) == "file"


async def test_a_directory_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    said = "rg: ./closed: Permission denied (os error 13)\nrg: ./deep/closed: Permission denied (os error 13)"
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\nprintf './a\\0'\necho '{said}' >&2\nexit 2\n")
    program.chmod(0o755)
    (tmp_path / "root").mkdir()
    workspace = open_workspace(tmp_path / "root", variables={"TREADLE_RG": str(program), "PATH": os.defpath})
    assert await text(workspace, "list_files", path=".", recursive=True) == "a\n[cannot be read: closed, deep/closed]"
    await workspace.close()


async def test_matches_are_shown_by_file_with_numbers(workspace: Workspace) -> None:
    _write(workspace, "a.py", "x\nneedle one\ny\nz\nz\nneedle two\n")
    _write(workspace, "b.txt", "needle\n")
    assert await text(workspace, "search_files", path=".", regex="needle") == (
        "a.py\n2: needle one\n6: needle two\n\nb.txt\n1: needle\n\n[3 matches in 2 files]"
    )
    assert await text(workspace, "search_files", path=".", regex="ne{2}dle", file_pattern="*.txt") == (
        "b.txt\n1: needle\n\n[1 match in 1 file]"
    )
    assert await text(workspace, "search_files", path="a.py", regex="needle", context_lines=1) == (
        "a.py\n1- x\n2: needle one\n3- y\n...\n5- z\n6: needle two\n\n[2 matches in 1 file]"
    )


async def test_a_search_without_a_match_says_where_it_looked(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="nowhere does not exist"):
        await call(workspace, "search_files", path="nowhere", regex="x")
    assert await text(workspace, "search_files", path=".", regex="x", file_pattern="*.c") == (
        "[no file in . that is searched matches *.c: give a glob such as *.py or src/**/*.ts, "
        "or leave file_pattern out]"
    )
    Path(workspace.root, "a.c").touch()
    assert await text(workspace, "search_files", path=".", regex="x", file_pattern="*.c,*.h") == (
        "[no match in . in files that match *.c,*.h]"
    )


async def test_a_search_tells_what_it_could_not_show(workspace: Workspace) -> None:
    Path(workspace.root, "long").write_text(f"{'x' * 400}here\n")
    assert (await text(workspace, "search_files", path=".", regex="here")).endswith(
        "[match at byte 401 of the line]\n\n[1 match in 1 file]"
    )
    Path(workspace.root, "binary").write_bytes(b"here\0here\n")
    assert await text(workspace, "search_files", path="binary", regex="here") == (
        "[no match in binary]\n[a binary file matches too; its matches are not shown]"
    )


async def test_a_pipe_is_not_searched(workspace: Workspace) -> None:
    os.mkfifo(Path(workspace.root, "pipe"))
    with pytest.raises(ToolError, match="pipe, socket or device"):
        await text(workspace, "search_files", path="pipe", regex="x")


async def test_an_invalid_expression_is_explained_in_a_line(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"^The search failed: .*\. Correct the expression or the pattern\.$"):
        await text(workspace, "search_files", path=".", regex="foo(")


async def test_a_long_outline_is_cut(workspace: Workspace) -> None:
    Path(workspace.root, "many.py").write_text("def f(): pass\n" * 10_000)
    outline = await text(workspace, "list_code_definition_names", path="many.py")
    assert (len(outline) < 40_000, "search_files finds definitions" in outline) == (True, True)


async def test_many_matches_are_bounded(workspace: Workspace) -> None:
    _write(workspace, "many", ("x" * 400 + "\n") * 1000)
    found = await text(workspace, "search_files", path=".", regex="x", context_lines=0)
    assert len(found) < 16_200
    shown = found.count("\n") - 2
    assert found.endswith(
        f"\n\n[{shown} of 1,000 matches shown, from 1 of 1 file; "
        "narrow the path, file_pattern or regex to see the others]"
    )


async def test_of_very_many_matches_it_is_said_that_there_are_more(workspace: Workspace) -> None:
    for name in ("a", "b"):
        _write(workspace, name, "x\n" * 9_000)
    found = await text(workspace, "search_files", path=".", regex="x")
    assert "\n[300 of more than 10,000 matches shown, from 1 of 2 files; " in found


async def test_a_match_in_a_file_whose_name_holds_a_line_feed_is_found(workspace: Workspace) -> None:
    for name in ("a\nb", "--\nc", "z\n\n"):
        _write(workspace, name, "x\nneedle\ny\n\n\nneedle\n")
    said = await text(workspace, "search_files", path=".", regex="needle", context_lines=1)
    lines = "1- x\n2: needle\n3- y\n...\n5- \n6: needle"
    assert said == f"--\\nc\n{lines}\n\na\\nb\n{lines}\n\nz\\n\\n\n{lines}\n\n[6 matches in 3 files]"


async def test_several_files_come_with_one_call_and_a_missing_one_spoils_nothing(workspace: Workspace) -> None:
    paths = [_write(workspace, name, f"{name}\n") for name in ("a", "b")]
    prepared = await prepare(workspace, "read_file", path="a", start_line=1, other_paths=["b", "c", "b"])
    assert prepared.accesses == tuple(ReadPath(path=f"{workspace.root}/{name}") for name in "abc")
    result = await prepared.run(lambda _: None)
    assert (result.outcome, text_of(result.content)) == (
        Outcome.OK,
        (
            "=== a\n1 | a\n\n=== b\n1 | b\n\n=== c\n"
            "[c does not exist. Use list_files on its directory to see what there is.]"
        ),
    )
    assert all(workspace.seen.stale(str(path), "") for path in paths)


async def test_several_files_share_the_room_of_one_call(workspace: Workspace) -> None:
    for name, lines in (("a", 45), ("b", 99), ("c", 99)):
        _write(workspace, name, ("y" * 999 + "\n") * lines)
    said = await text(workspace, "read_file", path="a", other_paths=["b", "c"])
    assert len(said) < 50_300
    assert "[lines 1-4 of 99; read on with start_line=5]" in said.partition("=== b")[2]
    assert said.endswith("=== c\n[not read: this result is full. Read it in a separate call.]")


async def test_one_read_has_at_most_50_kb_in_whole_lines_and_the_next_goes_on(workspace: Workspace) -> None:
    _write(workspace, "wide", "".join(f"{n} {'ä' * 200}\n" for n in range(1, 501)))
    read, start = "", 1
    while start:
        page = await text(workspace, "read_file", path="wide", start_line=start)
        assert len(page.encode()) <= 50_000
        lines, _, note = page.rpartition("\n[lines")
        read += f"{lines or page}\n"
        start = int(note.rpartition("start_line=")[2][:-1]) if lines else 0
    assert read == "".join(f"{n} | {n} {'ä' * 200}\n" for n in range(1, 501))


async def test_a_small_window_gets_less_and_never_nothing(tmp_path: Path) -> None:
    for room in (0, 100, 1_000, 6_000):
        (root := tmp_path / str(room)).mkdir()
        workspace = open_workspace(root, conversation=Conversation(room=partial(int, room)))
        _write(workspace, "a", "x" * 99_999 + "\n" + "short line\n" * 999)
        for name in ("b", "c"):
            _write(workspace, name, "y\n" * 999)
        said = []
        for name, arguments in (
            ("read_file", {"path": "a"}),
            ("read_file", {"path": "b", "start_line": 10}),
            ("read_file", {"path": "a", "start_line": 2, "other_paths": ["b", "c"]}),
            ("search_files", {"path": ".", "regex": "y"}),
            ("list_files", {"path": "."}),
        ):
            said.append(await text(workspace, name, **arguments))
        assert all(0 < len(each) <= max(room, 400) + 300 for each in said)
        await workspace.close()


async def test_a_line_number_of_any_size_is_past_the_end(workspace: Workspace) -> None:
    _write(workspace, "a", "1\n2\n")
    for start in (10**12, 10**30):
        with pytest.raises(ToolError, match="only 2 lines; start_line 1000000000000 is past its end"):
            await call(workspace, "read_file", path="a", start_line=start, end_line=10**31)


async def test_a_call_of_which_no_file_can_be_read_fails(workspace: Workspace) -> None:
    assert (await call(workspace, "read_file", path="x", other_paths=["y"])).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("raw", "kind"), [(png(), "png"), (jpeg(), "jpeg"), (gif(), "gif"), (webp(), "webp"), (png(8000, 1), "png")]
)
async def test_an_image_comes_as_one(workspace: Workspace, raw: bytes, kind: str) -> None:
    _write(workspace, "a.png", raw)
    result = await call(workspace, "read_file", path="a.png")
    assert result.content == (Image(media_type=f"image/{kind}", data=base64.b64encode(raw).decode()),)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("a.gif", b"no image", "not the kind of image that its name says"),
        ("a.bmp", b"BM" + bytes(50), "Convert a copy to PNG"),
        *(("a.png", picture[:-8], "damaged or cut off") for picture in (png(), webp())),
        *(("a.png", picture[:20], "damaged or cut off") for picture in (png(), jpeg(), webp())),
        ("a.jpg", jpeg()[:-2], "damaged or cut off"),
        ("a.gif", gif()[:-1], "damaged or cut off"),
        ("a.png", png(0, 5), "damaged or cut off"),
        *(("a.png", make(8001, 2), "8,001 by 2 pixels") for make in (png, jpeg, gif, webp)),
        ("a.png", png(5, 5) + bytes(4_000_000), "at most 3,750,000"),
    ],
)
async def test_an_image_that_no_provider_takes_never_reaches_one(
    workspace: Workspace, name: str, raw: bytes, why: str
) -> None:
    _write(workspace, name, raw)
    with pytest.raises(ToolError, match=why):
        await call(workspace, "read_file", path=name)


async def test_a_notebook_that_is_none_is_read_as_it_stands(workspace: Workspace) -> None:
    _write(workspace, "a.ipynb", "<<<<<<< HEAD\n")
    assert await text(workspace, "read_file", path="a.ipynb") == "1 | <<<<<<< HEAD"


async def test_names_that_would_look_like_two_are_shown_on_one_line(workspace: Workspace) -> None:
    _write(workspace, "a\nb", "needle\n")
    for recursive in (False, True):
        assert await text(workspace, "list_files", path=".", recursive=recursive) == "a\\nb"


async def test_a_document_is_read_as_its_text(workspace: Workspace) -> None:
    notebook = {"cells": [{"cell_type": "code", "source": ["x = 1\n", "x"], "outputs": [{"text": "1"}]}]}
    _write(workspace, "a.ipynb", json.dumps(notebook))
    assert await text(workspace, "read_file", path="a.ipynb") == (
        "1 | # Cell 1 (code)\n2 | x = 1\n3 | x\n4 | # Output\n5 | 1\n[this is the text extracted from the document]"
    )
