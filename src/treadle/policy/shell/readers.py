"""Programs that only read, with the options known to be harmless; and how a table of options is read.

A table is one line of text: `-abc` are flags, `-n:` takes a value, `-g%` a pattern that picks the files to read,
`--color?` takes a value only when glued with `=`. After the bar stand the operands in order, the last one repeated when
it ends in `*`: `TEXT`, `LIST` (names shown, contents not), `READ`, `SETS` (a format; anything else changes the system),
or `RAW` for a program that prints its arguments.

The list of readers is short on purpose: with a sandbox everything else is tried in a throw-away copy, without one it
asks. Left out: what follows links out of the workspace, never ends, opens a pager, or has a language of its own.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN, rows_by_name, word_set

_OPTION = re.compile(r"(--?)([^\s:?%]+)([:?%]?)")


class Table(Struct, frozen=True):
    """The options of one program, each with what marks its kind, and its operands."""

    kinds: dict[str, str]
    operands: tuple[str, ...]


class Given(Struct, frozen=True):
    """One option of a command line as it was understood; `name` has its dashes."""

    name: str
    kind: str
    value: str | None = None


class Arguments(Struct, frozen=True):
    """A command line read by a table: options, operands, and the words that the table does not know."""

    given: tuple[Given, ...]
    operands: tuple[str, ...]
    strange: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Whether one of the options was given."""
        return any(option.name in names for option in self.given)

    def values(self, *names: str) -> list[str]:
        """Give the values of the options in order."""
        return [option.value for option in self.given if option.name in names and option.value is not None]


@lru_cache(maxsize=1024)
def read_table(text: str) -> Table:
    """Read one table."""
    options, _, operands = text.partition("|")
    kinds = {
        dashes + name: kind
        for dashes, names, kind in _OPTION.findall(options)
        for name in ((names,) if dashes == "--" else names)
    }
    return Table(kinds, tuple(operands.split()))


def read_arguments(table: Table, words: Sequence[str], *, permute: bool = True) -> Arguments:
    """Read arguments; without `permute` the first operand ends the options, as wrappers do."""
    given: list[Given] = []
    operands: list[str] = []
    strange: list[str] = []
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word == "--" or not (permute or word.startswith("-")):
            operands.extend(pending if word == "--" else [word, *pending])
            break
        if word.startswith("-") and word != "-":
            read = _long(table, word, pending) if word.startswith("--") else _short(table, word, pending)
            given.extend(one for one in read if one is not None)
            strange.extend([word] if None in read else [])
        else:
            operands.append(word)
    strange.extend(word for word in operands[: None if permute else 1] if word[:1] in (UNKNOWN, STAR, ANY, SPLIT))
    return Arguments(tuple(given), tuple(operands), tuple(strange))


def _long(table: Table, word: str, pending: list[str]) -> list[Given | None]:
    """Read a long option; None stands for one that is not known, which is never a reason to allow."""
    name, has_value, value = word.partition("=")
    kind = table.kinds.get(name)
    if kind is None:
        return [None]
    takes = kind in (":", "%") and not has_value and pending
    return [Given(name, kind, value if has_value else pending.pop(0) if takes else None)]


def _short(table: Table, word: str, pending: list[str]) -> list[Given | None]:
    """Read a cluster of short options, the last of which may have its value glued to it or behind it."""
    read: list[Given | None] = []
    for index, letter in enumerate(word[1:], start=2):
        kind = table.kinds.get(f"-{letter}")
        if kind:
            glued = word[index:] or None
            return [*read, Given(f"-{letter}", kind, glued or (pending.pop(0) if kind != "?" and pending else None))]
        if kind is not None:
            read.append(Given(f"-{letter}", kind))
        elif not (letter.isdigit() and "-0" in table.kinds):
            read.append(None)
    return read


_TABLES = r"""
echo true false : printf = | RAW
pwd whoami tty arch nproc groups uptime free = -LPpshm | NONE
uname id = -asnrvmpogGnu --all | TEXT*
hostname = -s | SETS*
ps = -AaNdefFjlHTwLMP -o: -p: -u: -C: --sort: | NONE
date = -uR -I? -d: -r: --iso-8601? --date: | SETS*
ls = -aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1 -I: -w: --color? --group-directories-first --time-style: | LIST*
tree = -adfpiugshDFQNqrtUvcnCAS1J -L: -P: -I: --du --prune --dirsfirst --noreport | LIST*
stat = -Lft -c: --format: | LIST*
file = -bhiLz --mime-type | READ*
du = -0abcDhklmsSx -d: --max-depth: | LIST*
df = -aBhHiklmPT | TEXT*
basename = -az -s: | TEXT*
dirname which type seq = -aws: -f: | TEXT*
realpath readlink = -efmnqsz --relative-to: | LIST*
cat tac rev nl = -AbeEnstTuv -w: -s: -b: | READ*
head tail = -qvz0123456789 -c: -n: | READ*
wc = -clLmw | READ*
sort = -bcCdfghiMmnRrsuVz -k: -t: --reverse --version-sort | READ*
uniq = -cdDiuz -f: -s: -w: | READ
cut = -nsz -b: -c: -d: -f: --complement | READ*
tr = -cCdst | TEXT TEXT
paste fold = -sbz -d: -w: | READ*
column = -tx -s: -c: -o: -R: | READ*
join comm = -123iz -a: -t: -v: -o: -j: | READ READ
diff cmp = -abBcdeilnNpqstTuwyZ0123456789 -C: -U: -I: -W: -x: --brief --color? --width: | READ READ
md5sum sha1sum sha256sum sha512sum shasum b2sum cksum md5 = -bcqrtw -a: | READ*
base64 = -di -w: | READ
od hexdump xxd = -abcCdovxXpu -A: -j: -N: -n: -s: -t: -l: -g: | READ
grep egrep fgrep = -abcEFGhHiIlLnoPqrsTUvVwxyzZ0123456789 -A: -B: -C: -m: -e: --color? --line-number --exclude-dir:
    --include% --recursive | PATTERN READ*
rg = -abcFhHiIlNnoPpqsSuUvwx.0123456789 -A: -B: -C: -e: -g% -j: -m: -M: -r: -t: -T: --count-matches --files
    --files-with-matches --files-without-match --glob% --no-heading --hidden --iglob% --json --max-count: --max-depth:
    --multiline --no-filename --no-ignore --pcre2 --replace: --smart-case --sort: --stats --type: --type-list --vimgrep
    --trim | PATTERN READ*
fd fdfind = -HIuapl0iFgs1 -t: -e: -d: -E: -S: --hidden --type: --extension: --max-depth: --exclude: | PATTERN LIST*
"""

CONTENT_FREE = frozenset({"wc", "ls", "stat", "du", "basename", "dirname", "echo", "file", "md5sum", "sha256sum"})
"""Readers whose output says nothing of what the files hold, or close to nothing."""

OBEY_NOTHING = word_set(
    "ls stat du cat head tail wc nl tac rev cut md5sum sha1sum sha256sum grep fold paste od basename"
)
"""Readers that no option makes write or run anything: a file whose name is an option does no harm to them."""

SHOWS_VERSION = word_set("""
    python3 python node npm gcc g++ clang cmake make git gh docker ruby perl php go cargo rustc java uv ruff black pip
    pip3 tsc mypy bash zsh curl wget sed tar jq psql sqlite3 mysql redis-cli aws vim nvim bun deno swift
""")
"""Programs told to show their version and nothing else; not those that run project code even for that."""


@lru_cache(maxsize=1)
def readers() -> dict[str, Table]:
    """Give the tables by program name."""
    halves = {name: rest.partition("|") for name, rest in rows_by_name(_TABLES).items()}
    return {name: read_table(f"{options} --help --version | {kinds}") for name, (options, _, kinds) in halves.items()}
