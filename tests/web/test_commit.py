"""The end of a turn on the page: it is undone once, committed, pushed, and handed on."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make
from tests.web.in_process import Here, Visit, idle, page_here, until
from treadle.door.opening import session_log
from treadle.door.review import FileToReview, listed_checkpoints, plan_commit
from treadle.present.items import NoteItem
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn
from treadle.web.page_session import PageSession
from treadle.workspace.checkpoints.comparing import TreeChange

AGAIN = Turn(items=(make("write_to_file", path="third.txt", content="c\n"),))
DONE = Turn(items=(make("attempt_completion", result="Done."),))
WRITE = Turn(
    items=(
        SayText(text="It writes `new.txt`."),
        make("write_to_file", path="new.txt", content="1\n2\n"),
        make("write_to_file", path="other.txt", content="b\n"),
    )
)
MESSAGE = "Add the new file"


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def repository(folder: Path) -> None:
    """A folder with a commit, and with a change that somebody has staged."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ann")
    git(folder, "config", "user.email", "ann@example.com")
    for name in ("old.txt", "theirs.txt"):
        (folder / name).write_text("a\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Begin")
    (folder / "theirs.txt").write_text("c\n")
    git(folder, "add", "theirs.txt")


async def worked(here: Here, visit: Visit) -> PageSession:
    page = await here.start(visit, "Write.")
    await idle(page)
    return page


async def listed(visit: Visit, path: str, *names: str) -> dict[str, str]:
    """Some files as the form of a commit has them now: each with its digest."""
    rows = dict(re.findall(r'name="path" value="([^"]*)"[^>]* data-digest="(\w+)"', await visit.get(f"{path}/commit")))
    return {name: rows[name] for name in names or rows}


async def test_the_last_turn_is_undone_once_and_what_was_undone_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        page = await worked(here, visit)
        path = f"/s/{page.session.id}"
        html = await visit.get(path)
        assert "data-commit" in html
        (turn,) = re.findall(r'data-undo="(\d+)"', html)
        assert (await visit.post(f"{path}/undo", turn=int(turn) + 1))[1]["code"] == "nothing-to-undo", "another turn"
        said = await visit.done(f"{path}/undo", turn=int(turn))
        assert not said["error"]
        assert [one.name for one in here.folder.iterdir()] == []
        assert (await visit.post(f"{path}/undo", turn=int(turn)))[1]["code"] == "nothing-to-undo", "once"
        await visit.done(f"{path}/restore", **said["undo"])
        assert (here.folder / "new.txt").read_text() == "1\n2\n"


async def test_an_undo_that_left_a_file_is_done_again_and_what_is_refused_has_one_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE, DONE, AGAIN, DONE], mode="edits") as here:
        visit = here.visit()
        page = await worked(here, visit)
        path, new = f"/s/{page.session.id}", here.folder / "new.txt"

        async def why(turn: int) -> str:
            status, said = await visit.post(f"{path}/undo", turn=turn)
            assert (status, said["code"]) == (404, "nothing-to-undo")
            return str(said["why"])

        new.write_text("1\nmine\n")
        said = await visit.done(f"{path}/undo", turn=1)
        assert [one.partition(": ")[0] for one in said["conflicts"]] == ["new.txt"]
        assert sorted(one.name for one in here.folder.iterdir()) == ["new.txt"], "the other file went back"
        new.write_text("1\n2\n")
        said = await visit.done(f"{path}/undo", turn=1)
        assert (said["conflicts"], list(here.folder.iterdir())) == ([], [])
        assert await why(1) == "Nothing of what it changed is in the files any more."
        assert await why(7) == "It is not in the conversation."
        await visit.done(f"{path}/say", text="Talk.", id="m2", steer=False)
        await until(page, lambda: page.content.delivered >= {"m2"} and not page.session.status.turn_active)
        assert await why(1) == "A later turn came after it."
        assert await why(2) == "It changed no files."
        await visit.done(f"{path}/say", text="More.", id="m3", steer=False)
        await until(page, lambda: page.content.delivered >= {"m3"} and not page.session.status.turn_active)
        (here.folder / "third.txt").write_text("mine\n")
        assert (await visit.done(f"{path}/undo", turn=3))["files"] == []
        (here.folder / "third.txt").write_text("c\n")
        assert len((await visit.done(f"{path}/undo", turn=3))["files"]) == 1, "one that restored nothing is none"


async def test_an_undo_means_one_restore_and_takes_no_newer_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE, AGAIN, DONE], mode="edits") as here:
        visit = here.visit()
        page = await worked(here, visit)
        path, again = f"/s/{page.session.id}", here.folder / "third.txt"
        wanted = {"checkpoint": 1, "files": True}
        first = (await visit.done(f"{path}/restore", **wanted))["undo"]
        second = (await visit.done(f"{path}/restore", **first))["undo"]
        status, said = await visit.post(f"{path}/restore", **first)
        assert (status, said["code"]) == (404, "restore-older"), "it was undone"
        assert said["why"] == "Files were kept or restored since then."
        seen = (await visit.done(f"{path}/restore/preview", **wanted))["seen"]
        await visit.done(f"{path}/say", text="More.", id="m2", steer=False)
        await until(page, again.exists)
        await idle(page)
        status, said = await visit.post(f"{path}/restore", **second)
        assert (status, said["code"]) == (404, "restore-older")
        assert said["why"] == "It has 1 message and 2 steps more since then."
        shown = await visit.done(f"{path}/restore/preview", **wanted)
        await visit.done(f"{path}/change", mode="plan")  # which is no work
        assert (await visit.post(f"{path}/restore", **wanted, seen=seen))[1]["code"] == "restore-older"
        assert (again.exists(), (here.folder / "new.txt").exists()) == (True, True), "nothing was restored"
        await visit.done(f"{path}/restore", **wanted, seen=shown["seen"])
        assert not again.exists()


async def test_a_long_past_is_shown_in_parts_that_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.web.screens.timeline_screen._MOST_STEPS", 2)
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        path = f"/s/{(await worked(here, visit)).session.id}/timeline"
        newest = await visit.get(path)
        assert "1 of the messages and steps" in newest
        first = await visit.get(f"{path}?until=1")
        assert 'data-name="before this message"' in first
        assert 'data-name="step 1"' not in first
        assert "2 of the messages and steps" in first


async def test_the_steps_name_what_was_done_and_lead_to_the_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        page = await worked(here, visit)
        html = await visit.get(f"/s/{page.session.id}/timeline")
        found = r'<li class="step([^"]*)" id="step(\d+)"[^>]*data-checkpoint="(\d+)"[^>]*data-name="([^"]*)'
        steps = re.findall(found, html)
        assert [name for _, _, _, name in steps] == ["before this message", "step 1", "step 2"]
        seqs = [int(seq) for _, seq, _, _ in steps]
        assert seqs == sorted(seqs), "in the order of the log"
        assert all(("point" in kind) is (n != "0") for kind, _, n, _ in steps), "a filled point is where files differ"
        assert [n != "0" for _, _, n, _ in steps][:2] == [True, True], "before the work, and after it"
        assert html.count('data-act="restore" disabled') == sum(n == "0" for _, _, n, _ in steps)
        assert re.search(r"<b>Create</b> <code>new.txt</code>.*?\+2", html), "as the conversation names it"
        assert "<b>Answer</b> 1 word</p>" in html
        assert html.count('<span class="meta">scripted · ') == 2, "the model of each step"
        assert "It writes <code>new.txt</code>." in html


_BUTTONS = (("Nothing to restore", True), ("Restore only the files", False))


async def test_the_steps_that_a_preview_counts_are_those_that_have_left_after_the_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, [WRITE, AGAIN, DONE], mode="edits") as here:
        visit = here.visit()
        path = f"/s/{(await worked(here, visit)).session.id}"
        found = r'<li class="step([^"]*)"[^>]*data-checkpoint="(\d+)"[^>]*data-name="([^"]*)'
        steps = {name: number for _, number, name in re.findall(found, await visit.get(f"{path}/timeline"))}
        wanted = {"checkpoint": int(steps["step 1"]), "conversation": True}
        told = (await visit.done(f"{path}/restore/preview", **wanted))["html"]
        assert "2 of 3 steps leave the conversation; " in told
        await visit.done(f"{path}/restore", **wanted)
        html = await visit.get(f"{path}/timeline")
        left = {name: " left" in kind for kind, _, name in re.findall(found, html)}
        page = await visit.get(path)
        assert page.count("From here undone") == page.count('data-undo="0">Undo<') == 1
        assert "From here undone: steps 2 to 3 · " in page
        undone = page.partition("From here undone")[2]
        assert ("data-commit" in undone.partition('class="item note')[0], "0 files" in undone) == (False, False)
        assert "The conversation is back at an earlier message.</p>" in undone
        assert left == {"before this message": False, "step 1": False, "step 2": True, "step 3": True}
        nothing, only = ({"textContent": words, "disabled": off} for words, off in _BUTTONS)
        for files in (False, True):
            told = await visit.done(f"{path}/restore/preview", **wanted, files=files)
            assert ">No step leaves the conversation.</p>" in told["html"]
            assert told["button"] == (only if files else nothing)
        last = {"checkpoint": int(steps["step 2"]), "conversation": True}
        told = await visit.done(f"{path}/restore/preview", **last)
        assert ">The conversation gets back what was undone in it; " in told["html"]
        assert not told["button"]["disabled"]
        first = next(number for name, number in steps.items() if name == "before this message")
        await visit.done(f"{path}/restore", checkpoint=int(first), conversation=True)
        page = await visit.get(path)
        assert page.count("From here undone") == 1, "it begins further up now, and nowhere else"
        assert "From here undone: steps 1 to 3 · " in page
        await visit.done(f"{path}/undo", turn=0)
        page = await visit.get(path)
        assert "From here undone: steps 2 to 3 · " in page, "as before the last way back"
        assert 'data-undo="0"' not in page, "the one before that is not the last thing that was done"


async def test_the_files_of_a_session_are_committed_and_handed_on_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    git(tmp_path, "init", "-q", "--bare", "remote")
    git(tmp_path / "ws", "remote", "add", "origin", str(tmp_path / "elsewhere"))
    git(tmp_path / "ws", "remote", "add", "fork", str(tmp_path / "remote"))
    git(tmp_path / "ws", "config", "branch.main.remote", "origin")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[remote]\n\tpushDefault = fork\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$0.said"\necho https://example.com/pull/1\n')
    (tools / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    asked = Turn(when=Expectation(last_user=Texts(contains=("message of a commit",))), items=(SayText(text=MESSAGE),))
    async with page_here(tmp_path, monkeypatch, [asked, WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        page = await worked(here, visit)
        path = f"/s/{page.session.id}"
        form = await visit.get(f"{path}/commit")
        assert ">Write.</textarea>" in form
        assert form.index('value="new.txt" checked') < form.index('value="theirs.txt" data-digest'), (
            "that of others is not ticked"
        )
        assert form.count('name="path"') == 3, "and nothing besides"
        await visit.done(
            f"{path}/rename", name="Write all that follows, which is longer than the subject of a commit may be"
        )
        assert "></textarea>" in await visit.get(f"{path}/commit"), "half a sentence is no message"
        files = ["new.txt", "other.txt"]
        before = len(list(page.content.items()))
        assert await visit.done(f"{path}/commit/message", paths=files) == {"text": MESSAGE}
        await until(page, lambda: len(list(page.content.items())) > before)
        (note,) = [one.item for one in list(page.content.items())[before:]]
        assert isinstance(note, NoteItem)
        assert (note.text.partition(" used ")[0], note.warns) == ("The message of the commit", False)
        chosen = await listed(visit, path, *files)
        said = await visit.done(f"{path}/commit", message=f"{MESSAGE}\n\nIt was slow.", paths=chosen, branch="work")
        assert (said["good"], said["branch"]) == (True, "work")
        assert git(here.folder, "show", "--format=%s", "--name-only").split("\n\n") == [MESSAGE, "new.txt\nother.txt\n"]
        assert git(here.folder, "diff", "--cached", "--name-only") == "theirs.txt\n", "what was staged stays staged"
        assert (await visit.post(f"{path}/commit", message="x", paths=chosen))[1]["code"] == "commit-gone"
        assert (await visit.post(f"{path}/push", line="git push --force"))[1]["code"] == "commit-gone"
        push = "git push --set-upstream -- fork work"
        assert f">{push}</pre>" in said["handing"], "where the user's own settings lead"
        form = await visit.get(f"{path}/commit")
        assert "2 commits of work are not on fork yet." in form, "it can be pushed later, too"
        assert f">{push}</pre>" in form
        assert (await visit.done(f"{path}/push", line=push))["good"]
        form = await visit.get(f"{path}/commit")
        assert ("git push" in form, "Pull request…" in form) == (False, True), "what is there is not pushed again"
        assert (f'value="{MESSAGE}"' in form, ">It was slow.</textarea>" in form) == (True, True), "as it was made"
        assert git(tmp_path / "remote", "log", "-1", "--format=%s", "work").strip() == MESSAGE
        wanted = {"title": MESSAGE, "body": "Why.", "base": "main"}
        shown = await visit.done(f"{path}/pull-request", **wanted)
        assert not (tools / "gh.said").exists(), "showing it runs nothing"
        made = await visit.done(f"{path}/pull-request", **wanted, **shown)
        assert (made["good"], made["address"]) == (True, "https://example.com/pull/1")
        assert (tools / "gh.said").read_text().split("\n")[:4] == ["pr", "create", "--title", MESSAGE]


@pytest.mark.parametrize("lacks", ["remote", "branch"])
async def test_nothing_is_handed_on_where_there_is_no_remote_or_no_branch(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    if lacks == "branch":
        git(tmp_path / "ws", "remote", "add", "origin", str(tmp_path / "elsewhere"))
        git(tmp_path / "ws", "checkout", "-q", "--detach")
    (tmp_path / "gh").write_text("#!/bin/sh\n")
    (tmp_path / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        path = f"/s/{(await worked(here, visit)).session.id}"
        said = await visit.done(f"{path}/commit", message=MESSAGE, paths=await listed(visit, path, "new.txt"))
        assert (said["good"], said["handing"].strip()) == (True, "")
        form = await visit.get(f"{path}/commit")
        assert ("Pull request" in form, "git push" in form) == (False, False)
        for way, body in (("push", {"line": "git push --set-upstream -- '' ''"}), ("pull-request", {"title": "x"})):
            status, refused = await visit.post(f"{path}/{way}", **body)
            assert (status >= 400, refused["what"]) == (True, "There is nothing that can be pushed.")


async def test_in_no_repository_the_last_checkpoint_is_named_where_others_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, (WRITE, DONE), mode="edits") as here:
        visit = here.visit()
        page = await here.start(visit, "Write it.")
        await idle(page)
        with session_log(page.session.id) as (row, store):
            last = listed_checkpoints(store, row.id)[-1].n
        said = await visit.get(f"/s/{page.session.id}/commit")
        assert f"Kept as checkpoint {last}" in said
        assert f"/s/{page.session.id}/timeline" in said
        assert "<textarea" not in said


async def test_what_changed_since_the_files_were_listed_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        path = f"/s/{(await worked(here, visit)).session.id}"
        new, link = here.folder / "new.txt", here.folder / "link"
        link.symlink_to("old.txt")

        async def refused(chosen: dict[str, str]) -> str:
            status, said = await visit.post(f"{path}/commit", message="x", paths=chosen)
            assert (status, said["code"]) == (400, "commit-changed")
            return str(said["what"])

        chosen = await listed(visit, path, "new.txt", "link")
        new.write_text("1\n2\n3\n")
        assert await refused(chosen) == "new.txt is not as it was listed. Nothing was committed."
        chosen = await listed(visit, path, "new.txt", "link")
        new.chmod(0o755)
        await refused(chosen)
        chosen = await listed(visit, path, "new.txt", "link")
        link.unlink()
        link.symlink_to("new.txt")
        assert await refused(chosen) == "link is not as it was listed. Nothing was committed."
        chosen = await listed(visit, path, "new.txt", "link")
        git(here.folder, "switch", "-q", "--create", "elsewhere")
        await refused(chosen)
        chosen = await listed(visit, path, "new.txt", "link")
        (here.folder / "other.txt").write_text("not chosen\n")
        assert (await visit.done(f"{path}/commit", message="x", paths=chosen))["good"]
        assert git(here.folder, "show", "HEAD:new.txt") == "1\n2\n3\n"


def test_a_file_of_the_session_whose_name_is_shown_otherwise_is_one_of_its_files(tmp_path: Path) -> None:
    repository(tmp_path / "ws")
    (tmp_path / "ws" / "odd\nname.txt").write_text("1\n")
    change = TreeChange(by_lines=True, path="odd\nname.txt", before=None, after=None, added=1, removed=0)
    own = FileToReview(path="odd\\nname.txt", root=0, change=change, own=True)
    found = {one.path: one.own for one in plan_commit(str(tmp_path / "ws"), [own]).files}
    assert found == {"odd\\nname.txt": True, "theirs.txt": False}


async def test_the_last_commit_is_amended_as_long_as_nothing_else_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        page = await worked(here, visit)
        path = f"/s/{page.session.id}"
        phone = Visit(here.application, here.keys.let_in(here.keys.new_link(paired=True)), here.keys.base)
        assert "Amend" not in await phone.get(f"{path}/commit"), "history is rewritten on this computer alone"
        await visit.done(f"{path}/commit", message="One.\n\nWhy <it> is.", paths=await listed(visit, path, "new.txt"))
        form = await visit.get(f"{path}/commit")
        assert "Amend the last commit, “One.”. Nothing else has it yet." in form
        (last,) = re.findall(r'name="amends" value="(\w+)" data-message="One.\n\nWhy &lt;it&gt; is."', form)
        more = {"message": "Two.", "paths": await listed(visit, path, "other.txt"), "amends": last}
        assert (await phone.post(f"{path}/commit", **more))[0] == 403
        assert (await visit.post(f"{path}/commit", **more, branch="b"))[1]["code"] == "commit-gone"
        before = git(here.folder, "rev-list", "--count", "HEAD")
        assert (await visit.done(f"{path}/commit", **more))["good"]
        assert git(here.folder, "rev-list", "--count", "HEAD") == before
        assert git(here.folder, "show", "--format=%s", "--name-only").split() == ["Two.", "new.txt", "other.txt"]
        assert git(here.folder, "diff", "--cached", "--name-only") == "theirs.txt\n", "what was staged stays staged"
        assert (await visit.post(f"{path}/commit", **more))[1]["code"] == "commit-gone", "it is another one now"
        (last,) = re.findall(r'name="amends" value="(\w+)"', await visit.get(f"{path}/commit"))
        assert (await visit.done(f"{path}/commit", message="Three.", paths={}, amends=last))["good"]
        assert git(here.folder, "show", "--format=%s", "--name-only").split() == ["Three.", "new.txt", "other.txt"]
        (last,) = re.findall(r'name="amends" value="(\w+)"', await visit.get(f"{path}/commit"))
        git(here.folder, "stash", "push", "--keep-index")
        assert "Amend" in await visit.get(f"{path}/commit"), "a stash is no branch"
        for ref in ("refs/remotes/origin/main", "refs/tags/v1", "refs/heads/else"):
            git(here.folder, "update-ref", ref, "HEAD")
            assert "Amend" not in await visit.get(f"{path}/commit"), ref
            status, said = await visit.post(f"{path}/commit", message="Four.", paths={}, amends=last)
            assert (status, said["code"]) == (400, "commit-gone"), ref
            git(here.folder, "update-ref", "-d", ref)
        git(here.folder, "switch", "-q", "--detach")
        assert "Amend" not in await visit.get(f"{path}/commit"), "the branch has it, too"
        git(here.folder, "switch", "-q", "main")
        git(here.folder, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
        form = await visit.get(f"{path}/commit")
        assert "“without a message”" in form
        (last,) = re.findall(r'name="amends" value="(\w+)"', form)
        rules = tmp_path / "home" / "policy.toml"
        rules.write_text(
            'version = 1\n[[rule]]\nid = "no"\nverdict = "deny"\nargv = ["git", "commit", "--amend"]\n'
            'match = ["git commit --amend"]\n'
        )
        assert (await visit.post(f"{path}/commit", message="x", paths={}, amends=last))[1]["code"] == "commit-denied"


async def test_files_are_chosen_by_whether_all_of_their_changes_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        page = await worked(here, visit)
        path = f"/s/{page.session.id}"
        assert "accepted" not in await visit.get(f"{path}/commit")
        review = await visit.get(f"{path}/review")
        part = review[review.index('data-path="new.txt"') :]
        keys = re.findall(r'data-key="([^"]+)"', part[: part.index("</section>")])
        assert keys
        await visit.done(f"{path}/review/marks", marks=dict.fromkeys(keys, "accepted"))
        form = await visit.get(f"{path}/commit")
        assert re.findall(r'value="([^"]+)" checked data-accepted', form) == ["new.txt"]
        assert "Only the 1 accepted file" in form


async def test_a_hook_that_fails_is_shown_and_only_the_computer_itself_runs_one_and_rules_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    hook = tmp_path / "ws" / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho lint: no, with ${SECRET_OF_MINE-nothing}\nexit 1\n")
    monkeypatch.setenv("SECRET_OF_MINE", "a secret")
    hook.chmod(0o755)
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        page = await worked(here, visit)
        path = f"/s/{page.session.id}"
        phone = Visit(here.application, here.keys.let_in(here.keys.new_link(paired=True)), here.keys.base)
        (here.folder / "staged.txt").write_text("s\n")
        git(here.folder, "add", "staged.txt")
        files = {"message": "x", "paths": await listed(visit, path, "new.txt", "staged.txt")}
        assert "the hook pre-commit" in await phone.get(f"{path}/commit")
        assert (await phone.post(f"{path}/commit", **files))[0] == 403
        for _ in range(2):
            said = await visit.done(f"{path}/commit", **files, branch="work")
            assert (said["good"], said["branch"]) == (False, "main")
            assert "lint: no, with nothing" in said["output"], "the second time, too: no branch is left"
            now = sorted(git(here.folder, "status", "--short").splitlines())
            assert now == ["?? new.txt", "?? other.txt", "A  staged.txt", "M  theirs.txt"], "as it was before"
            assert git(here.folder, "branch", "--format=%(refname:short)") == "main\n"
        git(here.folder, "checkout", "-q", "--detach")
        files |= {"paths": await listed(visit, path, "new.txt", "staged.txt")}
        assert not (await visit.done(f"{path}/commit", **files, branch="work"))["good"]
        assert git(here.folder, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD\n", "on no branch, as before"
        git(here.folder, "checkout", "-q", "main")
        files |= {"paths": await listed(visit, path, "new.txt", "staged.txt")}
        assert (await visit.post(f"{path}/commit", **{**files, "message": "\0"}))[1]["code"] == "commit-text"
        hook.unlink()
        rules = tmp_path / "home" / "policy.toml"
        rules.write_text(
            'version = 1\n[[rule]]\nid = "no"\nverdict = "deny"\nargv = ["git", "commit"]\nmatch = ["git commit"]\n'
        )
        assert (await visit.post(f"{path}/commit", **files))[1]["code"] == "commit-denied"
        rules.unlink()
        assert (await phone.done(f"{path}/commit", **files))["good"], "without programs a device may"
        for name in (b"a\nb", b"\xff", b"x\xe2\x80\xaey"):
            Path(os.fsdecode(bytes(here.folder) + b"/odd " + name)).write_text("odd\n")
        odd = {name: digest for name, digest in (await listed(phone, path)).items() if name.startswith("odd ")}
        assert len(odd) == 3
        assert (await phone.done(f"{path}/commit", message="odd", paths=odd))["good"], "by the names that are shown"
        assert git(here.folder, "status", "--short").splitlines() == ["M  theirs.txt", "?? other.txt"]
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".gitconfig").write_text("[core]\n\thooksPath = odd hooks\n")
        (here.folder / "odd hooks").mkdir()
        (here.folder / "odd hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
        assert "the hook odd hooks/pre-commit" in await phone.get(f"{path}/commit")
        assert (await phone.post(f"{path}/commit", message="x", paths={"other.txt": ""}))[0] == 403
        (tmp_path / ".gitconfig").unlink()
        hook.write_text("#!/bin/sh\nsleep 600 & echo $! > ../left\n")
        hook.chmod(0o755)
        last = await listed(visit, path, "other.txt")
        assert (await visit.done(f"{path}/commit", message="y", paths=last))["good"], "what it left is not awaited"
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


async def test_work_that_was_put_away_or_thrown_away_is_not_said_to_be_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "ws")
    committed, gone = (
        "The files of this session are as in the last commit, or git ignores them.",
        "No file has changes of",
    )
    async with page_here(tmp_path, monkeypatch, [WRITE, DONE], mode="edits") as here:
        visit = here.visit()
        path = f"/s/{(await worked(here, visit)).session.id}"

        async def said() -> list[bool]:
            form = await visit.get(f"{path}/commit")
            return [text in form for text in (committed, gone, 'value="new.txt" checked')]

        assert await said() == [False, False, True]
        git(here.folder, "stash", "push", "--include-untracked")
        assert await said() == [False, True, False]
        git(here.folder, "stash", "pop")
        git(here.folder, "add", ".")
        git(here.folder, "commit", "-q", "-m", "All")
        assert await said() == [True, False, False]
        git(here.folder, "reset", "-q", "--hard", "HEAD~")
        assert await said() == [False, True, False]
