"""Sessions whose folder was moved, in the real program: what every command says, and the way on that it names."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.app.config.places import session_folder
from treadle.app.errors.exits import Exit
from treadle.protocol.errors import ConfigError
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

_WRITES = Turn(items=(MakeCall(name="write_to_file", arguments={"path": "a.txt", "content": "one\n"}),))
_ENDS = Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Done."}),))


async def test_a_session_whose_folder_was_moved_goes_on_as_each_refusal_says(tmp_path: Path) -> None:
    work, moved, home = tmp_path / "work", tmp_path / "moved", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    program = Program(home)
    async with ScriptedServer(Script(turns=(_WRITES, _ENDS, _ENDS))) as server:
        flags = (*model(server), "--mode", "full", "--trust")
        first = await program.run("-p", "The first task.", *flags, cwd=work)
        assert first.code == Exit.DONE, first.err
        with closing(Store(home / "sessions.db")) as store:
            (row,) = store.sessions()
        work.rename(moved)
        for words in (
            ("-p", "More.", "--resume", row.id, *flags),
            ("-p", "More.", "--resume", row.id, "--directory", ".", *flags),
            ("checkpoint", "restore", "1", row.id),
            ("replay", row.id, "--from", "1"),
            ("replay", row.id, "--tools", "live"),
            ("fork", row.id),
        ):
            refused = await program.run(*words, cwd=moved)
            said = " ".join(refused.err.split())
            assert (refused.code, f"treadle fork {row.id} --into DIR" in said) == (Exit.CONFIG, True), (words, said)
        nowhere = await program.run("fork", row.id, "--into", "nowhere", cwd=moved)
        assert (nowhere.code, "workspace-missing" in nowhere.err) == (Exit.CONFIG, True)
        forked = await program.run("fork", row.id, "--into", ".", cwd=moved)
        assert (forked.code, forked.err) == (Exit.DONE, "")
        more = await program.run("-p", "The second task.", "--continue", *flags, cwd=moved)
        assert more.code == Exit.DONE, more.err
        sent = str(server.requests[-1].body["messages"])
    assert all(text in sent for text in ("The first task.", "The second task.", f"the workspace is {moved}"))
    with closing(Store(home / "sessions.db")) as store:
        assert {one.id: one.workspace for one in store.sessions(None)} == {
            row.id: str(work),
            forked.out.strip(): str(moved),
        }


@pytest.mark.parametrize("workspace", ["/", "/no/such/folder"])
def test_no_advice_for_the_folder_of_a_session_names_a_flag_that_does_not_change_it(workspace: str) -> None:
    with pytest.raises(ConfigError) as caught:
        session_folder("abc", Path(workspace))
    assert ("treadle fork abc --into DIR" in caught.value.fix, "--directory" in caught.value.fix) == (True, False)
