"""What a command and all that it started take, seen from its guard; see there why so little is imported."""

import os
import time

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable

_WATCH_FIRST, _WATCH_NEXT = 0.1, 0.25  # seconds between looks at what a bounded command takes
_WATCH_LEAST, _WATCH_MOST = 0.02, 1.0
_LID = 64  # processes above the bound: the kernel keeps them, and the guard ends what comes so far
_BUSY = 15  # times as long as a look took, the next one is waited for
_PAGE = os.sysconf("SC_PAGE_SIZE")


_EXITING = 0x4
"""Of the flags of a process: it is on its way out (PF_EXITING)."""
_KILLED = 1 << 8
"""Of the signals of a process: SIGKILL, which is the ninth."""


def descendants(root: int) -> list[int]:
    """List the processes below `root`, parents before children; empty where there is no /proc."""
    if _is_childless(root):  # asking that first spares a look at each process of the computer
        return []
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib costs this program a third of its start
    except OSError:
        return []
    for name in names:
        if name.isdigit() and (stat := _stat(int(name))) is not None:
            children.setdefault(stat[1], []).append(int(name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _is_childless(pid: int) -> bool:
    """Whether a process of one thread has no child at this moment; False, too, where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:  # noqa: PTH123 - as above
            return not file.read(1) and len(os.listdir(f"/proc/{pid}/task")) == 1  # noqa: PTH208 - as above
    except OSError:
        return False


def process_name(pid: int) -> str:
    """Name a process as the kernel does, on one line with visible characters; empty when it is gone.

    A process names itself.
    """
    stat = _stat(pid)
    return "" if stat is None else stat[0] if stat[0].isprintable() else ascii(stat[0])[1:-1]


def is_ending(pid: int) -> bool:
    """Whether a process is killed: it is there until the kernel has freed what it held."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
            flags = int(file.read().rpartition(b")")[2].split()[6])
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123 - as above
            lines = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
    except (OSError, ValueError, IndexError):
        return True
    pending = int(lines.get(b"SigPnd", b"0"), 16) | int(lines.get(b"ShdPnd", b"0"), 16)
    return bool(flags & _EXITING or pending & _KILLED)


def group_of(pid: int) -> int:
    """Give the process group of a process; 0 when it is gone or cannot be told."""
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def inner_number(pid: int) -> int:
    """Give the number that a process has among those that it sees; its own where that cannot be told."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123 - as above
            numbers = file.read().partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
    except OSError:
        return pid
    return int(numbers[-1]) if numbers else pid


def _stat(pid: int) -> tuple[str, int] | None:
    """Read the name and the parent of a process; None when it is gone or only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
            head, _, tail = file.read().rpartition(b")")
    except OSError:
        return None
    fields = tail.split()
    if fields[0] == b"Z":
        return None
    return head.partition(b"(")[2].decode(errors="replace"), int(fields[1])


def _own() -> list[int]:
    return descendants(os.getpid())


class Meter:
    """Looks from time to time at what a command and all that it started take; more often when they grow quickly."""

    def __init__(self, bounds: list[str], lid: "Lid") -> None:
        pairs = [text.partition("=")[::2] for text in bounds]
        self.folders = [value for name, value in pairs if name == "folder"]
        self.bounds = {name: int(value) for name, value in pairs if name != "folder" and int(value)}
        self.start = self.last = time.monotonic()
        self.wait = _WATCH_FIRST
        self.processes = _own
        self.taken = 0
        self.typing: set[int] = set()
        self.free = self.free_space() if "disk" in self.bounds else []
        if "processes" in self.bounds:
            lid.put_on(self.bounds["processes"])

    @property
    def pause(self) -> int | None:
        """Milliseconds until the next look; None when there is nothing to look at."""
        if not self.bounds:
            return None
        return max(1, int((self.last + self.wait - time.monotonic()) * 1000) + 1)

    def look(self) -> str:
        """Name the bound that is exceeded, and its number; empty for none, and before it is time to look."""
        now = time.monotonic()
        if not self.bounds or now < self.last + self.wait:
            return ""
        found = self.exceeded(now, self.processes())
        if "memory" not in self.bounds:
            self.wait = _WATCH_MOST
        self.wait = min(_WATCH_MOST, max(self.wait, _BUSY * (time.monotonic() - now)))
        self.last = time.monotonic()
        return f"{found} {self.bounds[found]}" if found else ""

    def exceeded(self, now: float, pids: list[int]) -> str:
        """Compare each bound with what is taken; `pids` are the processes."""
        if 0 < self.bounds.get("processes", 0) < len(pids):
            return "processes"
        if 0 < self.bounds.get("seconds", 0) < now - self.start:
            return "seconds"
        if "memory" in self.bounds and self.too_much_memory(now, pids):
            return "memory"
        if "terminal" in self.bounds and self.waits_for_keys(pids):
            return "terminal"
        fell = [before - free for before, free in zip(self.free, self.free_space(), strict=True)] if self.free else []
        return "disk" if any(self.bounds["disk"] < each for each in fell) else ""

    def too_much_memory(self, now: float, pids: list[int]) -> bool:
        """Sum the resident pages, which is quick; where that is too much, count what several have in common once."""
        bound = self.bounds["memory"]
        taken = sum(map(_resident, pids))
        growth = max(1.0, (taken - self.taken) / max(now - self.last, 0.001))
        self.wait = max(_WATCH_LEAST, min(_WATCH_NEXT, (bound - taken) / growth / 2))
        self.taken = taken
        return taken > bound and sum(map(_share, pids)) > bound

    def waits_for_keys(self, pids: list[int]) -> bool:
        """Whether a process took, at two looks, what it writes to for its input, as editors do that find it empty.

        From a pipe that is open for writing alone no key ever comes.
        """
        before, self.typing = self.typing, set(filter(_reads_from_output, pids))
        return bool(before & self.typing)

    def free_space(self) -> list[int]:
        """Give the free bytes of each file system; 0 for one that is gone."""
        return [_free(folder) for folder in self.folders]


class Lid:
    """A control group that bounds the processes of root's commands, whom the kernel sets no other bound.

    The guard enters it before it knows its command: to enter one can take 15 ms. Without a controller that may be used,
    looking is all there is.
    """

    def __init__(self) -> None:
        self.folder = ""
        for folder in _groups_of(os.getpid()):
            self.folder = folder
            try:
                if not os.path.isdir(folder):  # noqa: PTH112 - as above; a killed guard left one perhaps
                    os.mkdir(folder)  # noqa: PTH102 - as above
                _write_to(f"{folder}/cgroup.procs", os.getpid())
            except OSError:
                remove_group(os.getpid())
                self.folder = ""
                continue
            return

    def put_on(self, processes: int) -> None:
        """Bound this process with all that it starts from here on."""
        if self.folder:
            try:
                _write_to(f"{self.folder}/pids.max", processes + _LID)
            except OSError:
                return

    def leave(self) -> None:
        """Leave the group and remove it; nothing else is in it by now."""
        if self.folder:
            try:
                _write_to(f"{self.folder.rpartition('/')[0]}/cgroup.procs", os.getpid())
                os.rmdir(self.folder)  # noqa: PTH106 - as above
            except OSError:
                return


def remove_group(guard: int) -> None:
    """Remove the control group of a guard that is not in it any more, if it had one."""
    for folder in _groups_of(guard):
        try:
            os.rmdir(folder)  # noqa: PTH106 - as above
        except OSError:
            continue


def remove_left_groups() -> None:
    """Remove the groups of guards that are gone: what was killed with Treadle may have been in them a moment longer."""
    for parent in _pid_groups() if os.geteuid() == 0 else []:
        try:
            names = os.listdir(parent)  # noqa: PTH208 - as above
        except OSError:
            continue
        for name in names:
            guard = name.removeprefix("treadle-")
            if guard != name and guard.isdigit() and process_name(int(guard)) == "":
                remove_group(int(guard))


def _groups_of(guard: int) -> list[str]:
    """Give the folders of which one may be a guard's group; none for whom the kernel bounds anyway."""
    return [f"{parent}/treadle-{guard}" for parent in _pid_groups()] if os.geteuid() == 0 else []


def _pid_groups() -> list[str]:
    """Give the folders in which a group with a bound on processes may be made."""
    try:
        with open("/proc/self/cgroup") as groups, open("/proc/self/mountinfo") as mounts:  # noqa: PTH123 - as above
            return group_folders(groups, mounts)
    except OSError:
        return []


def group_folders(groups: "Iterable[str]", mounts: "Iterable[str]") -> list[str]:
    """Give the folder of the group that bounds processes, in the first version and the second, as proc(5) tells both.

    A container sees its own group where the system has the first one of all. In the second version a group that has
    processes bounds none below it, so the folder is the one above.
    """
    seen: dict[str, list[tuple[str, str]]] = {}
    for line in mounts:
        before, _, after = line.partition(" - ")
        second = after.startswith("cgroup2 ")
        if second or (after.startswith("cgroup ") and "pids" in after.split()[-1].split(",")):
            root, place = before.split(" ", 5)[3:5]
            seen.setdefault("" if second else "pids", []).append((root.rstrip("/"), place))
    found = []
    for _, controllers, path in (row.strip().split(":", 2) for row in groups):
        kind = "pids" if "pids" in controllers.split(",") else controllers
        for root, place in seen.get(kind, ()):
            if f"{path}/".startswith(f"{root}/"):
                folder = f"{place}{path.removeprefix(root)}".rstrip("/")
                found.append(folder if kind or folder == place else folder.rpartition("/")[0])
    return found


def _write_to(path: str, number: int) -> None:
    with open(path, "w") as file:  # noqa: PTH123 - as above
        file.write(str(number))


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123 - as above
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _reads_from_output(pid: int) -> bool:
    try:
        if not os.readlink(f"/proc/{pid}/fd/0").startswith("pipe:"):  # noqa: PTH115 - as above
            return False
        with open(f"/proc/{pid}/fdinfo/0", "rb") as file:  # noqa: PTH123 - as above
            flags = file.read().partition(b"flags:")[2].split()[0]
    except (OSError, IndexError):
        return False
    return int(flags, 8) & os.O_ACCMODE == os.O_WRONLY


def _share(pid: int) -> int:
    """Give the resident bytes of a process, of what others use too its share; all of them where that is not told."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123 - as above
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _resident(pid)


def _free(folder: str) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
