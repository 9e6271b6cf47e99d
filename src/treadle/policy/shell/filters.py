"""Filters whose operand is a little program: sed, awk and jq."""

import re
from collections.abc import Callable, Sequence

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.options import Arguments, judge_arguments, read_arguments, read_table
from treadle.policy.shell.scene import Scene
from treadle.policy.shell.sed import judge_sed
from treadle.protocol.tools import Risk


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
    return [dangerous("piped-script", f"{name} runs its input")]


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
        findings.append(unclear("opaque-code", f"the {name} program or its input is not in the line"))
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


FILTERS: dict[str, Callable[[str, Sequence[str], Scene], list[Finding]]] = {
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "jq": _jq,
    "yq": _jq,
    "gojq": _jq,
}
"""Judges by program name."""
