"""Keeps git from taking along what it sees only a stand-in of: it is ignored for one run, as if git had been told."""

import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from treadle.protocol.patterns import regex
from treadle.workspace.files.private_file import write_private
from treadle.workspace.sandbox.usual import repositories_of

_EXCLUDE = "info/exclude"
_SPECIAL = regex(r"[\\*?\[\] !#]")


def excludes_for(root: str, unread: Sequence[str], private: str) -> Iterator[tuple[str, str]]:
    """Pair the repository's own list of what it ignores with one that names `unread` files of a workspace, too.

    `private` is a folder for the list. A repository without such a list has none after that, either.
    """
    names = [os.path.relpath(path, root) for path in unread if path.startswith(f"{root.rstrip('/')}/")]
    for repository in repositories_of(root) if names else ():
        own = Path(repository, _EXCLUDE)
        try:
            text = own.read_bytes()
        except OSError:
            continue
        plain = (_SPECIAL.sub(r"\\\g<0>", name) for name in names if "\n" not in name)
        text = b"".join((text, b"\n", *(os.fsencode(f"/{name}\n") for name in plain)))
        file = Path(private, f"exclude-{sha256(text).hexdigest()[:32]}")
        if not file.exists():
            write_private(file, text, mode=0o400)
        yield str(own), str(file)
