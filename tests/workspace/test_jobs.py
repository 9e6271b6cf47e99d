"""What is written down of commands in the background."""

from pathlib import Path

from treadle.workspace.commands.background_jobs import JobBook, read_jobs
from treadle.workspace.workspace import open_workspace


async def test_the_record_of_a_command_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    workspace = open_workspace(tmp_path / "ws", spool=tmp_path / "spool")
    command = workspace.launcher.start("sleep 1000 # s3cr3t")
    try:
        JobBook(tmp_path / "jobs", lambda text: text.replace("s3cr3t", "[hidden]")).note(1, command)
        assert [job.command for job in read_jobs(tmp_path / "jobs")] == ["sleep 1000 # [hidden]"]
    finally:
        await command.close()
        await workspace.close()
