"""Ways out of a sandbox, as lines of bash that succeed (status 0) only if they got out.

In the lines, `$OUT` is a folder beside the workspace with the file `secret`, `$SELF` the process of the test, `$PORT` a
server on loopback, `$SOCK` a Unix socket in `$OUT`, `$ABSTRACT` the name of an abstract one, `$VICTIM` a process
outside. The workspace holds `.git/hooks`, `.git/config`, `AGENTS.md`, `deep/down/.mcp.json`, `.venv/bin/python` and
`.env`. `c` calls a function of libc and succeeds if that gives no negative number.
"""

import os
from dataclasses import dataclass

PRELUDE = r"""
p() {
  python3 -c "
import ctypes, fcntl, os, socket
E = os.environ
V = int(E['VICTIM'])
l = ctypes.CDLL(None, use_errno=True)
$1"
}
c() { p "raise SystemExit(($1) < 0)"; }
"""
IS_X86 = os.uname().machine == "x86_64"


@dataclass(frozen=True, slots=True)
class Way:
    """One way out. `plain` ones get out where there is no sandbox: so the line does what it is meant to do."""

    name: str
    line: str
    plain: bool = False


FILES = (
    Way("write beside the workspace", "echo x > $OUT/made", plain=True),
    Way("write through ..", "echo x > ../out/made2", plain=True),
    Way("append to a file outside", "echo x >> $OUT/secret", plain=True),
    Way("read beside the workspace", "grep -q SECRET $OUT/secret", plain=True),
    Way("read through a link", "ln -sf $OUT/secret link1; grep -q SECRET link1", plain=True),
    Way("write through a link", "ln -sf $OUT/made3 link2; echo x > link2 && test -e $OUT/made3", plain=True),
    Way("write through a link to a folder", "ln -sfn $OUT link3; echo x > link3/made4", plain=True),
    Way("hard link from outside", "ln $OUT/secret hard1 && grep -q SECRET hard1", plain=True),
    Way("rename from outside", "mv $OUT/movable moved1 && test -s moved1", plain=True),
    Way("rename to outside", "echo x > mine; mv mine $OUT/mine && test -e $OUT/mine", plain=True),
    Way("remove outside", "rm -f $OUT/removable && ! test -e $OUT/removable && ls $OUT | grep -q secret", plain=True),
    Way("mode of a file outside", "chmod 777 $OUT/secret", plain=True),
    Way("time of a file outside", "touch -d 2001-01-01 $OUT/secret && grep -q SECRET $OUT/secret", plain=True),
    Way("write to the system", "echo x > /etc/treadle-escape"),
    Way("write to its programs", "echo x > /usr/bin/treadle-escape"),
    Way("replace a program", "cp /bin/true /usr/local/bin/treadle-escape"),
    Way("write at the root", "mkdir /treadle-escape"),
    Way("write in the home directory", "echo x > $HOME/treadle-escape && test -e $HOME/treadle-escape"),
    Way("start-up files of the shell", "echo x >> $HOME/.bashrc"),
    Way("jobs of cron", "echo '* * * * * x' > /var/spool/cron/crontabs/treadle-escape"),
    Way("swap of a link in a race", r"""
        for i in 1 2 3 4 5 6 7 8; do ln -sfn $OUT swap; ln -sfn . swap; done & for i in 1 2 3 4 5 6 7 8; do
        echo x > swap/raced 2>/dev/null; done; wait; test -e $OUT/raced"""),
    Way("an archive with absolute names", r"""
        echo x > payload; tar -cPf a.tar --transform "s,payload,$OUT/untarred," payload; tar -xPf a.tar
        test -e $OUT/untarred""", plain=True),
)  # fmt: skip

CONTROL = (
    Way("a hook", "echo '#!/bin/sh' > .git/hooks/pre-commit && test -e .git/hooks/pre-commit", plain=True),
    Way("a setting of git", "git config core.fsmonitor ./evil && git config core.fsmonitor", plain=True),
    Way("a setting of git by hand", "printf '[core]\\npager = evil\\n' >> .git/config", plain=True),
    Way("a moved repository", "mv .git .git2 && mkdir -p .git/hooks && mv .git .g3 && mv .git2 .git", plain=True),
    Way("a removed repository", "cp -r .git copy; rm -rf .git; ! test -e .git/config && mv copy .git", plain=True),
    Way("rules", "echo evil > AGENTS.md", plain=True),
    Way("rules by renaming", "echo evil > n; mv -f n AGENTS.md && grep -q evil AGENTS.md", plain=True),
    Way("rules by a link", "ln -sf /etc/passwd AGENTS.md && test -L AGENTS.md", plain=True),
    Way("rules by an editor", "sed -i s/rules/evil/ AGENTS.md", plain=True),
    Way("a moved folder above", "mv deep deeper && echo x > deeper/down/.mcp.json", plain=True),
    Way("a control file far below", "echo evil > deep/down/.mcp.json", plain=True),
    Way("a program of the environment", "echo evil > .venv/bin/python", plain=True),
    Way("a new program of the environment", "echo evil > .venv/bin/ls", plain=True),
    Way(
        "a hook through a link", "ln -sfn .git/hooks h; echo x > h/pre-push && test -e .git/hooks/pre-push", plain=True
    ),
    Way("a hook through a descriptor", "exec 8< .git/hooks && echo x > /proc/self/fd/8/post-commit", plain=True),
    Way("a secret", "grep -q PASSWORD .env", plain=True),
    Way("a secret by moving it", "mv .env plain; grep -q PASSWORD plain", plain=True),
    Way("a secret by a hard link", "ln .env hard2; grep -q PASSWORD hard2", plain=True),
    Way("a secret by a copy of the folder", "cp -r . /tmp/treadle-copy$$ && grep -q PASSWORD /tmp/treadle-copy$$/.env"),
)

PROCESSES = (
    Way("the root of another process", "grep -q SECRET /proc/$SELF/root$OUT/secret"),
    Way("the root of the first process", "grep -q SECRET /proc/1/root$OUT/secret"),
    Way("a write through a root", "echo x > /proc/1/root$OUT/made5"),
    Way("the working folder of another process", "ls /proc/$SELF/cwd/ && test -e /proc/$SELF/cwd/pyproject.toml"),
    Way("the descriptors of another process", "ls -l /proc/$SELF/fd | grep -q ."),
    Way("the environment of another process", "tr -d '\\0' < /proc/$SELF/environ | grep -q ."),
    Way("the memory of another process", "head -c 1 /proc/$SELF/mem"),
    Way("a signal", "kill -0 $VICTIM"),
    Way("ending another process", "kill -9 $VICTIM"),
    Way("tracing", "c 'l.ptrace(16, V, 0, 0)'"),
    Way("tracing of itself", "c 'l.ptrace(0, 0, 0, 0)'"),
    Way("reading memory", "c 'l.process_vm_readv(V, 0, 0, 0, 0, 0)'"),
    Way("taking a descriptor", "c 'l.syscall(438, os.pidfd_open(V), 0, 0)'"),
    Way("inherited descriptors", r"""
        for f in /proc/self/fd/*; do case $(readlink $f) in "$OUT"*|*/.git/*|*.sock) exit 0;; esac; done; false"""),
    Way("typing on the terminal", "p 'fcntl.ioctl(0, 0x5412, bytes(1))'"),
    Way("a terminal", "exec 7<> /dev/tty"),
)  # fmt: skip

KERNEL = (
    Way("mounting", "mount -t tmpfs none /mnt"),
    Way("mounting by a call", "c 'l.mount(bytes(1), bytes([47]), bytes(1), 4096, 0)'"),
    Way("the new calls for mounts", "c 'l.syscall(430, bytes([116, 109, 112, 102, 115, 0]), 0)'"),
    Way("opening a tree", "c 'l.syscall(428, -100, bytes([47]), 1)'"),
    Way("unmounting what protects", "umount .git/hooks || umount .git || umount AGENTS.md"),
    Way("making it writable again", "mount -o remount,rw,bind .git"),
    Way("a user namespace", "unshare -Ur true"),
    Way("a mount namespace", "unshare -m true"),
    Way("a user namespace by clone", "c 'l.unshare(0x10000000)'"),
    Way("the namespace of another process", "nsenter -t $VICTIM -m true"),
    Way("another root", "c 'l.chroot(bytes([47]))'"),
    Way("keys of the kernel", "c 'l.syscall(250, 0, -3, 1)'" if IS_X86 else "false"),
    Way("io_uring", "c 'l.syscall(425, 8, bytes(200))'"),
    Way("programs in the kernel", "c 'l.syscall(321, 0, (ctypes.c_int * 20)(1, 4, 4, 1), 72)'" if IS_X86 else "false"),
    Way(
        "performance counters",
        "c 'l.syscall(298, (ctypes.c_uint32 * 32)(1, 128), 0, -1, -1, 0)'" if IS_X86 else "false",
    ),
    Way("files by handle", "c 'l.open_by_handle_at(-100, (ctypes.c_int * 40)(8, 1), 0)'"),
    Way("a device node", "mknod node b 254 0"),
    Way("the disk", "head -c 1 /dev/vda || head -c 1 /dev/sda || head -c 1 /dev/nvme0n1"),
    Way("the memory of the kernel", "head -c 1 /dev/mem || head -c 1 /dev/kmsg"),
    Way("core patterns", "echo '|/bin/sh' > /proc/sys/kernel/core_pattern"),
    Way("settings of the kernel", "echo 0 > /proc/sys/kernel/randomize_va_space"),
    Way("requests to the kernel", "echo h > /proc/sysrq-trigger"),
    Way("control groups", "mkdir /sys/fs/cgroup/treadle-escape || mkdir /sys/fs/cgroup/pids/treadle-escape"),
    Way("leaving a control group", "echo $$ > /sys/fs/cgroup/pids/cgroup.procs"),
    Way("the helper for events", "echo /tmp/x > /sys/kernel/uevent_helper"),
    Way("the clock", "date -s 2001-01-01"),
    Way("the name of the machine", "hostname treadle-escape"),
    Way("a program of root that gains rights", "cp /bin/sh s && chmod 4755 s && ./s -p -c 'test -w /etc/passwd'"),
    Way("capabilities", "grep -E '^Cap(Eff|Prm):' /proc/self/status | grep -qv 0000000000000000"),
    Way("gaining rights", "grep -q 'NoNewPrivs:.0' /proc/self/status"),
    Way("modules", "c 'l.syscall(313, 0, bytes(1), 0)'" if IS_X86 else "false"),
)

NETWORK = (
    Way("loopback", "exec 6<> /dev/tcp/127.0.0.1/$PORT", plain=True),
    Way("loopback by a name", "exec 6<> /dev/tcp/localhost/$PORT", plain=True),
    Way("a socket in the file system", "p 'socket.socket(1).connect(E[\"SOCK\"])'", plain=True),
    Way("an abstract socket", 'p \'socket.socket(1).connect("\\0" + E["ABSTRACT"])\'', plain=True),
    Way("the outside", "timeout 2 bash -c 'exec 6<> /dev/tcp/192.0.2.1/80'"),
    Way("datagrams", 'p \'socket.socket(2, 2).sendto(b"x", ("192.0.2.1", 53))\''),
    Way("packets", "p 'socket.socket(17, 3)'"),
    Way("the host of a virtual machine", "p 'socket.socket(40, 1)'"),
    Way("the bus of the system", "p 'socket.socket(1).connect(\"/run/dbus/system_bus_socket\")'"),
    Way("Docker", "p 'socket.socket(1).connect(\"/var/run/docker.sock\")'"),
)

EVERY = (*FILES, *CONTROL, *PROCESSES, *KERNEL, *NETWORK)


def script(ways: tuple[Way, ...]) -> str:
    """Write one script of all, each in a shell and a time of its own, that names those that got out."""
    parts = [f"( {way.line}\n) > /dev/null 2>&1 < /dev/null && echo 'GOT OUT: {way.name}'" for way in ways]
    return PRELUDE + "\n".join(parts) + "\necho finished\n"
