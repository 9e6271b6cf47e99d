"""The commands in the background of all sessions: listed, read, ended."""

from collections.abc import Iterator
from pathlib import Path

from treadle.app.config.places import outputs
from treadle.protocol.base import Record
from treadle.protocol.errors import SessionError
from treadle.workspace.commands.background_jobs import Job, end_job, read_jobs
from treadle.workspace.commands.watch_records import WATCHERS_FILE, Armed, read_armed, take_out
from treadle.workspace.files.owners import lives

_RECENT = 24 * 3600 * 1000


class JobLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One command as it is listed. Times are milliseconds since 1970; `bytes` is the size of its output so far.

    `wakes_on` is the expression for which its lines wake the agent. A timer is listed too, with number 0: its command
    is its note, and it ends at `ended_at`.
    """

    id: str
    session: str
    number: int
    command: str
    started_at: int
    ended_at: int
    running: bool
    state: str
    bytes: int
    output: str
    wakes_on: str = ""


def list_jobs(*, now: int, every: bool) -> list[JobLine]:
    """List what runs and what ended within a day, or all that is known; the newest last."""
    lines = [*(_line(session, job) for session, job in _all()), *(line for line, *_ in _timers())]
    shown = (line for line in lines if every or _is_recent(line, now))
    return sorted(shown, key=lambda line: line.started_at)


def session_jobs(session: str, *, now: int) -> list[JobLine]:
    """List what runs of one session and what ended of it within a day, the newest last."""
    folder = outputs() / session
    jobs = read_jobs(folder) if folder.is_dir() else ()
    timers = (line for line, *_ in _timers() if line.session == session)
    lines = [*(_line(session, job) for job in jobs), *timers]
    return sorted((line for line in lines if _is_recent(line, now)), key=lambda line: line.started_at)


def _is_recent(line: JobLine, now: int) -> bool:
    return line.running or now - max(line.started_at, line.ended_at) < _RECENT


def find_job(wanted: str) -> tuple[JobLine, Job]:
    """Find a job by its id; raises `SessionError`."""
    found = [(line, job) for session, job in _all() if (line := _line(session, job)).id == wanted]
    running = [one for one in found if one[0].running]
    if len(running or found) == 1:
        return (running or found)[0]
    raise SessionError(
        "job-unknown",
        f"There is no command in the background with the id {wanted!r}.",
        why="Ids look like a1b2c3-1: the end of the session's id, and the number of the command.",
        fix="`treadle jobs --all` lists them.",
    )


def end_timer(wanted: str) -> bool:
    """End the timer with this id; says whether there is one. Raises `OSError`."""
    return any(line.id == wanted and take_out(file, armed_id) for line, file, armed_id in _timers())


def armed_lines(session: str) -> list[str]:
    """Name what wakes a session: commands that are watched, and timers."""
    return [
        f"command {one.number}, watched for `{one.text}`" if one.number else f"a timer: {one.text}".rstrip(": ")
        for one in read_armed(outputs() / session / WATCHERS_FILE)
    ]


def _timers() -> Iterator[tuple[JobLine, Path, str]]:
    """Give the timers of the sessions whose process lives, each with its file and its id there."""
    folder = outputs()
    for session in sorted(folder.iterdir()) if folder.is_dir() else ():
        file = session / WATCHERS_FILE
        for armed in () if not file.is_file() else read_armed(file):
            if not armed.number and lives(armed.owner):
                yield _timer_line(session.name, armed), file, armed.id


def _timer_line(session: str, armed: Armed) -> JobLine:
    return JobLine(
        id=f"{session.rpartition('-')[2]}-{armed.id}",
        session=session,
        number=0,
        command=f"timer: {armed.text}",
        started_at=armed.set_at,
        ended_at=armed.at,
        running=True,
        state="Waiting.",
        bytes=0,
        output="",
    )


def kill_job(job: Job) -> bool:
    """End a job with all its processes; says whether none is left."""
    return end_job(job)


def _all() -> Iterator[tuple[str, Job]]:
    folder = outputs()
    for session in sorted(folder.iterdir()) if folder.is_dir() else ():
        for job in read_jobs(session):
            yield session.name, job


def _line(session: str, job: Job) -> JobLine:
    return JobLine(
        id=f"{session.rpartition('-')[2]}-{job.number}",
        session=session,
        number=job.number,
        command=job.command,
        started_at=job.started_at,
        ended_at=job.ended_at,
        running=job.runs,
        state=job.state,
        bytes=_size(job.output),
        output=job.output,
        wakes_on=next((one.text for one in _watched(session) if one.number == job.number and job.runs), ""),
    )


def _watched(session: str) -> tuple[Armed, ...]:
    file = outputs() / session / WATCHERS_FILE
    return read_armed(file) if file.is_file() else ()


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size if path else 0
    except OSError:
        return 0
