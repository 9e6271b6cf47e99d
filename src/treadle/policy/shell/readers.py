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
pwd whoami tty arch nproc groups uptime free = -LPpshm --all | NONE
uname id = -asnrvmpogGnu | TEXT*
hostname = -s --short | SETS*
ps = -AaNdefFjlHTwLMP -o: -p: -u: -C: --sort: --pid: --ppid: --forest --no-headers | NONE
date = -uR -I? -d: -r: --iso-8601? --date: --utc --rfc-3339: | SETS*
ls = -aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1 -I: -w: --all --almost-all --color? --group-directories-first --human-readable
    --time-style: --directory --full-time --ignore: --inode --recursive --reverse --size --sort: --time: | LIST*
tree = -adfpiugshDFQNqrtUvcnCAS1J -L: -P: -I: --dirsfirst --du --prune --gitignore --filesfirst --noreport | LIST*
stat = -Lft -c: --format: --printf: | LIST*
file = -bhiLz --brief --mime --mime-type --mime-encoding | READ*
du = -0abcDhklmsSx -d: --all --human-readable --max-depth: --summarize --apparent-size --bytes --total | LIST*
df = -aBhHiklmPT --human-readable --total | TEXT*
basename = -az -s: --suffix: | TEXT*
dirname which type seq = -aws: -f: --all | TEXT*
realpath readlink = -efmnqsz --relative-to: --canonicalize | LIST*
cat tac rev nl = -AbeEnstTuv -w: -s: -b: --number | READ*
head tail = -qvz0123456789 -c: -n: --bytes: --lines: --quiet | READ*
wc = -clLmw --lines --bytes --chars --words | READ*
sort = -bcCdfghiMmnRrsuVz -k: -t: --numeric-sort --reverse --unique --ignore-case --version-sort --key: --stable
    --field-separator: --human-numeric-sort | READ*
uniq = -cdDiuz -f: -s: -w: --count --repeated --unique --ignore-case | READ
cut = -nsz -b: -c: -d: -f: --delimiter: --fields: --characters: --complement --only-delimited | READ*
tr = -cCdst --complement --delete --squeeze-repeats | TEXT TEXT
paste fold = -sbz -d: -w: --serial --delimiters: --width: | READ*
column = -tx -s: -c: -o: -R: --table --separator: | READ*
join comm = -123iz -a: -t: -v: -o: -j: --output-delimiter: | READ READ
diff cmp = -abBcdeilnNpqstTuwyZ0123456789 -C: -U: -I: -W: -x: --brief --unified? --side-by-side --exclude: --ignore-case
    --ignore-all-space --ignore-space-change --ignore-blank-lines --color? --width: --label: --new-file --minimal
    --strip-trailing-cr --suppress-common-lines | READ READ
md5sum sha1sum sha256sum sha512sum shasum b2sum cksum = -bctw -a: --check --tag --quiet --status | READ*
base64 = -di -w: --decode --wrap: | READ
od hexdump xxd = -abcCdovxXpu -A: -j: -N: -n: -s: -t: -l: -g: | READ
grep egrep fgrep = -abcEFGhHiIlLnoPqrsTUvVwxyzZ0123456789 -A: -B: -C: -m: -e: --extended-regexp --fixed-strings
    --perl-regexp --regexp: --ignore-case --invert-match --word-regexp --count --color? --quiet --files-with-matches
    --files-without-match --max-count: --only-matching --no-filename --line-number --after-context: --before-context:
    --context: --exclude: --exclude-dir: --include% --recursive --line-regexp --no-messages --with-filename | PATTERN
    READ*
rg = -abcFhHiIlNnoPpqsSuUvwx.0123456789 -A: -B: -C: -e: -g% -j: -m: -M: -r: -t: -T: --after-context: --before-context:
    --context: --color: --count --count-matches --fixed-strings --files --files-with-matches --files-without-match
    --glob% --no-heading --hidden --iglob% --ignore-case --invert-match --json --line-number --max-count: --max-depth:
    --multiline --no-filename --no-ignore --only-matching --pcre2 --quiet --regexp: --replace: --smart-case --sort:
    --stats --type: --type-list --vimgrep --word-regexp --column --max-columns: --trim --with-filename --heading
    --type-not: | PATTERN READ*
fd fdfind = -HIuapl0iFgs1 -t: -e: -d: -E: -S: --hidden --no-ignore --glob --type: --extension: --max-depth: --exclude:
    --absolute-path --full-path | PATTERN LIST*
"""

CONTENT_FREE = frozenset({"wc", "ls", "stat", "du", "basename", "dirname", "echo", "file", "md5sum", "sha256sum"})
"""Readers whose output says nothing of what the files hold, or close to nothing."""

OBEY_NOTHING = word_set(
    "ls stat du cat head tail wc nl tac rev cut md5sum sha1sum sha256sum grep fold paste od basename"
)
"""Readers that no option makes write or run anything: a file whose name is an option does no harm to them."""

SHOWS_VERSION = re.compile(
    r"(python3?|node|npm|[gc]\+\+|gcc|clang|cc|c?make|ninja|git|gh|docker|podman|ruby|perl|php|lua|javac?|kotlin|scala"
    r"|go|cargo|rust(c|up)|swift|deno|bun|(ba|z)?sh|curl|wget|ssh|tar|rsync|sqlite3|mysql|psql|redis-cli|jq|yq|g?awk"
    r"|sed|find|tmux|n?vim|gdb|pandoc|ffmpeg|helm|openssl|ruff|black|uv|shellcheck|pip[3x]?|mypy|tsc|ghc|R|julia|zig"
    r"|aws|cp|mv|rm) --version|(node|npm|perl|php|ruby|docker|gcc|make) -v|(python3?|cargo|rustc) -V"
    r"|java -version|go version"
)
"""Programs told to show their version and nothing else; not those that run project code even for that."""


@lru_cache(maxsize=1)
def readers() -> dict[str, Table]:
    """Give the tables by program name."""
    halves = {name: rest.partition("|") for name, rest in rows_by_name(_TABLES).items()}
    return {name: read_table(f"{options} --help --version | {kinds}") for name, (options, _, kinds) in halves.items()}
