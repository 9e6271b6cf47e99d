"""Programs that reach others: what they fetch and send, whether they bring text, and what publishes or deploys."""

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from treadle.policy.findings import Finding, PathOp, dangerous
from treadle.policy.marks import is_static, rows_by_name, word_set
from treadle.policy.shell.interpreters import SHELLS, is_interpreter, judge_outputs
from treadle.policy.shell.readers import read_arguments, read_table
from treadle.policy.shell.shell_env import ProgramJudge, ShellEnv
from treadle.policy.urls import HostKind, check_url
from treadle.protocol.tools import Risk

_BRINGS_TEXT = """
ssh telnet ftp lftp sftp nc ncat netcat socat websocat grpcurl mosquitto_sub rclone gsutil s3cmd aws gcloud az
    w3m lynx links elinks newsboat mutt dig host nslookup drill whois =
gh glab = api view list diff checks search status download clone watch
npm pnpm yarn bun cargo gem apt apt-cache dnf yum pacman zypper apk brew port conda composer helm docker
    = view info show search audit query
pip pip3 = search index
svn hg = checkout co cat log clone incoming
"""
_VERBS = {name: word_set(verbs) for name, verbs in rows_by_name(_BRINGS_TEXT).items()}
"""Programs that bring text from outside when they are told one of these words, or by whatever they are told."""

_WEB = re.compile(r"https?://(?!localhost\b|127\.|\[::1\])")


def brings_text(argv: Sequence[str], fed: str) -> bool:
    """Whether a command brings text from outside; `fed` is what it reads as its input, as far as that is known.

    Those that take an address judge themselves.
    """
    name, words = posixpath.basename(argv[0]), argv[1:]
    if is_interpreter(name):
        return any(_WEB.search(text) for text in (*words, fed))
    verbs = _VERBS.get(name)
    return verbs is not None and (not verbs or not verbs.isdisjoint(words[:4]))


_TABLES_TEXT = """
curl = -fgGhiIjJkLNOqRsSvZ#0123456 -A: -b: -C: -e: -H: -m: -r: -u: -w: -X: -z: -d: -F: -o% -c% -D% --compressed --fail
    --get --head --include --insecure --location --no-progress-meter --remote-name --show-error --silent --verbose
    --connect-timeout: --cookie: --header: --max-time: --request: --retry: --retry-all-errors --retry-delay: --url:
    --user: --user-agent: --write-out: --data: --data-raw: --data-binary: --data-urlencode: --form: --json: --output%
    --cookie-jar%
wget = -bcdEFhHkKmnNpqrSvVx46 -A: -D: -I: -l: -Q: -R: -t: -T: -U: -w: -X: -O% -P% -o% -a% --continue --mirror
    --no-check-certificate --no-clobber --no-parent --no-verbose --quiet --recursive --spider --timestamping --header:
    --level: --timeout: --tries: --user-agent: --output-document% --directory-prefix%
"""
_TABLES = {name: read_table(options) for name, options in rows_by_name(_TABLES_TEXT).items()}
"""The options with which they only fetch, or send what is local to this machine; `%` marks what is written."""

_SENDS = word_set("-d -F --data --data-raw --data-binary --data-urlencode --form --json")
_LOCAL = re.compile(r"(https?://)?(localhost|127\.\d+\.\d+\.\d+|\[::1\])([:/?#].*)?", re.DOTALL)
_SENDING_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_FIELD = re.compile(r"[\w.-]+:?=(?!=)|.*@")


def _fetch(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge curl and wget: to get what an address names is one thing, everything else is more than that."""
    arguments = read_arguments(_TABLES[name], words)
    addresses = [*arguments.operands, *arguments.values("--url")]
    is_local = bool(addresses) and all(map(_LOCAL.fullmatch, addresses))
    served = _are_served(addresses)
    findings = [Finding(Risk.REMOTE, "network", f"{name} sends a request to the network", brokered=served)]
    if (
        is_local
        and env.context.confined
        and not any(env.context.machine_serves(port) for port in map(_port, addresses))
    ):
        findings = [Finding(Risk.EXECUTE, "own-server", f"{name} sends a request to a server of this session")]
    findings.extend(found for word in words for found in env.mentions(word) if found.rule == "secret-read")
    findings.extend(judge_outputs(words, env))
    findings.extend(found for address in addresses for found in _judge_url(address, env))
    for option in arguments.given:
        if option.kind == "%":
            findings.extend(env.path(option.value or "", PathOp.WRITE) if option.value != "-" else [])
        elif option.value is not None and not is_static(option.value):
            findings.append(dangerous("unknown-url", f"{name} {option.name} sends something unknown to the network"))
    harmless = {"GET", "HEAD"} | (_SENDING_METHODS - {"DELETE"} if is_local else set())
    changes = not harmless.issuperset(map(str.upper, arguments.values("-X", "--request")))
    if changes or (not is_local and arguments.has(*_SENDS)):
        findings.append(dangerous("upload", f"{name} changes something elsewhere or sends data"))
    if any(word.startswith("-") for word in arguments.strange) or any("%output{" in word for word in words):
        text = f"{name} has an option that may send, write or change more, or reach another place"
        findings.append(dangerous("dangerous-option", text))
    return findings if is_local else [*findings, _downloads(name, env, brokered=served)]


_SERVED_PORTS = frozenset({None, 80, 443})


def _are_served(addresses: Sequence[str]) -> bool:
    """Whether all of some addresses are names at the usual ports, as far as they are known: those are asked about when
    they are looked up.
    """
    checks = [check_url(one if "://" in one else f"http://{one}") for one in addresses if is_static(one)]
    return bool(addresses) and all(
        one.kind is HostKind.PUBLIC and one.port in _SERVED_PORTS and one.host[-1:].isalpha() for one in checks
    )


def _port(address: str) -> int:
    """Read the port of an address on this machine; the usual one where it names none that can be read."""
    check = check_url(address if "://" in address else f"http://{address}")
    return check.port or (443 if address.startswith("https:") else 80)


def _downloads(name: str, env: ShellEnv, *, brokered: bool = False) -> Finding:
    env.brings_text(name)
    return Finding(Risk.REMOTE, "download", f"{name} fetches from the network", brokered=brokered)


_CLIENTS = word_set(
    "aria2c axel http https httpie xh xhs fetch lwp-request lwp-download lynx w3m yt-dlp GET POST PUT DELETE"
)
_LOOK_UPS = frozenset({"dig", "drill", "host", "nslookup", "ping", "ping6", "traceroute", "whois"})


def _reach(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a client whose options are not known: its addresses, and what it may send."""
    looks_up = name in _LOOK_UPS
    text = f"{name} asks the network, and the name itself can carry data"
    findings = [Finding(Risk.REMOTE, "network", text) if looks_up else _downloads(name, env)]
    findings.extend(judge_outputs(["-o" if word in ("-d", "-P", "--dir") else word for word in words], env))
    for word in (name, *words):
        findings.extend(env.mentions(word))
        is_name = looks_up and not word.startswith("-") and "." in word.strip(".")
        if is_name or "://" in word or not is_static(word):
            findings.extend(_judge_url(word, env))
        elif not looks_up and (word.upper() in _SENDING_METHODS or _FIELD.match(word) or word.startswith("--on-")):
            findings.append(dangerous("upload", f"{name} sends data to the network"))
    return findings


def _judge_url(url: str, env: ShellEnv) -> list[Finding]:
    if not is_static(url):
        return [dangerous("unknown-url", "sends something unknown to the network")]
    env.effort.spend(2)
    check = check_url(url if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", url) else f"http://{url}")
    env.trace.hosts.append(check.host)
    if check.kind in (HostKind.PRIVATE, HostKind.METADATA):
        return [dangerous("private-host", f"{check.host} is a private or metadata address")]
    if check.kind is HostKind.INVALID:
        return [dangerous("url-form", check.problem or "the host cannot be read")]
    return []


NETWORK: dict[str, ProgramJudge] = {**dict.fromkeys(_TABLES, _fetch), **dict.fromkeys(_CLIENTS | _LOOK_UPS, _reach)}
"""Judges by program name."""


PUBLISHES = "publish"
"""The rule by which it is known that a command publishes or deploys."""

_LEADS = word_set("""
    image nuget npm git hosting compose pages functions app stack chart package run run-script exec x dlx tool npx bunx
    pnpx uvx pnpm yarn bun uv poetry pipx pdm hatch rye bundle mise deno
""")
"""What stands before the program that is run, or before the verb."""

_TARGETS = word_set("make gmake just task rake nx turbo invoke inv nox tox gradle gradlew mvn mvnw ant grunt gulp mage")
"""Programs of which any word may be something to do."""

_AT_ONCE = frozenset({"vercel", "now", "surge", "gh-pages", "np", "semantic-release", "release-it", "goreleaser"})
"""Programs that publish unless they are told something else."""

_FORGES = frozenset({"gh", "glab", "hub"})
"""Programs for a service where others work: whatever does not only look there acts there."""

_LOOKS = word_set("""
    view list ls status diff checks search browse watch download clone checkout help version completion get show
    --help -h --version
""")
_SENDS_FIELDS = re.compile(r"-X.*|--method.*|-[fF].*|--(raw-)?field.*|--input.*|--form.*")

_SHOWS = word_set("ls list logs inspect whoami dev build pull link check init help --version --help --dry-run")
_VERB = r"((publish|deploy|push|upload|dcommit)([:_-].*)?|.*[:_-](publish|deploy))"
_SCRIPT = r"([^ ]*/)?(publish|deploy|release)([_-].*)?(\.\w+)?( .*)?"
_PUBLISHING = re.compile(rf".+ {_VERB}|{_SCRIPT}|(svn|fossil) (commit|ci|import|sync)", re.DOTALL)
"""A program and what it is told to do, or the name of a script, that publishes."""


def publishes(name: str, words: Sequence[str]) -> bool:
    """Whether a command publishes or deploys."""
    plain = [word for word in words if not word.startswith("-")]
    if name in _FORGES and plain[:1] == ["api"]:
        return any(map(_SENDS_FIELDS.fullmatch, words))
    if name in _FORGES:
        # Behind an option any word may be its value.
        said = list(takewhile(lambda word: not word.startswith("-"), words))[:2] or words[:1]
        return bool(words) and _LOOKS.isdisjoint(said) and "--help" not in words
    if name in _TARGETS:
        return any(re.fullmatch(_VERB, word) for word in plain)
    if name in SHELLS:
        said = [] if any(re.fullmatch(r"-\w*[nc]\w*", word) for word in words) else plain[:1]
    elif is_interpreter(name):
        said = list(words[:1])
    else:
        # Neither options nor what stands behind a short one.
        said = [name, *(word for before, word in pairwise(("", *words)) if not re.match("-(?!-)", before))]
        said = [word for word in said if word[:1] != "-" and is_static(word)]
    program, verb, *_ = (*(word for word in said if word not in _LEADS), "", "")
    if program != name and (program in SHELLS or is_interpreter(program)):
        return re.fullmatch(_SCRIPT, verb) is not None
    if program in _AT_ONCE:
        return _SHOWS.isdisjoint(words if program == name else said)
    is_verb = program != name and re.fullmatch(_VERB, program) is not None
    return is_verb or _PUBLISHING.fullmatch(f"{program} {verb}".strip()) is not None
