"""A filter of system calls as the kernel wants it: a short list is refused, everything else passes.

The kernel's interface is classic BPF over `struct seccomp_data` {int nr; u32 arch; u64 ip; u64 args[6]}.
"""

import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_EPERM, _EACCES, _ENOSYS, _NO_FAMILY = 1, 13, 38, 97
_NR, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT, _FOURTH_ARGUMENT = 0, 4, 16, 24, 32, 40
"""Offsets in seccomp_data."""

SET_USER_ID, SET_GROUP_ID = stat.S_ISUID, stat.S_ISGID
_MAKES_FILE = 0o100 | 0o20000000  # O_CREAT and what O_TMPFILE adds: only with these has open(2) a mode
UNIX_FAMILY = 1
SOCKET_FAMILIES = (UNIX_FAMILY, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK. Others, such as the sockets of virtual machines, know no namespaces."""
_X32 = 0x40000000
_SOCKET, _CLONE, _LIMIT = "socket", "clone", "prlimit64"
_NEW_USER = 0x10000000  # a flag of clone(2): a user namespace, in which a process has every capability


@dataclass(frozen=True, slots=True)
class _Machine:
    """A processor's name to the kernel and the numbers of its calls; `metadata` are those that change no content.

    `controls` is that of ioctl(2), which changes attributes, too. `modes` are those that set a mode, with the places of
    their argument for it and of flags that say whether there is one; 0 for none.
    """

    arch: int
    numbers: Mapping[str, int]
    metadata: frozenset[int]
    controls: int
    modes: Mapping[int, tuple[int, int]]


_IO_URING = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}
_UNSEEN = {**_IO_URING, "clone3": 435, "openat2": 437}
"""Calls that are said not to exist: programs fall back to older ones, whose arguments a filter can see."""

_COMMON = {
    **_UNSEEN,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
}
_X86_64 = {
    "ptrace": 101,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "kexec_load": 246,
    "perf_event_open": 298,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "open_by_handle_at": 304,
    "mount": 165,
    "umount2": 166,
    "pivot_root": 155,
    "setns": 308,
    "init_module": 175,
    "finit_module": 313,
    "delete_module": 176,
    "acct": 163,
    "swapon": 167,
    "reboot": 169,
    "syslog": 103,
    "unshare": 272,
    _SOCKET: 41,
    _CLONE: 56,
    _LIMIT: 302,
}
_AARCH64 = {
    "ptrace": 117,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "kexec_load": 104,
    "perf_event_open": 241,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kexec_file_load": 294,
    "bpf": 280,
    "userfaultfd": 282,
    "open_by_handle_at": 265,
    "mount": 40,
    "umount2": 39,
    "pivot_root": 41,
    "setns": 268,
    "init_module": 105,
    "finit_module": 273,
    "delete_module": 106,
    "acct": 89,
    "swapon": 224,
    "reboot": 142,
    "syslog": 116,
    "unshare": 97,
    _SOCKET: 198,
    _CLONE: 220,
    _LIMIT: 261,
}
# As of Linux 6.17 (2025-09). A call that this kernel does not have is refused instead of missing.
_METADATA = frozenset({452, 463, 466, 469})  # fchmodat2, setxattrat, removexattrat, file_setattr
_SET_ATTRIBUTES = (0x40086602, 0x401C5820)  # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
_METADATA_X86_64 = frozenset(
    {
        *(90, 91, 268),  # chmod, fchmod, fchmodat
        *(92, 93, 94, 260),  # chown, fchown, lchown, fchownat
        *(132, 235, 261, 280),  # utime, utimes, futimesat, utimensat
        *(188, 189, 190, 197, 198, 199),  # setxattr, lsetxattr, fsetxattr, and those that remove
    }
)
_METADATA_AARCH64 = frozenset({52, 53, 54, 55, 88, 5, 6, 7, 14, 15, 16})  # those of them that it has
_MODES_X86_64 = {
    **dict.fromkeys((90, 91, 85, 133), (_SECOND_ARGUMENT, 0)),  # chmod, fchmod, creat, mknod
    **dict.fromkeys((268, 452, 259), (_THIRD_ARGUMENT, 0)),  # fchmodat, fchmodat2, mknodat
    2: (_THIRD_ARGUMENT, _SECOND_ARGUMENT),  # open
    257: (_FOURTH_ARGUMENT, _THIRD_ARGUMENT),  # openat
}
_MODES_AARCH64 = {
    52: (_SECOND_ARGUMENT, 0),
    **dict.fromkeys((53, 452, 33), (_THIRD_ARGUMENT, 0)),
    56: (_FOURTH_ARGUMENT, _THIRD_ARGUMENT),
}
_MACHINES: Mapping[str, _Machine] = MappingProxyType(
    {
        "x86_64": _Machine(0xC000003E, {**_X86_64, **_COMMON}, _METADATA | _METADATA_X86_64, 16, _MODES_X86_64),
        "aarch64": _Machine(0xC00000B7, {**_AARCH64, **_COMMON}, _METADATA | _METADATA_AARCH64, 29, _MODES_AARCH64),
    }
)


@cache
def filter_program(
    machine: str,
    families: tuple[int, ...],
    *,
    metadata: bool = True,
    never_set: int = SET_USER_ID | SET_GROUP_ID,
) -> bytes:
    """Compile the filter for a processor (`os.uname().machine`); empty for one that is not known.

    Sockets can be made of the `families` only; pairs of connected ones always can. Limits can be set for the process
    itself, not for another one: the kernel asks only whose it is. Without `metadata` modes, owners, times and
    attributes of files stay as they are. No file gets a mode with a bit of `never_set`: another user of the machine
    could run it with the rights of its owner.
    """
    known = _MACHINES.get(machine)
    if known is None:
        return b""
    judged = {_CLONE, _LIMIT, *((_SOCKET,) if families else ())}
    refused = {number: _error(name) for name, number in known.numbers.items() if name not in judged}
    refused |= {} if metadata else dict.fromkeys(known.metadata, _EACCES)
    code = [
        _instruction(_LOAD, _ARCH),
        _instruction(_EQUAL, known.arch, if_true=1),
        _instruction(_RETURN, _ERROR | _EPERM),
        _instruction(_LOAD, _NR),
        _instruction(_AT_LEAST, _X32, if_false=1),
        _instruction(_RETURN, _ERROR | _ENOSYS),
    ]
    for number, error in sorted(refused.items()):
        code += [_instruction(_EQUAL, number, if_false=1), _instruction(_RETURN, _ERROR | error)]
    if not metadata:
        code += _without_attributes(known.controls)
    for number, places in sorted(known.modes.items()):
        code += _without_bits(number, *places, bits=never_set)
    if families:
        code += _of_families(known.numbers[_SOCKET], families)
    code += [
        _instruction(_EQUAL, known.numbers[_LIMIT], if_false=3),
        _instruction(_LOAD, _FIRST_ARGUMENT),
        _instruction(_EQUAL, 0, if_true=1),
        _instruction(_RETURN, _ERROR | _EPERM),
        _instruction(_LOAD, _NR),
        _instruction(_EQUAL, known.numbers[_CLONE], if_false=3),
        _instruction(_LOAD, _FIRST_ARGUMENT),
        _instruction(_HAS_BITS, _NEW_USER, if_false=1),
        _instruction(_RETURN, _ERROR | _EPERM),
    ]
    return b"".join([*code, _instruction(_RETURN, _ALLOW)])


def _of_families(number: int, families: tuple[int, ...]) -> list[bytes]:
    """Refuse the call that makes a socket for all families but a few, which jump to what comes next."""
    count = len(families)
    return [
        _instruction(_EQUAL, number, if_false=count + 2),
        _instruction(_LOAD, _FIRST_ARGUMENT),
        *(_instruction(_EQUAL, family, if_true=count - at) for at, family in enumerate(families)),
        _instruction(_RETURN, _ERROR | _NO_FAMILY),
    ]


def _without_bits(number: int, mode: int, flags: int, *, bits: int) -> list[bytes]:
    """Refuse a call where the mode that it gives a file has one of some bits; `flags` say whether it gives one."""
    asks = [
        _instruction(_LOAD, mode),
        _instruction(_HAS_BITS, bits, if_false=1),
        _instruction(_RETURN, _ERROR | _EPERM),
    ]
    if flags:
        asks = [_instruction(_LOAD, flags), _instruction(_HAS_BITS, _MAKES_FILE, if_false=len(asks)), *asks]
    return [_instruction(_EQUAL, number, if_false=len(asks) + 1), *asks, _instruction(_LOAD, _NR)]


def _without_attributes(number: int) -> list[bytes]:
    """Refuse ioctl(2) where it would change the attributes of a file; it needs no right to write there."""
    first, second = _SET_ATTRIBUTES
    return [
        _instruction(_EQUAL, number, if_false=5),
        _instruction(_LOAD, _SECOND_ARGUMENT),
        _instruction(_EQUAL, first, if_true=2),
        _instruction(_EQUAL, second, if_true=1),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _ERROR | _EACCES),
    ]


def _error(name: str) -> int:
    """Programs fall back when a call is not there; the rest is said to be forbidden."""
    return _ENOSYS if name in _UNSEEN else _EPERM


def _instruction(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    """Encode one `struct sock_filter`; the jumps count instructions to leave out."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
