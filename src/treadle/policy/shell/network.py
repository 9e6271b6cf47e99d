"""Programs that fetch from and send to the network."""

import re
from collections.abc import Callable, Sequence

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.options import Arguments, Given, Role, read_arguments, read_table
from treadle.policy.shell.outputs import judge_outputs
from treadle.policy.shell.scene import Scene
from treadle.policy.shell.trees import judge_trees
from treadle.policy.shell.wrappers import suffixes
from treadle.policy.urls import HostKind, check_url, host_kind
from treadle.protocol.tools import Risk

_CURL = read_table(
    """
    -0123456789aBfFgGhiIjJklLMNOpqRsSvVZ# -n! -o> -A: -b: -c> -C: -d: -D> -e: -E< -F: -H: -K! -m: -P: -Q! -r: -t: -T:
    -u: -U: -w: -x: -X: -y: -Y: -z: --fail --silent --show-error --location --head --include --compressed --insecure
    --verbose --output> --remote-name --user-agent: --cookie: --cookie-jar> --data: --data-raw: --data-binary:
    --data-urlencode: --data-ascii: --json: --form: --form-string: --header: --request: --upload-file: --user:
    --url: --max-time: --connect-timeout: --retry: --retry-delay: --dump-header> --referer: --config! --cert< --key<
    --cacert< --proxy: --socks5: --resolve: --connect-to: --unix-socket! --abstract-unix-socket! --netrc!
    --netrc-file! --netrc-optional! --doh-url! --dns-servers! --preproxy! --socks4! --socks4a! --socks5-hostname!
    --proxy1.0! --etag-save> --hsts> --alt-svc> --trace> --stderr> --trace-ascii> --libcurl> --engine! --write-out:
    --get --range: --http1.1
    --http2 --no-progress-meter --create-dirs --output-dir> --fail-with-body --parallel --globoff --path-as-is
    --interface: --tlsv1.2 --proto: --help --version
"""
)
_CURL_SENDS = (
    "-d",
    "-F",
    "-T",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--data-ascii",
    "--json",
    "--form",
    "--form-string",
    "--upload-file",
)
_WGET = read_table(
    """
    -bcdEFhHkKLmNnpqrSvVx -4 -6 -O> -P> -a> -o> -i< -e! -U: -t: -T: -w: -Q: -l: -A: -R: -D: -I: -X: -B:
    --output-document> --directory-prefix> --quiet --no-verbose --continue --timestamping --recursive --level:
    --user-agent: --header: --post-data! --post-file! --body-data! --body-file! --method: --use-askpass! --execute!
    --config! --input-file< --no-check-certificate --timeout: --tries: --wait: --user: --password: --load-cookies<
    --save-cookies> --spider --server-response --mirror --no-parent --accept: --reject: --page-requisites
    --convert-links --output-file> --append-output> --rejected-log> --certificate< --private-key< --ask-password
    --help --version --show-progress --content-disposition --no-clobber --max-redirect:
"""
)
_SENDING_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_FIELD = re.compile(r"[\w.-]+:?=(?!=)")
_REMOTE = re.compile(r"[^/]*@?[^/]+:.*|[a-z]+://.*")


def _fetch(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(_CURL if name == "curl" else _WGET, words)
    findings = [Finding(Risk.REMOTE, "network", f"{name} sends a request to the network")]
    if name == "wget" and not arguments.has("-O", "--output-document"):
        findings.append(Finding(Risk.WRITE, "writer", "wget writes a file"))
    for word in words:
        findings.extend(_secret_in(word, scene))
    for option in arguments.given:
        findings.extend(_fetch_option(name, option, scene))
    urls = [*arguments.operands, *arguments.values("--url")]
    is_local = bool(urls) and all(_is_loopback(url) for url in urls)
    for url in urls:
        findings.extend(_judge_url(url, scene))
    if not is_local:
        scene.brings_text(name)
        findings.append(Finding(Risk.REMOTE, "download", f"{name} fetches from the network"))
        findings.extend(_sent(name, arguments))
    return findings


def _download(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a client whose options are not known: its addresses, and what it may send."""
    scene.brings_text(name)
    findings = [Finding(Risk.REMOTE, "download", f"{name} fetches from the network")]
    findings.extend(judge_outputs(["-o" if word in ("-d", "-P", "--dir") else word for word in words], scene))
    if name in _SENDING_METHODS:
        findings.append(dangerous("upload", f"{name} sends data to the network"))
    for word in words:
        findings.extend(scene.mentions(word))
        if "://" in word or not is_static(word):
            findings.extend(_judge_url(word, scene))
        elif word.upper() in _SENDING_METHODS or "@" in word or _FIELD.match(word) or word.startswith("--on-"):
            findings.append(dangerous("upload", f"{name} sends data to the network"))
    return findings


def _fetch_option(name: str, given: Given, scene: Scene) -> list[Finding]:
    option, value = given.name, given.value
    if given.role is Role.HARM:
        return [dangerous("dangerous-option", f"{name} {option} runs a program, reads settings or sends a file")]
    if value is None:
        return []
    if given.role is Role.WRITE and value != "-":
        return scene.path(value, PathOp.WRITE)
    if given.role is Role.READ:
        return scene.path(value, PathOp.READ)
    if given.role is Role.VALUE and (why := _value_harm(option, value)) is not None:
        return [dangerous("upload", f"{name} {option} {why}")]
    if option in ("-b", "--cookie") and "=" not in value:
        return scene.path(value, PathOp.READ)
    return []


def _value_harm(option: str, value: str) -> str | None:
    """Say what is wrong with the value of an option, or None."""
    if not is_static(value):
        return "sends something unknown to the network"
    if option in _CURL_SENDS and re.search(r"(^|=|;|,)[@<]", value) and option != "--data-raw":
        return "sends a file or its input"
    if option in ("-T", "--upload-file"):
        return "sends a file"
    if option in ("-x", "--proxy", "--socks5", "--resolve", "--connect-to"):
        return "sends the request somewhere else than its URL"
    if option in ("-w", "--write-out") and "%output{" in value:
        return "writes a file"
    if option in ("-X", "--request", "--method") and value.upper() == "DELETE":
        return "deletes something"
    return None


def _sent(name: str, arguments: Arguments) -> list[Finding]:
    methods = arguments.values("-X", "--request", "--method")
    if arguments.has(*_CURL_SENDS) or any(method.upper() in _SENDING_METHODS for method in methods):
        return [dangerous("upload", f"{name} sends data to the network")]
    return []


def _secret_in(word: str, scene: Scene) -> list[Finding]:
    return [finding for finding in scene.mentions(word) if finding.rule == "secret-read"]


def _with_scheme(url: str) -> str:
    return url if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", url) else f"http://{url}"


def _is_loopback(url: str) -> bool:
    return is_static(url) and check_url(_with_scheme(url)).kind is HostKind.LOOPBACK


def _judge_url(url: str, scene: Scene) -> list[Finding]:
    if not is_static(url):
        return [dangerous("unknown-url", "sends something unknown to the network")]
    scene.effort.spend(2)
    check = check_url(_with_scheme(url))
    scene.trace.hosts.append(check.host)
    if check.kind in (HostKind.PRIVATE, HostKind.METADATA):
        return [dangerous("private-host", f"{check.host} is a private or metadata address")]
    if check.kind is HostKind.INVALID:
        return [dangerous("url-form", check.problem or "the host cannot be read")]
    return []


def _remote_copy(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge rsync and scp: from or to another machine, or a local copy."""
    table = read_table("""
    -abcdDEghHiIKklLmnNoOpPqrRStuvVxXyzC1234678 --archive --verbose --recursive --compress --dry-run --progress
    --exclude: --include: --exclude-from< --stats --human-readable --checksum --update --ignore-existing --partial
    --size-only --times --perms --links --itemize-changes --log-file> --backup-dir> --temp-dir> -T> --partial-dir>
    --write-batch> --only-write-batch> --read-batch< --compare-dest< --copy-dest< --link-dest<
""")
    arguments = read_arguments(table, words)
    operands = arguments.operands
    findings = [Finding(Risk.WRITE, "writer", f"{name} copies files")]
    findings.extend(unclear("unknown-option", f"{name}: {word!r} is not a known option") for word in arguments.strange)
    for option in arguments.given:
        if option.role in (Role.READ, Role.WRITE) and option.value is not None:
            findings.extend(scene.path(option.value, PathOp.WRITE if option.role is Role.WRITE else PathOp.READ))
    for word in words:
        findings.extend(_secret_in(word, scene))
    if any(_REMOTE.fullmatch(operand) for operand in operands):
        scene.brings_text(name)
        findings.append(dangerous("upload", f"{name} copies from or to another machine"))
    findings.extend(judge_trees(operands[:-1], scene))
    for operand in operands[:-1]:
        findings.extend(scene.path(operand, PathOp.READ) if not _REMOTE.fullmatch(operand) else [])
    for operand in operands[-1:]:
        findings.extend(scene.path(operand, PathOp.WRITE) if not _REMOTE.fullmatch(operand) else [])
    return findings


def _look_up(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.REMOTE, "network", f"{name} asks the network, and the name itself can carry data")]
    for word in words:
        findings.extend(_secret_in(word, scene))
        if not is_static(word):
            findings.append(dangerous("unknown-url", "sends something unknown to the network"))
        elif not word.startswith("-") and host_kind(word) in (HostKind.PRIVATE, HostKind.METADATA) and "." in word:
            findings.append(dangerous("private-host", f"{word} is a private or metadata address"))
    return findings


def _containers(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge docker and its like by the folders of this machine that a container may change."""
    findings = [
        Finding(Risk.EXECUTE, "unknown-program", f"{name} connects to a service that can run and change anything"),
        *judge_outputs(words, scene),
    ]
    for place, word in enumerate(words):
        findings.extend(_secret_in(word, scene))
        option, has_value, value = word.partition("=")
        if option in ("-v", "--volume", "--mount") or (word.startswith("-v") and len(word) > 2):
            value = (
                value
                if has_value
                else word[2:]
                if word.startswith("-v") and len(word) > 2
                else "".join(words[place + 1 : place + 2])
            )
            source = re.search(r"(?:^|,)(?:source|src)=([^,]*)", value)
            host = source.group(1) if source else value.split(":")[0]
            if host.startswith(("/", "~", ".")) or not is_static(host):
                findings.extend(scene.path(host, PathOp.WRITE))
    return findings + suffixes(words, scene)


_IP_CHANGES = ("add", "append", "change", "replace", "set", "delete", "flush", "restore", "exec", "attach", "detach")


def _ip(name: str, words: Sequence[str], _scene: Scene) -> list[Finding]:
    """Judge ip, whose objects and verbs may be cut short; what stands for several verbs counts as the first."""
    findings = [Finding(Risk.EXECUTE, "unknown-program", f"{name} shows or changes the network")]
    plain = [word for word in words if not word.startswith("-")]
    verb = "".join(plain[1:2])
    sets = verb == "s" and "link".startswith(plain[0])
    if sets or (verb and verb != "s" and any(change.startswith(verb) for change in _IP_CHANGES)):
        findings.append(dangerous("network", f"{name} changes the network"))
    if any(re.match(r"-(b|n|force)", word) for word in words):
        findings.append(dangerous("network", f"{name} works in another network or runs a list of commands"))
    return findings


NETWORK: dict[str, Callable[[str, Sequence[str], Scene], list[Finding]]] = {
    "curl": _fetch,
    "wget": _fetch,
    **dict.fromkeys(
        (
            "aria2c",
            "axel",
            "http",
            "https",
            "httpie",
            "xh",
            "xhs",
            "fetch",
            "lwp-request",
            "lwp-download",
            "lynx",
            "w3m",
            "yt-dlp",
            "GET",
            "POST",
            "PUT",
        ),
        _download,
    ),
    "rsync": _remote_copy,
    "scp": _remote_copy,
    "dig": _look_up,
    "host": _look_up,
    "nslookup": _look_up,
    "ping": _look_up,
    "ping6": _look_up,
    "traceroute": _look_up,
    "whois": _look_up,
    "docker": _containers,
    "podman": _containers,
    "nerdctl": _containers,
    "drill": _look_up,
    "ip": _ip,
}
"""Judges by program name."""
