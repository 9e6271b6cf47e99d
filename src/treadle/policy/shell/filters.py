"""Programs whose operand is a little program: find, sed, awk, jq, and tests."""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, as_glob, fits, is_static, split_words
from treadle.policy.names import picks_secret
from treadle.policy.operations import PathOp
from treadle.policy.shell.builtins import judge_evaluated
from treadle.policy.shell.listing import SEARCHES, Use, listed_by
from treadle.policy.shell.options import Arguments, judge_arguments, read_arguments, read_table
from treadle.policy.shell.readers import CONTENT_FREE, readers
from treadle.policy.shell.scene import Feed, Scene
from treadle.policy.shell.sed import judge_sed
from treadle.protocol.tools import Risk

FILE_TESTS = frozenset({"-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-nt", "-ot", "-ef"})
"""Operators of tests that look at the file whose name follows."""

_BINARY_TESTS = frozenset({"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"})
_ALL_TESTS = FILE_TESTS | _BINARY_TESTS | {"-z", "-n"}

_FIND_FLAGS = frozenset(
    split_words("""
    -print -print0 -ls -prune -quit -depth -d -mount -xdev -daystart -empty -executable -readable -writable -nouser
    -nogroup -true -false -not -a -and -o -or ! ( ) , -noleaf -ignore_readdir_race -P
""")
)
_FIND_VALUES = frozenset(
    split_words("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin -atime
    -amin -ctime -cmin -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -printf -newermt -newerct -used
    -lname -ilname -fstype -O
""")
)
_FIND_READS = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_FIND_WRITES = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})
_FIND_BRANCHES = frozenset({"-o", "-or", "!", "-not", ","})
_FIND_PATTERNS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_FIND_DESTROYERS = frozenset({"rm", "unlink", "shred", "truncate", "dd"})
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


@dataclass(frozen=True, slots=True)
class _Search:
    """Where find starts, and the patterns of paths and `names` it is given.

    `is_plain`: it finds files only, no links, and only those that all the patterns fit. `is_narrow`: what it finds has
    a name that a pattern says something of.
    """

    starts: tuple[str, ...]
    patterns: tuple[str, ...]
    names: tuple[str, ...] = ()
    is_plain: bool = False
    before: tuple[str, ...] = ()
    is_narrow: bool = False


def _find(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.READ, "reader", "find only lists")]
    starts: list[str] = []
    pending = list(words)
    while (pending and pending[0] in ("-P", "-H", "-L", "-D")) or (pending and pending[0].startswith("-O")):
        if pending.pop(0) != "-P":
            findings.append(unclear("unknown-option", "find follows links or prints its plan"))
    while pending and not (pending[0].startswith("-") or pending[0] in ("(", "!")):
        starts.append(pending.pop(0))
    for start in starts:
        findings.extend(scene.path(start, PathOp.LIST))
    patterns = [text for test, text in pairwise(pending) if test in _FIND_PATTERNS]
    patterns += [
        text.replace("\\", "").replace(".*", "*") for test, text in pairwise(pending) if test.endswith("regex")
    ]
    has_files_only = ("-type", "f") in pairwise(pending)
    branches = not _FIND_BRANCHES.isdisjoint(pending)
    names = [name for test, name in pairwise(pending) if test in ("-name", "-iname")]
    plain = has_files_only and not branches
    runs = next((place for place, word in enumerate(words) if word in _FIND_RUNS), len(words))
    search = _Search(
        tuple(starts),
        tuple(patterns),
        tuple(names),
        is_plain=plain,
        before=tuple(words[:runs]),
        is_narrow=_is_narrow(pending),
    )
    while pending:
        findings.extend(_find_step(pending, search, scene))
    return findings


def _find_step(pending: list[str], search: _Search, scene: Scene) -> list[Finding]:
    word = pending.pop(0)
    if word in _FIND_FLAGS:
        return []
    if word in _FIND_VALUES or re.fullmatch(r"-newer[aBcmt]{2}", word):
        if pending:
            pending.pop(0)
        return []
    if word in _FIND_READS:
        return scene.path(pending.pop(0), PathOp.READ) if pending else []
    if word in _FIND_WRITES:
        findings = scene.path(pending.pop(0), PathOp.WRITE) if pending else []
        if word == "-fprintf" and pending:
            pending.pop(0)
        return [*findings, Finding(Risk.WRITE, "writer", f"find {word} writes a file")]
    if word == "-delete":
        return _find_delete(search, scene)
    if word in _FIND_RUNS:
        return _find_run(word, pending, search, scene)
    return [unclear("unknown-option", f"find: {word!r} is not a known test or action"), *scene.mentions(word)]


def _is_narrow(tests: Sequence[str]) -> bool:
    depth, negated, narrow = 0, False, False
    for test, text in pairwise((*tests, "")):
        depth += {"(": 1, ")": -1}.get(test, 0)
        if test in ("-o", "-or", ",") and depth == 0:
            return False
        if test in _FIND_PATTERNS and not negated:
            narrow |= is_static(text) and text.strip("*?./") != ""
        negated = test in ("!", "-not")
    return narrow


def _find_delete(search: _Search, scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.EXECUTE, "delete", "find -delete deletes files")]
    if not search.is_narrow:
        findings.append(dangerous("delete-tree", "deletes everything below the directory, whatever its name"))
    return findings + _reaches_out(search, scene)


def _find_run(word: str, pending: list[str], search: _Search, scene: Scene) -> list[Finding]:
    inner: list[str] = []
    while pending:
        part = pending.pop(0)
        if part == ";" or (part == "+" and inner and inner[-1] == "{}"):
            break
        inner.append(part)
    findings = [Finding(Risk.EXECUTE, "wrapper", f"find {word} runs a command for what it finds")]
    if not inner:
        return findings
    if word == "-exec" and (reading := _reads_found(inner, search, scene) or _reads_listed(inner, search, scene)):
        return reading
    found = scene.command(tuple(part.replace("{}", UNKNOWN) for part in inner))
    for pattern in search.patterns:
        marked = as_glob(pattern)
        command = tuple(part.replace("{}", marked) for part in inner)
        found.extend(finding for finding in scene.command(command) if finding.risk is Risk.CRITICAL)
    if inner[0] not in CONTENT_FREE:
        found.extend(one for start in search.starts for one in scene.mentions(start) if one.rule == "secret-read")
    if inner[0] in _FIND_DESTROYERS and not search.is_narrow:
        found.append(dangerous("delete-tree", f"{inner[0]} destroys everything below the directory, whatever its name"))
    if any(finding.risk is Risk.CRITICAL for finding in found) or inner[0] in ("rm", "mv", "shred", "dd", "cp"):
        findings.extend(_reaches_out(search, scene))
    return findings + found


def _reads_found(inner: list[str], search: _Search, scene: Scene) -> list[Finding]:
    """Judge a reader of what find finds by a file that it could find; empty where more than reading is possible.

    What it finds begins with where it starts, so that it is never taken for an option.
    """
    starts = search.starts or (".",)
    if not all(map(is_static, (*starts, *inner))) or any("{}" in part and part != "{}" for part in inner):
        return []
    if inner[0] not in CONTENT_FREE:
        if not search.is_plain or not search.names or inner[0] not in readers():
            return []
        if not all(map(_names_no_secret, search.names)):
            return []
    name = search.names[0].translate({ord("*"): "x", ord("?"): "x"}) if search.names else "x"
    found = [
        finding
        for start in starts
        for finding in scene.command(
            tuple(posixpath.join(start, posixpath.basename(name)) if part == "{}" else part for part in inner)
        )
    ]
    return found if all(finding.risk in (Risk.NONE, Risk.READ) for finding in found) else []


def _reads_listed(inner: list[str], search: _Search, scene: Scene) -> list[Finding]:
    """Judge a reader by the files that find finds now; empty where more than reading is possible."""
    if not all(map(is_static, inner)) or any("{}" in part and part != "{}" for part in inner):
        return []
    feed = Feed(upstream=(("find", *search.before),), lists_in=scene.cwd)
    use = Use.NAME if inner[0] in CONTENT_FREE else Use.SEARCH if inner[0] in SEARCHES else Use.READ
    listing = listed_by(replace(scene, feed=feed), use)
    if listing is None:
        return []
    found = scene.command(tuple(listing.sample if part == "{}" else part for part in inner))
    return found if all(finding.risk in (Risk.NONE, Risk.READ) for finding in found) else []


def _names_no_secret(pattern: str) -> bool:
    """Whether a name pattern says enough to tell that no protected file fits it."""
    says_something = pattern.strip("*?.") != "" and "[" not in pattern and "\\" not in pattern
    return says_something and picks_secret(as_glob(pattern)) is None


def _reaches_out(search: _Search, scene: Scene) -> list[Finding]:
    findings = [finding for start in search.starts for finding in scene.path(start, PathOp.LIST)]
    if all(finding.risk is Risk.READ for finding in findings):
        return []
    return [dangerous("write-outside", "changes files outside the workspace")]


def _sed(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    table = read_table("""
    -nErsuzb -e: -f< -i? -l: -I? --quiet --silent --regexp-extended --separate --unbuffered --null-data --posix
    --expression: --file< --in-place? --line-length: --sandbox --debug --follow-symlinks --help --version
""")
    arguments = read_arguments(table, words)
    findings = judge_arguments(name, table, Arguments(arguments.given, (), arguments.strange), scene)
    scripts = arguments.values("-e", "--expression")
    operands = arguments.operands
    if not scripts and not arguments.has("-f", "--file", "--help", "--version"):
        scripts, operands = list(operands[:1]), operands[1:]
    if arguments.has("-f", "--file"):
        findings.append(unclear("opaque-code", "the script is in a file"))
    findings.extend(judge_sed("\n".join(scripts), scene))
    in_place = arguments.has("-i", "-I", "--in-place")
    if in_place:
        findings.append(Finding(Risk.WRITE, "writer", "sed -i changes files"))
    for operand in operands:
        findings.extend(scene.path(operand, PathOp.READ))
        if in_place:
            findings.extend(scene.path(operand, PathOp.WRITE))
    return findings


_AWK_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_AWK_DANGER = re.compile(r"\bsystem\b|\bgetline\b|\|&|/inet[46]?/|@load|\bENVIRON\b|(?<!\|)\|(?!\|)")
_AWK_TARGET = re.compile(r'>>?\s*\(?\s*"((?:[^"\\]|\\.)*)"')
_AWK_OPAQUE = re.compile(r"@|\bARGV\b|\bARGC\b|\bPROCINFO\b|\bSYMTAB\b|\bclose\b|\bfflush\b|`")


def _awk(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    table = read_table("""
    -F: -v: -f< -i! -l! -E< -e: -W! -d> -p> -o> -D> -bcCghMnNOPrsStV --field-separator: --assign: --file< --include!
    --load! --exec! --csv --posix --traditional --sandbox --help --version | TEXT*
""")
    arguments = read_arguments(table, words)
    findings = judge_arguments(name, table, arguments, scene)
    operands = list(arguments.operands)
    programs = arguments.values("-e")
    if arguments.has("-f", "--file", "-E", "--exec"):
        findings.append(unclear("opaque-code", "the program is in a file"))
        if not {"-", "/dev/stdin"}.isdisjoint(arguments.values("-f", "--file", "-E", "--exec")):
            findings.extend(_awk_from_input(name, scene))
    elif not programs and operands:
        programs = [operands.pop(0)]
    for program in programs:
        findings.extend(_awk_program(program, scene))
    for text in arguments.values("-v", "--assign"):
        findings.extend(scene.mentions(text))
    for operand in operands:
        is_assigned = re.match(r"[A-Za-z_]\w*=", operand)
        findings.extend(scene.mentions(operand) if is_assigned else scene.path(operand, PathOp.READ))
    return findings


def _awk_from_input(name: str, scene: Scene) -> list[Finding]:
    if scene.feed.text is not None and is_static(scene.feed.text):
        return _awk_program(scene.feed.text, scene)
    return [dangerous("piped-script", f"what comes in is run by {name}")]


def _awk_program(program: str, scene: Scene) -> list[Finding]:
    findings: list[Finding] = []
    bare = _AWK_STRING.sub(" ", program)
    # Text between slashes may hide a quote, so danger is looked for in the whole program too.
    match = _AWK_DANGER.search(bare) or re.search(r"\bsystem\s*\(|\bgetline\b|\|\s*\"|\"\s*\|", program)
    if match is not None:
        findings.append(dangerous("opaque-code", f"the awk program contains {match.group().strip()!r}"))
    for target in _AWK_TARGET.findall(program):
        findings.extend(scene.path(target, PathOp.WRITE))
    for token in dict.fromkeys(re.split(r"[\s'\"(){};,]+", program)):
        if "/" in token or token.startswith("."):
            findings.extend(scene.mentions(token))
    hides = '"' in program and "/" in program and ">" in program
    piped = re.search(r"(?<!\|)\|(?!\|)", program) is not None
    writes = (
        hides
        or piped
        or (">" in bare and ("/" in bare or any("print" in part.split(">")[0] for part in _statements(bare))))
    )
    if writes or _AWK_OPAQUE.search(program) or not is_static(program):
        findings.append(unclear("opaque-code", "the awk program may do more than print"))
    return findings


def _statements(program: str) -> list[str]:
    return [part for part in re.split(r"[;{}\n]", program) if ">" in part]


_JQ_DANGER = re.compile(
    r"\$ENV\b|(?<!(?<!\.)\.)\benv\b|\binput_filename\b|\bstrenv\b|\benvsubst\b|\bload|\binclude\b|\bimport\b|\$__prog|\bsystem\b"
)


def _jq(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    if name != "jq" and any(re.match(r"-\w*i|--inplace|--in-place|-s$|--split-exp", word) for word in words):
        mentioned = [found for word in words for found in scene.path(word, PathOp.WRITE) if not word.startswith("-")]
        return [Finding(Risk.WRITE, "writer", f"{name} changes files"), *mentioned]
    pending, flat = list(words), list[str]()
    findings: list[Finding] = []
    while pending:
        word = pending.pop(0)
        if word in ("--arg", "--argjson", "--rawfile", "--slurpfile", "--argfile"):
            values = pending[:2]
            del pending[:2]
            if word not in ("--arg", "--argjson") and len(values) == 2:
                findings.extend(scene.path(values[1], PathOp.READ))
        else:
            flat.append(word)
    table = read_table("""
    -ncrjaSCMesRVhPNv -f< -L! -o: -p: -I: --null-input --compact-output --raw-output --join-output --ascii-output
    --sort-keys --color-output --monochrome-output --exit-status --slurp --raw-input --tab --indent: --from-file<
    --seq --stream --unbuffered --args --jsonargs --output-format: --input-format: --prettyPrint --no-colors --help
    --version | TEXT READ*
""")
    arguments = read_arguments(table, flat)
    if arguments.operands[:1] in (("eval",), ("e",), ("eval-all",), ("ea",)):
        arguments = Arguments(arguments.given, arguments.operands[1:], arguments.strange)
    if arguments.has("-f", "--from-file", "--args", "--jsonargs"):
        findings.append(unclear("opaque-code", f"the {name} program or its input is not in place"))
    findings.extend(judge_arguments(name, table, arguments, scene))
    if name == "yq":
        # Where a file has the name of the expression, yq takes it for the file; a lone one is read then.
        findings.extend(found for word in arguments.operands[:1] for found in scene.mentions(word))
        findings.extend(
            found
            for word in arguments.operands
            if len(arguments.operands) == 1
            for found in scene.path(word, PathOp.READ)
        )
    match = _JQ_DANGER.search(" ".join(arguments.operands[:1]))
    if match is not None:
        findings.append(dangerous("opaque-code", f"the {name} program contains {match.group()!r}"))
    return findings


def _test(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    if name == "[" and (not words or words[-1] != "]"):
        return [unclear("syntax", "[ is not closed")]
    # -v evaluates a subscript, and -eq does in some shells.
    if any(word == "-v" or ("[" in word and word != "[") for word in words):
        found = [found for word in words for found in judge_evaluated(word, scene)]
        return [unclear("evaluated-text", "the test may evaluate a subscript"), *found]
    if _may_evaluate(words[:-1] if name == "[" else words):
        return [
            unclear("evaluated-text", "a word of the test is unknown and could be -v, which evaluates the next one")
        ]
    findings = [Finding(Risk.READ, "reader", "a test only looks")]
    for operator, word in pairwise(words):
        if operator in FILE_TESTS and is_static(word):
            findings.extend(scene.path(word, PathOp.LIST))
    return findings


def _may_evaluate(words: Sequence[str]) -> bool:
    """Whether a word that is not known could turn out to be the operator -v and the next one its operand.

    A word before a binary operator is never one, nor is one behind an operator.
    """
    places = (place for place, word in enumerate(words[:-1]) if not is_static(word) and fits(word, "-v"))
    return any(
        words[place + 1] not in _BINARY_TESTS and not (place and words[place - 1] in _ALL_TESTS) for place in places
    )


_PS_CLUSTER = re.compile(r"[acfghjlmrsStTuUvwxXZ]*(?P<fields>o?)")
_PS_FIELDS = re.compile(
    r"(([%]?(pid|ppid|pgid|sid|uid|gid|user|group|ruser|comm|command|cmd|args|ucmd|stat|state|s|etime|etimes|time|cputime|cpu"
    r"|mem|pcpu|pmem|rss|vsz|sz|size|nlwp|nice|ni|pri|tty|tt|start|start_time|lstart|stime|c|f|wchan|psr)(:\d+)?(=\w*)?)(,|$))+"
)


def _ps(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    if words and (cluster := _PS_CLUSTER.fullmatch(words[0])):
        words = words[1:] if not cluster["fields"] else [f"-{cluster['fields']}", *words[1:]]
    table = read_table("""
    -AaNdefFjlHTcyZwLMP -o: -O: -C: -p: -u: -U: -g: -G: -t: -s: --sort: --pid: --ppid: --user: --forest --no-headers
    --headers --format: --version --help -q:
""")
    arguments = read_arguments(table, words)
    findings = judge_arguments("ps", table, arguments, scene)
    if not all(_PS_FIELDS.fullmatch(value) for value in arguments.values("-o", "-O", "--format")):
        findings.append(unclear("prints-environment", "ps: the fields could name the environment of processes"))
    if "-E" in words or any("e" in word and re.fullmatch(r"[a-zA-Z]+", word) for word in arguments.operands):
        findings.append(dangerous("prints-environment", "prints the environment of other processes"))
    return findings


def _date(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    table = read_table("""
    -uR -I? -d: -f< -r: -s! -j --utc --universal --rfc-email --iso-8601? --rfc-3339: --date: --debug --file<
    --reference< --set! --help --version | TEXT
""")
    arguments = read_arguments(table, words)
    findings = judge_arguments("date", table, arguments, scene)
    if any(not operand.startswith("+") for operand in arguments.operands):
        findings.append(dangerous("sets-clock", "sets the clock"))
    return findings


FILTERS: dict[str, Callable[[str, Sequence[str], Scene], list[Finding]]] = {
    "find": _find,
    "gfind": _find,
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "jq": _jq,
    "yq": _jq,
    "gojq": _jq,
    "test": _test,
    "[": _test,
    "ps": _ps,
    "date": _date,
}
"""Judges by program name."""
