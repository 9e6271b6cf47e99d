"""Programs that tell what the machine does: ps and date."""

import re
from collections.abc import Sequence

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.shell.options import judge_arguments, read_arguments, read_table
from treadle.policy.shell.scene import Scene

_PS_CLUSTER = re.compile(r"[acfghjlmrsStTuUvwxXZ]*(?P<fields>o?)")
_PS_FIELDS = re.compile(
    r"(([%]?(pid|ppid|pgid|sid|uid|gid|user|group|ruser|comm|command|cmd|args|ucmd|stat|state|s|etime|etimes|time|cputime|cpu"
    r"|mem|pcpu|pmem|rss|vsz|sz|size|nlwp|nice|ni|pri|tty|tt|start|start_time|lstart|stime|c|f|wchan|psr)(:\d+)?(=\w*)?)(,|$))+"
)


def judge_ps(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge ps: its fields may name the environment of processes."""
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


def judge_date(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge date: it shows the clock, or sets it."""
    table = read_table("""
    -uR -I? -d: -f< -r: -s! -j --utc --universal --rfc-email --iso-8601? --rfc-3339: --date: --debug --file<
    --reference< --set! --help --version | TEXT
""")
    arguments = read_arguments(table, words)
    findings = judge_arguments("date", table, arguments, scene)
    if any(not operand.startswith("+") for operand in arguments.operands):
        findings.append(dangerous("sets-clock", "sets the clock"))
    return findings
