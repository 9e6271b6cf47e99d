"""Commands that run another command: what they are told to run is judged as if it stood alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static, shown
from treadle.policy.shell.assignments import judge_assignment
from treadle.policy.shell.many import breadth_of, judge_each
from treadle.policy.shell.options import Arguments, Role, read_arguments, read_table
from treadle.policy.shell.scene import Feed, Scene
from treadle.protocol.tools import Risk

MAX_FED_WORDS = 64
MAX_GUESSED_WORDS = 60

_DELETERS = frozenset({"rm", "unlink", "shred", "rimraf"})
_LIKE_A_SCRIPT = re.compile(r"[\s;|&$`(<>=]|^\{")
_SECONDS = re.compile(r"[1-5]?\d(\.\d+)?s?")
_DURATION = re.compile(r"\d+(\.\d+)?[smhd]?")


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """`skip` operands stand before the inner command; `plain` wrappers add no risk of their own."""

    options: str
    skip: int = 0
    plain: bool = False


_WRAPPERS = {
    "nice": _Wrapper("-n: -0123456789 --adjustment:", plain=True),
    "nohup": _Wrapper(""),
    "timeout": _Wrapper(
        "-k: -s: -v --foreground --kill-after: --signal: --preserve-status --verbose", skip=1, plain=True
    ),
    "gtimeout": _Wrapper("-k: -s: -v --foreground --kill-after: --signal: --preserve-status", skip=1),
    "time": _Wrapper("-apvql -f: -o> --format: --output> --append --portability --verbose --quiet", plain=True),
    "stdbuf": _Wrapper("-i: -o: -e: --input: --output: --error:", plain=True),
    "setsid": _Wrapper("-cfw --fork --ctty --wait"),
    "ionice": _Wrapper("-t -c: -n: -p: -P: -u: --class: --classdata: --ignore", plain=True),
    "chrt": _Wrapper("-abdfiorRmv -p: -T: -P: -D:", skip=1),
    "taskset": _Wrapper("-ac", skip=1),
    "exec": _Wrapper("-cl -a:"),
    "builtin": _Wrapper(""),
    "strace": _Wrapper("-cCdfFhiknqrtTvwxyzZ -e: -o> -s: -S: -p! -P: -E: -I: -a: -b: -u:"),
    "ltrace": _Wrapper("-cCdfhiLrStTV -e: -o> -s: -p! -n: -u: -x: -l:"),
    "caffeinate": _Wrapper("-disu -t: -w:"),
    "unbuffer": _Wrapper("-p"),
    "rlwrap": _Wrapper("-acinorR -H: -f<"),
    "numactl": _Wrapper("-al -m: -N: -C: -i: -p:"),
    "prlimit": _Wrapper("--nofile: --nproc: --as: --core: --cpu: --fsize: -p:"),
    "setarch": _Wrapper("-R --addr-no-randomize", skip=1),
    "linux32": _Wrapper(""),
    "linux64": _Wrapper(""),
    "fakeroot": _Wrapper("-u -i< -s> -l: -b:"),
    "eatmydata": _Wrapper(""),
    "valgrind": _Wrapper("-qv --tool: --leak-check: --log-file> --error-exitcode:"),
    "xvfb-run": _Wrapper("-a -n: -s: -e> -f>"),
    "dbus-run-session": _Wrapper("--"),
    "torsocks": _Wrapper(""),
    "proxychains": _Wrapper("-q -f<"),
    "proxychains4": _Wrapper("-q -f<"),
    "busybox": _Wrapper(""),
    "toybox": _Wrapper(""),
    "catchsegv": _Wrapper(""),
    "pipenv": _Wrapper("", skip=1),
    "sudo": _Wrapper(
        """
    -AbEeHiKklnPSsVv -u: -g: -h: -p: -C: -D: -R: -r: -t: -T: -U: --user: --group: --preserve-env? --login --shell
"""
    ),
    "doas": _Wrapper("-nsL -u: -C:"),
    "chroot": _Wrapper("--userspec: --groups: --skip-chdir", skip=1),
    "unshare": _Wrapper("-mUupinCTrcf --fork --map-root-user --mount --pid --net"),
    "pkexec": _Wrapper("--user: --disable-internal-agent"),
}
_ENV = read_table("-iv0 -u: -C: -S: -a: --ignore-environment --null --unset: --chdir: --split-string: --debug --argv0:")
_XARGS = read_table(
    """
    -0rtpxo -a< -d: -E: -I: -i? -J: -L: -l? -n: -P: -R: -S: -s: -e? --null --arg-file< --delimiter: --eof?
    --replace? --max-lines? --max-args: --max-procs: --max-chars: --no-run-if-empty --verbose --interactive --exit
    --open-tty --process-slot-var: --show-limits
"""
)
_FLOCK = read_table("""
    -nsxuoeF -w: -E: -c: --nonblock --nb --shared --exclusive --unlock --close --timeout: --wait:
    --conflict-exit-code: --command: --no-fork --verbose
""")
_WATCH = read_table(
    "-dtgecbprwx -n: -q: --differences? --interval: --no-title --exec --chgexit --errexit --color --beep"
)
_SCRIPT = read_table("-aefqt -c: -E: -I> -O> -B> -T> -m: -o: --command: --quiet --append --return --flush")


def is_wrapper(name: str) -> bool:
    """Whether the program runs another command that stands in its arguments."""
    return name in _WRAPPERS or name in _SPECIAL


def unwrap(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a wrapper and what it runs."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words, scene)
    wrapper = _WRAPPERS[name]
    arguments = read_arguments(read_table(wrapper.options), words, permute=False)
    findings = _option_findings(name, arguments, scene)
    if not wrapper.plain:
        findings.append(Finding(Risk.EXECUTE, "wrapper", f"{name} runs another command"))
    skipped, inner = arguments.operands[: wrapper.skip], arguments.operands[wrapper.skip :]
    if name == "timeout" and not all(_DURATION.fullmatch(word) for word in skipped):
        findings.append(unclear("wrapper", "timeout without a plain duration"))
    if not inner:
        return [*findings, unclear("wrapper", f"{name} without a command")]
    if arguments.strange or wrapper.skip:
        findings.extend(suffixes(words, scene))
    if name == "timeout" and inner[0] == "tail" and _SECONDS.fullmatch(skipped[0]):
        # What follows a file never ends, but for a time limit.
        inner = tuple(word for word in inner if word not in ("-f", "-F", "--follow"))
    return findings + scene.command(inner)


def suffixes(words: Sequence[str], scene: Scene) -> list[Finding]:
    """Find danger in whatever part of the arguments may be a command; nothing found here is no proof of anything."""
    found: list[Finding] = []
    if scene.is_search:
        return found
    scene = replace(scene, is_search=True, is_guess=True)
    for place, word in enumerate(words[:40]):
        if not is_static(word):
            continue
        if _LIKE_A_SCRIPT.search(word):
            found.extend(scene.script(word))
            found.extend(scene.script(word.partition("=")[2]) if word.startswith("-") and "=" in word else [])
        elif word and not word.startswith("-"):
            found.extend(scene.command(tuple(words[place : place + MAX_GUESSED_WORDS])))
    return list(dict.fromkeys(_critical(found)))


def _option_findings(name: str, arguments: Arguments, scene: Scene) -> list[Finding]:
    findings = [
        unclear("unknown-option", f"{name}: {shown(word)!r} is not a known option") for word in arguments.strange
    ]
    for option in arguments.given:
        if option.role is Role.HARM:
            findings.append(dangerous("dangerous-option", f"{name} {option.name} reaches another process"))
        elif option.value is not None and option.role in (Role.READ, Role.WRITE):
            findings.append(Finding(Risk.EXECUTE, "wrapper", f"{name} uses the file {option.value}"))
            findings.extend(scene.mentions(option.value))
    return findings


def _env(words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(_ENV, words, permute=False)
    findings = _option_findings("env", arguments, scene)
    for text in arguments.values("-S", "--split-string"):
        findings.append(Finding(Risk.EXECUTE, "wrapper", "env -S runs a string"))
        findings.extend(scene.script(" ".join((text, *arguments.operands))))
    if arguments.has("-C", "--chdir", "-u", "--unset", "-a", "--argv0"):
        findings.append(unclear("wrapper", "env changes where or how the command runs"))
    inner = list(arguments.operands)
    while inner and "=" in inner[0]:
        variable, _, value = inner.pop(0).partition("=")
        findings.extend(judge_assignment(variable, value))
    if not inner:
        return [*findings, Finding(Risk.EXECUTE, "prints-environment", "prints every variable, secrets included")]
    return findings + scene.command(tuple(inner))


def _command(words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(read_table("-pvV"), words, permute=False)
    if arguments.has("-v", "-V") and not arguments.strange:
        return [Finding(Risk.READ, "look-up", "looks up a program")]
    findings = _option_findings("command", arguments, scene)
    return findings + (scene.command(arguments.operands) if arguments.operands else [])


def _xargs(words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(_XARGS, words, permute=False)
    findings = _option_findings("xargs", arguments, scene)
    inner = arguments.operands or ("echo",)
    marks = arguments.values("-I", "-J") or (["{}"] if arguments.has("-i", "--replace") else [])
    if marks:
        inner = tuple(word.replace(marks[0], UNKNOWN) for word in inner)
    findings.append(unclear("xargs", f"xargs {shown(inner[0])}: the operands are unknown until it runs"))
    breadth = breadth_of(scene.feed.upstream)
    if breadth is not None:
        findings.extend(judge_each(inner, breadth, replace(scene, feed=Feed())))
    for word in [*(word for command in scene.feed.upstream for word in command[1:]), *(scene.feed.text or "").split()][
        :MAX_FED_WORDS
    ]:
        findings.extend(scene.mentions(word))
        named = _critical(scene.command((*inner, word)))
        findings.extend(one for one in named if breadth is None or one.rule != "delete-all")
    if inner[0] in _DELETERS and not _finds_by_name(scene):
        findings.append(dangerous("delete-unknown", f"xargs {inner[0]} deletes files that are unknown until it runs"))
    without_input = replace(scene, feed=Feed())
    found = without_input.command(inner if marks else (*inner, UNKNOWN))
    said = ("unknown-option", "unknown-path")
    return findings + [one for one in found if one.risk is not Risk.EXECUTE or one.rule not in said or one.always_asks]


def _finds_by_name(scene: Scene) -> bool:
    """Whether the input comes from a `find` that is told a part of the names."""
    upstream = scene.feed.upstream
    if len(upstream) != 1 or upstream[0][0] != "find" or not _is_plain_find(upstream[0][1:]):
        return False
    named = (value for test, value in pairwise(upstream[0]) if test in ("-name", "-iname"))
    return any(pattern.strip("*?.") for pattern in named)


def _critical(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.risk is Risk.CRITICAL]


def _is_plain_find(words: Sequence[str]) -> bool:
    """Whether a find only lists names below its start."""
    pending = list(words)
    while pending and not pending[0].startswith("-"):
        if not is_static(pending[0]) or pending.pop(0) in ("!", "(", ")", ","):
            return False
    if len(pending) == len(words):
        return False
    while pending:
        word = pending.pop(0)
        if word in ("-print", "-print0"):
            return not pending
        if word not in ("-name", "-iname", "-type", "-maxdepth", "-mindepth", "-size", "-mtime") or not pending:
            return False
        pending.pop(0)
    return True


def _flock(words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(_FLOCK, words, permute=False)
    findings = [*_option_findings("flock", arguments, scene), Finding(Risk.EXECUTE, "wrapper", "flock runs a command")]
    for script in arguments.values("-c", "--command"):
        findings.extend(scene.script(script))
    inner = arguments.operands[1:]
    if inner[:1] in (("-c",), ("--command",)):
        return findings + [found for script in inner[1:2] for found in scene.script(script)]
    return findings + (scene.command(inner) if inner else [])


def _watch(words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(_WATCH, words, permute=False)
    findings = [
        *_option_findings("watch", arguments, scene),
        unclear("wrapper", "watch runs a command again and again"),
    ]
    return findings + scene.script(" ".join(arguments.operands)) + suffixes(words, scene)


def _script(words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(_SCRIPT, words)
    findings = [
        *_option_findings("script", arguments, scene),
        Finding(Risk.EXECUTE, "wrapper", "script runs a command"),
    ]
    for script in arguments.values("-c", "--command"):
        findings.extend(scene.script(script))
    return findings + suffixes(arguments.operands, scene)


def _parallel(words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [unclear("wrapper", "parallel runs a command for each of its inputs")]
    places = [place for place, word in enumerate(words) if word.startswith(":::")]
    inner, values = (words[: places[0]], words[places[0] + 1 :]) if places else (words, [UNKNOWN])
    arguments = read_arguments(
        read_table("-0kqXmut -j: -n: -N: -a< -S! -I: --jobs: --dry-run --keep-order --bar"), inner, permute=False
    )
    for value in [value for value in values if not value.startswith(":::")][:50]:
        command = [word.replace("{}", value) for word in arguments.operands]
        command = command if any("{}" in word for word in arguments.operands) else [*command, value]
        findings.extend(scene.command(tuple(command)))
        if is_static("".join(command)):
            findings.extend(scene.script(" ".join(command)))
    breadth = None if places else breadth_of(scene.feed.upstream)
    if breadth is not None:
        findings.extend(judge_each(arguments.operands, breadth, replace(scene, feed=Feed())))
    return findings + suffixes(inner, scene)


_SPECIAL = {
    "env": _env,
    "command": _command,
    "xargs": _xargs,
    "gxargs": _xargs,
    "flock": _flock,
    "watch": _watch,
    "script": _script,
    "parallel": _parallel,
}
