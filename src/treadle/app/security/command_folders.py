"""Where the commands of a session run, and what is kept of its folders from one command to the next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from weakref import WeakSet

from treadle.app.security.trial_copies import Copies
from treadle.protocol.permissions import Mode
from treadle.protocol.protected_names import control_name, secret_name
from treadle.workspace.commands.confinement import Remark
from treadle.workspace.files.owners import Owner
from treadle.workspace.namespaces.session_space import SessionNamespaces
from treadle.workspace.sandbox import Committed, GitReader, MadeFiles, Surveyor
from treadle.workspace.sandbox.index_entries import IndexEntries
from treadle.workspace.sandbox.made_beforehand import OpenedPaths
from treadle.workspace.sandbox.program_sleep import ProgramSleep
from treadle.workspace.sandbox.survey import PathFilter


@dataclass(slots=True)
class KnownFolders:
    """What is kept of a session's folders from one command to the next.

    `notes` go with the next result; of the `copies` the last one's changes wait for an answer. `made` are commands of
    which something is left that could not be moved away, and `running` those of commands that have not ended.
    """

    surveyors: dict[str, Surveyor] = field(default_factory=dict)
    committed: dict[str, Committed] = field(default_factory=dict)
    said_empty: set[str] = field(default_factory=set)
    said_left_out: set[str] = field(default_factory=set)
    said_unlisted: set[str] = field(default_factory=set)
    said_alone: bool = False
    made: list[MadeFiles] = field(default_factory=list)
    running: WeakSet[MadeFiles] = field(default_factory=WeakSet)
    lock: Lock = field(default_factory=Lock)
    paths: OpenedPaths | None = None
    notes: list[str] = field(default_factory=list)
    copies: Copies = field(default_factory=Copies)
    tell: Callable[[str], None] = lambda _: None

    def opened(self, data: Path) -> OpenedPaths:
        """What was made outside of the workspace for commands that may write it."""
        if self.paths is None:
            self.paths = OpenedPaths(data)
        return self.paths

    def note_running(self, made: MadeFiles, *, ended: bool) -> None:
        """Note that a command may make files from now on, or has ended."""
        with self.lock:
            (self.running.discard if ended else self.running.add)(made)

    def is_of_running(self, path: str) -> bool:
        """Whether a control file may be one that a running command made: it is moved away when that ends."""
        with self.lock:
            running = list(self.running)
        return any(one.may_have_made(path) for one in running)

    def say_next(self, remarks: Sequence[Remark]) -> None:
        """Have what no result said go with the next one."""
        self.notes.extend(one.text for one in remarks)

    def tell_user(self, line: str, remarks: Sequence[Remark]) -> None:
        """Tell the user at once what was taken back beside a command that runs: it may be theirs."""
        for one in remarks:
            if one.undone:
                self.tell(f"{one.text} If it is yours, bring it back once `{line}` has ended.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFolders:
    """Where the commands of a session run: `data` is Treadle's own folder, `private` the session's in there.

    `roots` are further folders of the workspace at `root`. One place serves all commands of a session: what is known
    of the folders is kept current, not looked for again. With `namespaces` the commands share a network and processes,
    those of plan mode `plan_namespaces`: no server that may change something is reached from there. A command runs in
    `cwd`, empty for the workspace itself. `placed` pairs paths that it sees besides, such as what
    takes the place of git, with what is shown there. `devices` are those that it can use besides the harmless ones.
    `sleep` looks at a program that stays and of which nothing passes to another one: what is new when it has slept is
    not its own.
    `hook_files` are absolute paths of what hooks of the folder run: kept like control files.
    """

    root: str
    roots: tuple[str, ...] = ()
    data: Path
    private: Path
    namespaces: SessionNamespaces | None = None
    plan_namespaces: SessionNamespaces | None = None
    cwd: str = ""
    placed: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()
    sleep: ProgramSleep | None = None
    hook_files: frozenset[str] = frozenset()
    known: KnownFolders = field(default_factory=KnownFolders)

    @property
    def folders(self) -> tuple[str, ...]:
        """The workspace and its further folders."""
        return (self.root, *self.roots)

    def shared(self, mode: Mode) -> SessionNamespaces | None:
        """Give what the commands of a mode share."""
        return self.plan_namespaces if mode is Mode.PLAN else self.namespaces

    def holder(self) -> Owner | None:
        """Give the process that holds what commands share; says once with the next result why there is none."""
        if self.namespaces is None:
            return None
        found = self.namespaces.holder()
        if self.namespaces.trouble and not self.known.said_alone:
            self.known.said_alone = True
            self.known.notes.append(f"Commands share no network and no processes: {self.namespaces.trouble}.")
        return found

    @property
    def surveyors(self) -> list[Surveyor]:
        """What looks through each folder."""
        return [
            self.known.surveyors.setdefault(folder, Surveyor(folder, is_control=self.kept(folder), is_secret=is_secret))
            for folder in self.folders
        ]

    def kept(self, folder: str) -> Callable[[str], bool]:
        """Give what says of a path in a folder whether no command changes it without a right to it."""
        return partial(_is_kept, self.hook_files, folder)

    def committed(self, root: str) -> Committed:
        """What reads the committed text of a folder's files."""
        fresh = Committed(root, str(self.private / "sandbox"), self.reader(root))
        return self.known.committed.setdefault(root, fresh)

    def reader(self, root: str) -> GitReader:
        """Give what asks git of a folder."""
        return GitReader(root, str(self.private / "sandbox"))

    def index_entries(self, root: str) -> IndexEntries:
        """Give what knows which control files stand in the index of a folder's repository alone. Raises `ToolError`."""
        writer = GitReader(root, str(self.private / "sandbox"), writes=True)
        return IndexEntries(self.reader(root), writer, is_held=self.kept(root), is_new=self.is_new(root))

    def is_new(self, root: str) -> PathFilter:
        """Give what says of a path in a folder whether it may be of a command that has not ended."""
        return lambda name: self.known.is_of_running(f"{root}/{name}")


def is_control(path: str) -> bool:
    """Whether a file of this name makes tools do something."""
    return control_name(path) is not None


def is_secret(path: str) -> bool:
    """Whether a file of this name holds secrets."""
    return secret_name(path) is not None


def _is_kept(hook_files: frozenset[str], folder: str, path: str) -> bool:
    return is_control(path) or f"{folder}/{path}" in hook_files
