"""Which commands bring text that nobody on this machine wrote: what they print, or what they leave to be read."""

import posixpath
import re
from collections.abc import Mapping, Sequence

from treadle.policy.marks import split_words
from treadle.policy.shell.interpreters import is_interpreter

_CLIENTS = frozenset(
    split_words("""
    ssh telnet ftp lftp sftp nc ncat netcat socat websocat grpcurl mosquitto_sub rclone gsutil s3cmd aws gcloud az
    w3m lynx links elinks newsboat mutt dig host nslookup drill whois
""")
)
"""Programs that bring such text whatever their arguments."""

_VERBS: Mapping[str, frozenset[str]] = {
    name: frozenset(split_words(verbs))
    for names, verbs in (
        ("gh glab", "api view list diff checks search status download clone watch"),
        ("npm pnpm yarn bun", "view info show search audit"),
        ("cargo", "search info"),
        ("gem", "search query info"),
        ("pip pip3", "search index"),
        ("apt apt-cache dnf yum pacman zypper apk brew port conda composer helm docker", "search show info"),
        ("git", "clone"),
        ("svn hg", "checkout co cat log clone incoming"),
    )
    for name in names.split()
}
_OF_GIT = frozenset({"fetch", "pull", "ls-remote", "submodule", "archive"})
_ADDRESS = re.compile(r"\w+://|[\w.-]+@[\w.-]+:")
_WEB = re.compile(r"https?://(?!localhost\b|127\.|\[::1\])")
_FETCHER = re.compile(r"\b(curl|wget|https?|xh|gh|glab|ssh|git\s+clone)\b")


def brings_text(argv: Sequence[str], fed: str) -> bool:
    """Whether a command brings text from outside; `fed` is what it reads as its input, as far as that is known.

    Those that take an address of the web judge themselves. What a folder's own remotes send counts as the folder's.
    """
    name, words = posixpath.basename(argv[0]), argv[1:]
    if name in _CLIENTS:
        return True
    if name == "git" and not _OF_GIT.isdisjoint(words) and any(_ADDRESS.search(word) for word in words):
        return True
    if is_interpreter(name):
        return any(_WEB.search(text) for text in (*words, fed))
    return not _VERBS.get(name, frozenset()).isdisjoint(words[:4])


def may_bring_text(line: str) -> bool:
    """Whether a line that could not be followed names a program that fetches."""
    return _FETCHER.search(line) is not None
