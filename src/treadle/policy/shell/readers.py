"""Programs that only read, with the options known to be harmless (the notation is explained in `options`).

An option that is missing here asks. Left out on purpose: what follows links out of the workspace, never ends, opens a
pager or reads names from a file that may hold anything.
"""

from collections.abc import Iterator
from functools import lru_cache

from treadle.policy.marks import split_words
from treadle.policy.shell.options import Table, read_table

_TABLES = r"""
echo true false : = | RAW
printf = | RAW
pwd = -LP | NONE
whoami logname tty arch nproc groups times users = --all --ignore: -i | NONE
uptime = -ps --pretty --since | NONE
hostname = -s --short | HARM
uname = -asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor | NONE
id = -agGnruzZ --group --groups --name --real --user --zero | TEXT*
ls dir vdir = -aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --escape --block-size:
    --ignore-backups --color? --directory --dired --classify? --file-type --format: --full-time --no-group
    --group-directories-first --human-readable --si --hyperlink? --indicator-style: --inode --ignore: --hide:
    --kibibytes --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name
    --quoting-style:
    --reverse --recursive --size --sort: --time: --time-style: --tabsize: --width: --context --zero | LIST*
tree = -adfpiugshDFQNqrtUvcnCASxJX1 -L: -P: -I: -H: -T: --dirsfirst --filesfirst --noreport --du --prune --si --inodes
    --device --matchdirs --ignore-case --gitignore --sort: --charset: --timefmt: --filelimit: -o> --output>
    --fromfile! | LIST*
stat = -LftT -c: --dereference --file-system --format: --printf: --terse | LIST*
file = -bhiklLNnprsvzZ0E -F: -e: -P: -m< -f< --brief --mime --mime-type --mime-encoding --extension --keep-going
    --dereference --no-dereference --no-pad --preserve-date --raw --separator: --magic-file< --files-from< | READ*
du = -0abcDhHklLmsSx -d: -B: -t: -X< --all --apparent-size --block-size: --bytes --total --human-readable --max-depth:
    --summarize --separate-dirs --one-file-system --exclude: --exclude-from< --time? --si --inodes
    --threshold: | LIST*
df = -aBhHiklmPT -t: -x: --all --human-readable --inodes --local --portability --print-type --total --output? --si
    --block-size: --type: --exclude-type: | TEXT*
basename = -az -s: --multiple --suffix: --zero | TEXT*
dirname = -z --zero | TEXT*
realpath = -eLmPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip --zero
    --no-symlinks --relative-to: --relative-base: | LIST*
readlink = -efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --verbose
    --zero | LIST*
cat = -AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs
    --show-nonprinting | READ*
bat batcat = -AnpPu -l: -H: -r: --plain --number --language: --style: --color: --decorations: --line-range:
    --highlight-line: --theme: --tabs: --wrap: --paging: --list-languages --list-themes --show-all | READ*
tac = -br -s: --before --regex --separator: | READ*
rev = | READ*
head = -qvz0123456789 -c: -n: --bytes: --lines: --quiet --silent --verbose --zero-terminated | READ*
tail = -qvz0123456789 -c: -n: --bytes: --lines: --quiet --silent --verbose --zero-terminated | READ*
nl = -p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering: --number-format: --number-separator:
    --number-width: --starting-line-number: --line-increment: --no-renumber | READ*
wc = -clLmw --bytes --chars --lines --words --max-line-length --total: | READ*
sort = -bcCdfghiMmnRrsuVz -k: -t: -S: -T> -o> --ignore-leading-blanks --dictionary-order --ignore-case
    --general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort --numeric-sort --random-sort --reverse
    --sort: --version-sort --check? --merge --stable --unique --zero-terminated --key: --field-separator: --debug
    --buffer-size: --parallel: --batch-size: --output> --temporary-directory> --random-source<
    --compress-program! | READ*
uniq = -cdDiuz -f: -s: -w: --count --repeated --all-repeated? --group? --ignore-case --unique --skip-fields:
    --skip-chars: --check-chars: --zero-terminated | READ WRITE
cut = -nsz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: --only-delimited --complement
    --output-delimiter: --zero-terminated | READ*
tr = -cCdst --complement --delete --squeeze-repeats --truncate-set1 | TEXT TEXT
paste = -sz -d: --serial --delimiters: --zero-terminated | READ*
join = -iz -a: -e: -o: -t: -v: -1: -2: -j: --ignore-case --check-order --nocheck-order --header --zero-terminated
    | READ READ
comm = -123z --check-order --nocheck-order --output-delimiter: --total --zero-terminated | READ READ
fold = -bs -w: --bytes --spaces --width: | READ*
column = -txeJLnm -s: -c: -o: -N: -R: -H: -l: --table --separator: --output-separator: --columns: --json
    --table-columns: --table-right: | READ*
bc = -lqsw --mathlib --quiet --standard | READ*
diff = -abBcdefHiElnNpqstTuwyZ0123456789 -C: -U: -I: -W: -x: -X< --brief --report-identical-files --context?
    --unified? --ed --normal --rcs --side-by-side --width: --left-column --suppress-common-lines --show-c-function
    --show-function-line: --label: --expand-tabs --initial-tab --no-dereference --new-file --exclude:
    --exclude-from< --ignore-case --ignore-all-space --ignore-space-change --ignore-trailing-space --ignore-blank-lines
    --ignore-matching-lines: --strip-trailing-cr --text --minimal --color? --from-file< --to-file< | READ READ
cmp = -bls -i: -n: --print-bytes --verbose --silent --quiet --ignore-initial: --bytes: | READ READ TEXT TEXT
md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum = -bctwz -l: --binary --check --tag --text --zero
    --ignore-missing --quiet --status --strict --warn --length: | READ*
shasum = -bctUp0 -a: --algorithm: --binary --check --text --quiet --status | READ*
cksum sum = -rsz -a: --algorithm: --sysv --untagged --tag --base64 --raw | READ*
base64 base32 = -di -w: --decode --ignore-garbage --wrap: | READ
od = -abcdfhilosvx -A: -j: -N: -S: -t: -w? --address-radix: --skip-bytes: --read-bytes: --format: --output-duplicates
    --width? --strings? | READ*
hexdump hd = -bcCdovx -e: -f< -n: -s: --canonical --length: --skip: --no-squeezing | READ*
xxd = -abCdEeipPru -c: -g: -l: -n: -o: -s: -R: | READ WRITE
strings = -afowd -n: -t: -e: -s: -U: --all --bytes: --radix: --encoding: --print-file-name
    --output-separator: | READ*
grep egrep fgrep = -abcEFGhHiIlLnoPqrsTUvVwxyzZ0123456789 -A: -B: -C: -m: -d: -D: -e: -f< --extended-regexp
    --fixed-strings --basic-regexp --perl-regexp --regexp: --file< --ignore-case --no-ignore-case --invert-match
    --word-regexp --line-regexp --count --color? --colour? --files-with-matches --files-without-match --max-count:
    --only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename --label: --line-number
    --initial-tab --null --after-context: --before-context: --context: --text --binary-files: --devices: --directories:
    --exclude: --exclude-from< --exclude-dir: --include% --recursive --line-buffered --null-data --binary
    | PATTERN READ*
rg = -abcFhHiIlNnoPpqsSuUvwxV.0123456789 -A: -B: -C: -d: -E: -e: -f< -g% -j: -m: -M: -r: -t: -T: --after-context:
    --before-context: --context: --color: --colors: --column --count --count-matches --case-sensitive --crlf
    --context-separator: --debug --encoding: --engine: --fixed-strings --field-match-separator: --file< --files
    --files-with-matches --files-without-match --glob% --glob-case-insensitive --heading --no-heading --hidden
    --iglob% --ignore-case --ignore-file< --include-zero --invert-match --json --line-buffered --line-number
    --no-line-number --line-regexp --max-columns: --max-columns-preview --max-count: --max-depth: --max-filesize:
    --multiline --multiline-dotall --no-config --no-filename --no-ignore --no-ignore-vcs --no-messages --null
    --one-file-system --only-matching --passthru --pcre2 --pretty --quiet --regexp: --replace: --smart-case --sort:
    --sortr: --stats --text --threads: --trim --type: --type-not: --type-add% --type-list --unrestricted --vimgrep
    --with-filename --word-regexp --pre! --pre-glob: --hostname-bin! | PATTERN READ*
ag ack = -abcFhHiIlLnoQrsSuvw0123456789 -A: -B: -C: -G% -m: -g: --ignore: --ignore-dir: --nocolor --color --nogroup
    --hidden --literal --depth: --pager! | PATTERN READ*
zcat gzcat bzcat xzcat zstdcat lz4cat = -fqv --force --quiet --verbose | READ*
gzip gunzip pigz = -cdfklnNqrtv --stdout --to-stdout --decompress --uncompress --list --test --quiet --verbose --keep
    | READ*
bzip2 bunzip2 xz unxz lzma unlzma zstd unzstd lz4 = -cdfkqtlv --stdout --decompress --list --test --quiet --verbose
    --keep | READ*
unzip = -cClLpqtvzZ1hMjn | READ PICK*
which = -as --all --skip-alias --skip-functions --skip-dot --skip-tilde --show-dot --show-tilde | TEXT*
type = -aftpP | TEXT*
ss = -altunpsxwoemiHO046 --all --listening --tcp --udp --unix --numeric --processes --summary --options --extended
    --memory --info --no-header --oneline --ipv4 --ipv6 | TEXT*
alias shopt = -p | NONE
seq = -w -f: -s: --equal-width --format: --separator: | TEXT TEXT TEXT
expr = | RAW
free = -bghklmtvw --bytes --kibi --mebi --gibi --kilo --mega --giga --human --wide --total --si | NONE
lsblk = -abdDfilmnoOpPrsStxzJ --all --fs --json --list --paths --output: --noheadings | LIST*
pgrep = -acfilnovwx -d: -g: -G: -P: -s: -t: -u: -U: --list-name --list-full --full --exact --newest --oldest
    --count | TEXT*
fd fdfind = -HIupaLl0iFgs1qV -t: -e: -d: -E: -S: -c: -j: -o: -x! -X! --hidden --no-ignore --unrestricted
    --absolute-path --list-details --print0 --ignore-case --case-sensitive --fixed-strings --glob --regex --type:
    --extension: --max-depth: --min-depth: --exact-depth: --exclude: --size: --changed-within: --changed-before:
    --color: --full-path --max-results: --quiet --owner: --threads: --no-ignore-vcs --and: --prune --exec! --exec-batch!
    --search-path< --base-directory< --ignore-file< | PATTERN LIST*
"""

CONTENT_FREE = frozenset({"wc", "ls", "stat", "du", "basename", "dirname", "echo", "file", "md5sum", "sha256sum"})
"""Readers whose output says nothing of what the files hold, or close to nothing."""

NEEDS_ONE_OF: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("gzip", "gunzip", "pigz", "bzip2", "bunzip2", "xz", "unxz", "lzma", "unlzma", "zstd", "unzstd", "lz4"),
        frozenset({"-c", "-l", "-t", "--stdout", "--to-stdout", "--list", "--test"}),
    ),
    "unzip": frozenset({"-l", "-p", "-c", "-t", "-v", "-Z", "-z"}),
}
"""Programs that do more than read unless one of these options is given."""

VERSION_BANNERS = frozenset(
    split_words("""
    python python3 python2 node npm gcc g++ clang clang++ cc c++ make cmake ninja git gh docker podman ruby perl php lua
    java javac kotlin scala go cargo rustc rustup swift deno bun bash zsh sh dash fish curl wget ssh tar rsync sqlite3
    psql mysql redis-cli jq yq sed awk gawk find tmux vim nvim emacs gdb lldb valgrind strace pandoc
    ffmpeg helm openssl ruff black uv shellcheck xargs env nice timeout patch cp mv rm mkdir touch tee chmod
    pip pip3 pipx mypy tsc prettier elixir ghc R julia nim zig ffprobe aws docker-compose systemctl gem
""")
)
"""Programs that may be asked for their version or help; not those that run project code even for that."""

CAPITAL_V = frozenset(
    split_words("""
    python python3 python2 cargo rustc rustup cmake gh curl wget ssh rsync psql mysql jq yq awk gawk strace ruff uv
    shellcheck deno tmux perl go docker pip pip3 mypy ghc
""")
)
"""Programs whose `-V` prints the version or is refused; a shell may go on and run its input."""


@lru_cache(maxsize=1)
def readers() -> dict[str, Table]:
    """Give the tables by program name."""
    return dict(_read_tables())


def _read_tables() -> Iterator[tuple[str, Table]]:
    joined = _TABLES.replace("\n    ", " ")
    for line in filter(None, joined.splitlines()):
        names, _, rest = line.partition(" =")
        options, _, operands = rest.partition("|")
        table = read_table(f"{options} --help --version | {operands}")
        for name in names.split():
            yield name, table
