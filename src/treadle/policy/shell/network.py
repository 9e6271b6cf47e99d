"""Programs that reach others: what they fetch and send, whether they bring text, and what publishes or deploys."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from treadle.policy.findings import Finding, PathOp, dangerous
from treadle.policy.marks import is_static, word_set
from treadle.policy.shell.interpreters import SHELLS, is_interpreter, judge_outputs
from treadle.policy.shell.readers import read_arguments, read_table
from treadle.policy.shell.shell_env import ProgramJudge, ShellEnv
from treadle.policy.urls import HostKind, check_url, host_kind
from treadle.protocol.tools import Risk

_CLIENTS = word_set("""
    ssh telnet ftp lftp sftp nc ncat netcat socat websocat grpcurl mosquitto_sub rclone gsutil s3cmd aws gcloud az
    w3m lynx links elinks newsboat mutt dig host nslookup drill whois
""")
"""Programs that bring such text whatever their arguments."""

_VERBS: Mapping[str, frozenset[str]] = {
    name: word_set(verbs)
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


_TABLES = {
    "curl": read_table(
        "-AbcCDeEFHKmoPQrtTuUwxXyYz: -d: --output: --user-agent: --cookie: --cookie-jar: --data: --form: --header:"
        " --request: --upload-file: --user: --url: --max-time: --connect-timeout: --retry: --retry-delay:"
        " --dump-header: --referer: --write-out: --range: --output-dir: --interface:"
    ),
    "wget": read_table(
        "-OPaoieUtTwQlARDIXB: --output-document: --directory-prefix: --level: --user-agent: --header: --post-data:"
        " --post-file: --method: --timeout: --tries: --input-file: --output-file: --append-output: --accept: --reject:"
    ),
}
"""The options that take a value; all others are flags to us."""

_WRITES = word_set("-o -O -P -a -D -c --output --output-document --directory-prefix --cookie-jar --dump-header")
_SHORT_HARM = {"curl": "dFTKnQx", "wget": "e"}
_LONG_HARM = tuple(
    word_set("""
    data form json upload-file post-data post-file body-data body-file config netrc unix-socket abstract-unix-socket
    doh-url dns-servers preproxy socks4 socks5 proxy resolve connect-to engine execute use-askpass on-download on-bt
""")
)
"""Options that send something, follow settings, run programs, or reach another place than the address says."""

_SENDING_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_FIELD = re.compile(r"[\w.-]+:?=(?!=)|.*@")
_REMOTE = re.compile(r"[^/]*@?[^/]+:.*|[a-z]+://.*")


def _fetch(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge curl and wget: to get what an address names is one thing, everything else is more than that."""
    arguments = read_arguments(_TABLES[name], words)
    addresses = [*arguments.operands, *arguments.values("--url")]
    findings = [Finding(Risk.REMOTE, "network", f"{name} sends a request to the network")]
    findings.extend([*_secrets(words, env), *judge_outputs(words, env)])
    for option in arguments.given:
        if option.name in _WRITES and option.value not in (None, "-"):
            findings.extend(env.path(option.value or "", PathOp.WRITE))
        elif option.value is not None and not is_static(option.value):
            findings.append(dangerous("unknown-url", f"{name} {option.name} sends something unknown to the network"))
    findings.extend(found for address in addresses for found in _judge_url(address, env))
    kinds = {check_url(_with_scheme(address)).kind if is_static(address) else None for address in addresses}
    is_local = kinds == {HostKind.LOOPBACK}
    methods = {value.upper() for value in arguments.values("-X", "--request", "--method")}
    harm = next(filter(None, (_harm(name, word) for word in words)), None)
    changes = "DELETE" in methods or (not is_local and methods & _SENDING_METHODS)
    if changes or (harm and not (is_local and harm in ("d", "F", "data", "form", "json"))):
        findings.append(
            dangerous("upload", f"{name} changes something elsewhere, sends data, or reaches another place")
        )
    if any("%output{" in value for value in arguments.values("-w", "--write-out")):
        findings.append(dangerous("dangerous-option", f"{name} -w writes a file"))
    return findings if is_local else [*findings, _downloads(name, env)]


def _downloads(name: str, env: ShellEnv) -> Finding:
    env.brings_text(name)
    return Finding(Risk.REMOTE, "download", f"{name} fetches from the network")


def _harm(name: str, word: str) -> str | None:
    """Give the option of a word that does more than fetch, also cut short or in a cluster."""
    if word.startswith("--"):
        given = word[2:].partition("=")[0]
        return next((each for each in _LONG_HARM if given.startswith(each) or (given and each.startswith(given))), None)
    cluster = re.match(r"-[A-Za-z]+", word)
    return next((each for each in _SHORT_HARM[name] if cluster and each in cluster.group()[:4]), None)


def _download(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a client whose options are not known: its addresses, and what it may send."""
    findings = [_downloads(name, env)]
    findings.extend(judge_outputs(["-o" if word in ("-d", "-P", "--dir") else word for word in words], env))
    for word in (name, *words):
        findings.extend(env.mentions(word))
        if "://" in word or not is_static(word):
            findings.extend(_judge_url(word, env))
        elif word.upper() in _SENDING_METHODS or _FIELD.match(word) or word.startswith("--on-"):
            findings.append(dangerous("upload", f"{name} sends data to the network"))
    return findings


def _secrets(words: Sequence[str], env: ShellEnv) -> Iterator[Finding]:
    yield from (finding for word in words for finding in env.mentions(word) if finding.rule == "secret-read")


def _with_scheme(url: str) -> str:
    return url if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", url) else f"http://{url}"


def _judge_url(url: str, env: ShellEnv) -> list[Finding]:
    if not is_static(url):
        return [dangerous("unknown-url", "sends something unknown to the network")]
    env.effort.spend(2)
    check = check_url(_with_scheme(url))
    env.trace.hosts.append(check.host)
    if check.kind in (HostKind.PRIVATE, HostKind.METADATA):
        return [dangerous("private-host", f"{check.host} is a private or metadata address")]
    if check.kind is HostKind.INVALID:
        return [dangerous("url-form", check.problem or "the host cannot be read")]
    return []


def _remote_copy(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge rsync and scp: from or to another machine, or a local copy."""
    operands = [word for word in words if not word.startswith("-")]
    findings = [Finding(Risk.EXECUTE, "writer", f"{name} copies files")]
    findings.extend([*_secrets(words, env), *judge_outputs(words, env)])
    if any(_REMOTE.fullmatch(operand) for operand in operands):
        env.brings_text(name)
        return [*findings, dangerous("upload", f"{name} copies from or to another machine")]
    for operand in operands:
        findings.extend(env.path(operand, PathOp.WRITE if operand is operands[-1] else PathOp.READ))
    return findings


_NOT_PUBLIC = (HostKind.PRIVATE, HostKind.METADATA, HostKind.INVALID)


def _look_up(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    findings = [Finding(Risk.REMOTE, "network", f"{name} asks the network, and the name itself can carry data")]
    findings.extend(_secrets(words, env))
    for word in words:
        if not is_static(word):
            findings.append(dangerous("unknown-url", "sends something unknown to the network"))
        elif not word.startswith("-") and host_kind(word) in _NOT_PUBLIC and "." in word.strip("."):
            findings.append(dangerous("private-host", f"{word} is a private or metadata address"))
    return findings


NETWORK: dict[str, ProgramJudge] = {
    **dict.fromkeys(("curl", "wget"), _fetch),
    **dict.fromkeys(
        word_set(
            "aria2c axel http https httpie xh xhs fetch lwp-request lwp-download lynx w3m yt-dlp GET POST PUT DELETE"
        ),
        _download,
    ),
    **dict.fromkeys(("rsync", "scp"), _remote_copy),
    **dict.fromkeys(("dig", "drill", "host", "nslookup", "ping", "ping6", "traceroute", "whois"), _look_up),
}
"""Judges by program name."""


PUBLISHES = "publish"
"""The rule by which such a finding is known."""

_VERB = re.compile(r"(publish|deploy|push|upload|dcommit)([:_-].*)?|.*[:_-](publish|deploy)")
_SCRIPT = re.compile(r"(publish|deploy|release)([_-].*)?")
_BEFORE = word_set("""
    image nuget npm git hosting compose pages functions app stack chart package run run-script exec x dlx tool
""")
"""First words behind which the verb, or the program that is run, stands second."""

_RUNNERS = word_set("npx bunx pnpx uvx npm pnpm yarn bun uv poetry pipx pdm hatch rye bundle mise deno")
_TARGETS = word_set(
    "make gmake just task rake nx turbo invoke inv nox tox gradle gradlew mvn mvnw ant grunt gulp mage cap fab"
)
"""Programs of which any word may be something to do."""

_AT_ONCE = frozenset({"vercel", "now", "surge", "gh-pages", "np", "semantic-release", "release-it", "goreleaser"})
"""Programs that publish unless they are told something else."""

_SHOWS = word_set("ls list logs inspect whoami dev build pull link check init help --version --help --dry-run")
_SENDS = frozenset({"svn commit", "svn ci", "svn import", "gh release create"})


def judge_publishing(name: str, words: Sequence[str]) -> list[Finding]:
    """Find that a command publishes or deploys."""
    if not _publishes(name, words):
        return []
    return [Finding(Risk.REMOTE, PUBLISHES, f"{name} publishes or deploys here, which others see immediately")]


def _publishes(name: str, words: Sequence[str]) -> bool:
    # Neither options nor what stands behind a short one.
    behind = [before.startswith("-") and not before.startswith("--") for before in ("", *words)]
    plain = [
        word for word, value in zip(words, behind, strict=False) if word[:1] != "-" and not value and is_static(word)
    ]
    if name in _AT_ONCE:
        return _SHOWS.isdisjoint((*plain[:1], *words))
    if name in SHELLS or is_interpreter(name):
        return _runs_script(name, words)
    if name in _TARGETS:
        return any(_VERB.fullmatch(word) for word in words if not word.startswith("-"))
    said = " ".join((name, *plain[:2]))
    rest = plain[1:] if plain[:1] and plain[0] in _BEFORE else plain
    inner = name in _RUNNERS and bool(rest) and _publishes(rest[0], rest[1:])
    told = bool(_SCRIPT.fullmatch(posixpath.splitext(name)[0]) or (rest and _VERB.fullmatch(rest[0])))
    return told or inner or any(f"{said} ".startswith(f"{each} ") for each in _SENDS)


def _runs_script(name: str, words: Sequence[str]) -> bool:
    """Whether the name of a script that is run says that it publishes."""
    if name in SHELLS and any(re.fullmatch(r"-\w*[nc]\w*", word) for word in words):
        return False
    pending = [word for word in words if not word.startswith("-")] if name in SHELLS else list(words[:1])
    return bool(pending and _SCRIPT.fullmatch(posixpath.splitext(posixpath.basename(pending[0]))[0]))
