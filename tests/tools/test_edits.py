"""write_to_file and replace_in_file."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.tools.calls import call, prepare, text

from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Text, text_of
from treadle.protocol.tools import CallResult, EditReport, FileChange, Outcome, Preview, ReadPath, WritePath
from treadle.workspace.files.text_files import sha256
from treadle.workspace.workspace import Workspace


def _block(search: str, replace: str) -> str:
    return f"------- SEARCH\n{search}=======\n{replace}+++++++ REPLACE"


async def test_a_new_file_is_shown_and_then_made(workspace: Workspace) -> None:
    path = Path(workspace.root, "new/a.py")
    prepared = await prepare(workspace, "write_to_file", path="new/a.py", content="one\ntwo")
    after = sha256(b"one\ntwo\n")
    assert prepared.accesses == (WritePath(path=str(path), before="", after=after),)
    assert prepared.preview == Preview(
        title="Create new/a.py (+2 -0)",
        text="--- /dev/null\n+++ b/new/a.py\n@@ -0,0 +1,2 @@\n+one\n+two\n",
        is_diff=True,
    )
    assert not path.exists()
    assert await prepared.run(lambda _: None) == CallResult(
        outcome=Outcome.OK,
        content=(Text(text="Created new/a.py (+2 -0 lines)."),),
        changes=(FileChange(path=str(path), before="", after=after, added=2, removed=0),),
        edits=(EditReport(path="new/a.py", format="whole"),),
    )
    assert path.read_bytes() == b"one\ntwo\n"


async def test_a_replaced_block_is_shown_as_it_is_in_the_file_now(workspace: Workspace) -> None:
    path = Path(workspace.root, "a.py")
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(1, 21)))
    before = sha256(path.read_bytes())
    prepared = await prepare(workspace, "replace_in_file", path="a.py", diff=_block("line 10\n", "ten\nand more\n"))
    assert prepared.preview == Preview(
        title="Edit a.py (+2 -1)",
        text="--- a/a.py\n+++ b/a.py\n@@ -7,7 +7,8 @@\n line 7\n line 8\n line 9\n-line 10\n+ten\n+and more\n"
        " line 11\n line 12\n line 13\n",
        is_diff=True,
    )
    result = await prepared.run(lambda _: None)
    assert result.content == (
        Text(
            text="Saved a.py (+2 -1 lines). The changed places now read:\n...\n7 | line 7\n8 | line 8\n9 | line 9\n"
            "10 | ten\n11 | and more\n12 | line 11\n13 | line 12\n14 | line 13\n..."
        ),
    )
    assert result.changes == (
        FileChange(path=str(path), before=before, after=sha256(path.read_bytes()), added=2, removed=1),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\r\ntwo\r\n", b"one\r\n2\r\n3\r\n"),
        (b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbfone\n2\n3\n"),
        ("\ufeffé\ntwo\n".encode("utf-16-le"), "\ufeffé\n2\n3\n".encode("utf-16-le")),
        (b"d\xe9j\xe0 vu, na\xefve r\xf4le\ntwo\n", b"d\xe9j\xe0 vu, na\xefve r\xf4le\n2\n3\n"),
    ],
)
async def test_an_edit_keeps_line_ends_mark_and_encoding(workspace: Workspace, before: bytes, after: bytes) -> None:
    path = Path(workspace.root, "a.txt")
    path.write_bytes(before)
    await call(workspace, "replace_in_file", path="a.txt", diff=_block("two\n", "2\n3\n"))
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\ny", b"x\r\ny\r\n"),
        (b"no end", "still none", b"still none"),
        (b"a\n", "b", b"b\n"),
        (b"a\n", "", b""),
    ],
)
async def test_a_replaced_file_keeps_its_line_ends(
    workspace: Workspace, before: bytes, content: str, after: bytes
) -> None:
    path = Path(workspace.root, "a.txt")
    path.write_bytes(before)
    await call(workspace, "read_file", path="a.txt")
    await call(workspace, "write_to_file", path="a.txt", content=content)
    assert path.read_bytes() == after


async def test_a_link_is_written_through(workspace: Workspace) -> None:
    target, link = Path(workspace.root, "target"), Path(workspace.root, "link")
    target.write_text("old\n")
    link.symlink_to("target")
    await call(workspace, "read_file", path="target")
    prepared = await prepare(workspace, "write_to_file", path="link", content="new\n")
    assert prepared.accesses[0] == WritePath(path=str(link), before=sha256(b"old\n"), after=sha256(b"new\n"))
    result = await prepared.run(lambda _: None)
    assert (link.is_symlink(), target.read_text(), result.changes[0].path) == (True, "new\n", str(target))


async def test_a_change_by_the_user_after_the_preview_wins(workspace: Workspace) -> None:
    path = Path(workspace.root, "a.txt")
    path.write_text("old\n")
    await call(workspace, "read_file", path="a.txt")
    prepared = await prepare(workspace, "write_to_file", path="a.txt", content="new\n")
    path.write_text("theirs\n")
    with pytest.raises(ToolError, match="changed by someone else in the meantime"):
        await prepared.run(lambda _: None)
    assert path.read_text() == "theirs\n"


async def test_the_second_of_two_edits_prepared_on_the_same_text_is_refused(workspace: Workspace) -> None:
    path = Path(workspace.root, "a.txt")
    path.write_text("one\ntwo\n")
    first = await prepare(workspace, "replace_in_file", path="a.txt", diff=_block("one\n", "1\n"))
    second = await prepare(workspace, "replace_in_file", path="a.txt", diff=_block("two\n", "2\n"))
    await first.run(lambda _: None)
    with pytest.raises(ToolError, match="changed by someone else"):
        await second.run(lambda _: None)
    assert path.read_text() == "1\ntwo\n"


@pytest.mark.parametrize("name", ["write_to_file", "replace_in_file"])
async def test_a_file_changed_since_the_model_read_it_must_be_read_again(workspace: Workspace, name: str) -> None:
    path = Path(workspace.root, "a.txt")
    path.write_text("one\n")
    await call(workspace, "read_file", path="a.txt")
    path.write_text("two\n")
    arguments = {"content": "x\n"} if name == "write_to_file" else {"diff": _block("two\n", "x\n")}
    with pytest.raises(ToolError, match="since you last read or wrote it"):
        await call(workspace, name, path="a.txt", **arguments)
    await call(workspace, "read_file", path="a.txt")
    await call(workspace, name, path="a.txt", **arguments)
    assert path.read_text() == "x\n"


async def test_own_edits_do_not_make_a_file_stale(workspace: Workspace) -> None:
    await call(workspace, "write_to_file", path="a.txt", content="one\n")
    await call(workspace, "replace_in_file", path="a.txt", diff=_block("one\n", "two\n"))
    await call(workspace, "replace_in_file", path="a.txt", diff=_block("two\n", "three\n"))
    assert Path(workspace.root, "a.txt").read_text() == "three\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"path": "a.txt", "diff": _block("nowhere\n", "x\n")},
            "Refused [not_found]: nothing was changed in a.txt. Nothing like",
        ),
        (
            {"path": "a.txt", "diff": _block("one\n", "x\n")},
            "Refused [ambiguous]: nothing was changed in a.txt. The search text matches 2",
        ),
        ({"path": "a.txt", "diff": "------- SEARCH\none\n"}, "Refused [truncated]: "),
        (
            {"path": "b.txt", "diff": _block("one\n", "x\n")},
            "b.txt does not exist. Did you mean a.txt?",
        ),
    ],
)
async def test_an_edit_that_cannot_be_applied_is_judged_as_a_read_and_then_explained(
    workspace: Workspace, arguments: dict[str, str], said: str
) -> None:
    Path(workspace.root, "a.txt").write_text("one\none\n")
    prepared = await prepare(workspace, "replace_in_file", **arguments)
    assert prepared.accesses == (ReadPath(path=f"{workspace.root}/{arguments['path']}"),)
    with pytest.raises(ToolError) as caught:
        await prepared.run(lambda _: None)
    assert said in caught.value.text
    assert Path(workspace.root, "a.txt").read_text() == "one\none\n"


@pytest.mark.parametrize("content", ["one\n", ""])
async def test_a_change_to_nothing_new_is_refused(workspace: Workspace, content: str) -> None:
    Path(workspace.root, "a.txt").write_text(content)
    with pytest.raises(ToolError, match="already has"):
        await call(workspace, "write_to_file", path="a.txt", content=content)


async def test_a_binary_file_is_not_replaced(workspace: Workspace) -> None:
    Path(workspace.root, "a.out").write_bytes(b"\0\1\2")
    with pytest.raises(ToolError, match="binary file"):
        await call(workspace, "write_to_file", path="a.out", content="x")


async def test_a_cancelled_save_is_finished_and_said(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = await prepare(workspace, "write_to_file", path="a.txt", content="x\n")
    begun = asyncio.Event()
    loop, fsync = asyncio.get_running_loop(), os.fsync

    def slow_fsync(descriptor: int) -> None:
        loop.call_soon_threadsafe(begun.set)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    said: list[str] = []
    task = asyncio.ensure_future(prepared.run(said.append))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (said, Path(workspace.root, "a.txt").read_text()) == (["a.txt was saved.\n"], "x\n")


async def test_a_whole_file_that_was_written_can_be_read_back(workspace: Workspace) -> None:
    await call(workspace, "write_to_file", path="a.txt", content="x\ny\n")
    assert await text(workspace, "read_file", path="a.txt") == "1 | x\n2 | y"


PATCH = """*** Begin Patch
*** Update File: a.txt
*** Move to: sub/b.txt
@@
 one
-two
+zwei
*** Add File: new.txt
+fresh
*** Delete File: old.txt
*** End Patch
"""


async def test_a_patch_moves_adds_and_deletes_in_one_call(workspace: Workspace) -> None:
    root = Path(workspace.root)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "old.txt").write_text("old\n")
    result = await call(workspace, "apply_patch", patch=PATCH)
    found = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
    assert found == {"sub/b.txt": "one\nzwei\nthree\n", "new.txt": "fresh\n"}
    assert [Path(change.path).name for change in result.changes] == ["b.txt", "a.txt", "new.txt", "old.txt"]


async def test_a_patch_that_fails_in_one_file_changes_none(workspace: Workspace) -> None:
    root = Path(workspace.root)
    (root / "a.txt").write_text("one\nother\n")
    (root / "old.txt").write_text("old\n")
    with pytest.raises(ToolError, match="not_found"):
        await call(workspace, "apply_patch", patch=PATCH)
    assert (root / "old.txt").exists()
    assert not (root / "new.txt").exists()


async def test_a_patch_names_every_file_and_hunk_that_fails(workspace: Workspace) -> None:
    root = Path(workspace.root)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "b.txt").write_text("red\ngreen\n")
    (root / "c.txt").write_text("x\n")
    patch = """*** Begin Patch
*** Update File: a.txt
@@
-one
+1
@@
-seven
+7
@@
-two
+2
*** Update File: b.txt
@@
-blue
+sky
*** Add File: c.txt
+new
*** Update File: d.txt
@@
-x
+y
*** End Patch"""
    with pytest.raises(ToolError) as caught:
        await call(workspace, "apply_patch", patch=patch)
    assert caught.value.text == (
        "Refused [not_found]: nothing was changed in a.txt. Hunk 2 of 3: Nothing like the text of the ` ` and `-` "
        "lines is in the file, which has 3 lines. Copy the lines to change from it. Send all 3 hunks again."
        "\nThe file has:\n1 | one\n2 | two\n3 | three\n\n"
        "Refused [not_found]: nothing was changed in b.txt. Nothing like the text of the ` ` and `-` lines is in the "
        "file, which has 2 lines. Copy the lines to change from it.\nThe file has:\n1 | red\n2 | green\n\n"
        "c.txt exists already. Nothing was changed; use `*** Update File:` for it.\n\n"
        "Nothing was changed: d.txt does not exist. Did you mean c.txt or b.txt or a.txt?"
    )
    assert caught.value.edit == EditReport(path="a.txt", format="apply_patch", code="not_found")
    assert [(root / name).read_text()[:1] for name in ("a.txt", "b.txt", "c.txt")] == ["o", "r", "x"]


async def test_what_was_written_already_is_no_refused_edit(workspace: Workspace) -> None:
    Path(workspace.root, "a.txt").write_text("one\r\n")
    with pytest.raises(ToolError) as caught:
        await call(workspace, "write_to_file", path="a.txt", content="one\n")
    assert caught.value.edit is not None
    assert caught.value.edit.code == "no_change"


async def test_every_place_is_replaced_when_told_so_and_counted(workspace: Workspace) -> None:
    path = Path(workspace.root, "a.py")
    path.write_bytes(b"load(x)\r\nprint(load, load)\r\n")
    with pytest.raises(ToolError, match=r"matches 3 places.* If you mean all of them, set replace_all\."):
        await call(workspace, "replace_in_file", path="a.py", diff=_block("load\n", "read\n"))
    result = await call(workspace, "replace_in_file", path="a.py", diff=_block("load\n", "read\n"), replace_all=True)
    assert path.read_bytes() == b"read(x)\r\nprint(read, read)\r\n"
    assert text_of(result.content).startswith("Saved a.py (+2 -2 lines). Replaced in 3 places. The changed places")
    assert result.edits == (EditReport(path="a.py", format="search_replace", tiers=("exact",), places=3),)


async def test_a_file_with_more_names_keeps_its_text_under_the_others_and_that_is_told(workspace: Workspace) -> None:
    path = Path(workspace.root, "a.txt")
    path.write_text("one\n")
    Path(workspace.root, "b.txt").hardlink_to(path)
    said = await text(workspace, "replace_in_file", path="a.txt", diff=_block("one\n", "two\n"))
    assert "It had 2 names (hard links); the others keep the old text." in said
    assert (path.read_text(), Path(workspace.root, "b.txt").read_text()) == ("two\n", "one\n")


async def test_a_moved_file_keeps_its_mode_and_encoding(workspace: Workspace) -> None:
    path = Path(workspace.root, "run.sh")
    path.write_bytes("\ufeffécho\r\n".encode("utf-16-le"))
    path.chmod(0o750)
    moving = "*** Begin Patch\n*** Update File: run.sh\n*** Move to: bin/run\n@@\n-écho\n+echo\n*** End Patch"
    await call(workspace, "apply_patch", patch=moving)
    moved = Path(workspace.root, "bin/run")
    assert moved.read_bytes() == "\ufeffecho\r\n".encode("utf-16-le")
    assert (moved.stat().st_mode & 0o777, path.exists()) == (0o750, False)


@pytest.mark.parametrize("operation", ["*** Delete File: link", "*** Update File: link\n*** Move to: new"])
async def test_a_patch_never_removes_what_a_link_leads_to(workspace: Workspace, operation: str) -> None:
    target = Path(workspace.root, "target")
    target.write_text("kept\n")
    Path(workspace.root, "link").symlink_to("target")
    with pytest.raises(ToolError, match="link is a symbolic link"):
        await call(workspace, "apply_patch", patch=f"*** Begin Patch\n{operation}\n*** End Patch")
    assert target.read_text() == "kept\n"


async def test_an_added_file_is_said_to_be_created(workspace: Workspace) -> None:
    said = await text(workspace, "apply_patch", patch="*** Begin Patch\n*** Add File: empty\n*** End Patch")
    assert said == "Created empty (+0 -0 lines)."


async def test_one_byte_that_is_no_utf8_stays_and_what_is_added_is_utf8(workspace: Workspace) -> None:
    path = Path(workspace.root, "a.txt")
    path.write_bytes("naïve\n".encode() + b"caf\xe9\ntwo\n")

    result = await call(workspace, "replace_in_file", path="a.txt", diff=_block("two\n", "zwei → drei\n"))

    assert path.read_bytes() == "naïve\n".encode() + b"caf\xe9\n" + "zwei → drei\n".encode()
    assert "caf\\xe9" in text_of(result.content)


async def test_a_character_is_not_written_where_the_encoding_is_a_guess(workspace: Workspace) -> None:
    path = Path(workspace.root, "a.txt")
    path.write_bytes(b"caf\xe9\ntwo\n")

    with pytest.raises(ToolError, match="It is not certain how") as refused:
        await call(workspace, "replace_in_file", path="a.txt", diff=_block("two\n", "zwölf\n"))

    assert "iconv" in refused.value.text
    assert path.read_bytes() == b"caf\xe9\ntwo\n"
    await call(workspace, "replace_in_file", path="a.txt", diff=_block("two\n", "twelve\n"))
    assert path.read_bytes() == b"caf\xe9\ntwelve\n"
