"""What git's subcommands know: options that only read, and options that destroy, leak or run something."""

import re
from functools import lru_cache

from treadle.policy.shell.options import Table, read_table

_DIFF = """
-0123456789pusabBCDeEfgGhiIlLMnNoPqrRStTvwWXz --ext-diff! --textconv! --output> --stat? --numstat --shortstat
--summary --dirstat? --name-only --name-status --color? --no-color --color-words? --word-diff? --patch --no-patch
--raw --oneline --patch-with-stat --minimal --patience --histogram --diff-algorithm: --ignore-all-space
--ignore-space-change --ignore-space-at-eol --ignore-blank-lines --ignore-cr-at-eol --function-context --unified:
--inter-hunk-context: --no-renames --find-renames? --find-copies? --find-copies-harder --diff-filter: --cached
--staged --merge-base --check --full-index --binary --abbrev? --no-prefix --exit-code --quiet --no-ext-diff
--no-textconv --text --relative? --submodule? --pickaxe-regex --pickaxe-all --compact-summary --color-moved?
--indent-heuristic --src-prefix: --dst-prefix: --ita-invisible-in-index --skip-to: --rotate-to:
"""
_LOG = """
--max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: --all-match --invert-grep
--regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --merges --no-merges --first-parent --all
--branches? --tags? --remotes? --glob: --exclude: --format: --pretty? --date: --graph --decorate? --no-decorate
--abbrev-commit --no-abbrev-commit --follow --full-history --reverse --topo-order --date-order --author-date-order
--walk-reflogs --left-right --cherry-pick --cherry-mark --cherry --source --notes? --no-notes --relative-date
--parents --children --simplify-by-decoration --ancestry-path? --count --min-parents: --max-parents: --numbered
--summary --email --group: --boundary --not --left-only --right-only --dense --sparse --encoding: --no-walk? --objects
--name-only --show-pulls --mailmap --use-mailmap --line-prefix: --bisect
"""
_READERS_TEXT = """
status = -sbvzu? --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignored?
    --ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --column? --no-column
    --ignore-submodules?
diff = @diff -U: -S: -G: -O< --no-index
log = @log -U: -S: -G: -n: -L: -O<
show = @log -U: -S: -G: -n: -L: -O<
whatchanged = @log -n:
shortlog = @log -n -w?
reflog = @log -n:
rev-list = @log -n: --disk-usage? --header --timestamp
diff-tree = @diff --root -m -c --cc --no-commit-id
diff-index = @diff
diff-files = @diff
range-diff = @diff --creation-factor: --no-dual-color
rev-parse = -q --verify --short? --abbrev-ref? --symbolic --symbolic-full-name --show-toplevel --show-prefix
    --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir
    --is-bare-repository --all --branches? --tags? --remotes? --revs-only --no-revs --flags --no-flags --sq --not
    --show-superproject-working-tree --is-shallow-repository --show-object-format? --quiet --default: --git-path:
    --path-format: --since: --until:
ls-files = -cdimoskutvfz -x: -X< --cached --deleted --modified --others --ignored --stage --unmerged --killed
    --directory --no-empty-directory --exclude: --exclude-from< --exclude-per-directory< --exclude-standard
    --error-unmatch --full-name --abbrev? --debug --eol --deduplicate --recurse-submodules --with-tree: --format:
ls-tree = -drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev? --format:
cat-file = -tsep --textconv! --filters! --batch-all-objects --allow-unknown-type --batch-check? --batch? --buffer
for-each-ref = --count: --sort: --format: --points-at: --contains? --no-contains? --merged? --no-merged? --color?
    --ignore-case --exclude: --omit-empty
show-ref = -dqs --head --heads --tags --branches --dereference --hash? --verify --quiet --abbrev?
merge-base = -a --all --octopus --is-ancestor --fork-point --independent
name-rev = --tags --refs: --exclude: --all --name-only --no-undefined --always
describe = --all --tags --contains --abbrev? --candidates: --exact-match --debug --long --match: --exclude:
    --always --first-parent --dirty? --broken?
blame = -bcefklnpstw0123456789 -L: -M? -C? -S< --contents< --date: --show-stats --score-debug --show-name
    --show-number --porcelain --line-porcelain --incremental --root --reverse: --first-parent --ignore-rev:
    --ignore-revs-file< --abbrev: --since: --color-lines --color-by-age --show-email
annotate = -bcefklnpstw -L:
grep = -0123456789aEFGhHIilLnoPpqrvVwWcz -A: -B: -C: -e: -f< -m: -O! --open-files-in-pager! --cached --untracked
    --no-exclude-standard --exclude-standard --text --ignore-case --word-regexp --invert-match --full-name
    --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches
    --name-only --null --files-without-match --count --color? --no-color --break --heading --show-function
    --function-context --max-depth: --recursive --no-recursive --all-match --and --or --not --quiet --threads:
    --only-matching --max-count: --textconv!
cherry = -v --abbrev?
count-objects = -vH --verbose --human-readable
check-ignore = -qvnz --quiet --verbose --non-matching --no-index
check-attr = -az --all --cached
check-ref-format = --branch --normalize --allow-onelevel --refspec-pattern
branch = -avrliq --all --list --show-current --verbose --remotes --contains? --no-contains? --merged? --no-merged?
    --points-at: --sort: --format: --column? --color? --no-color --abbrev? --no-abbrev --ignore-case --omit-empty
tag = -li -n? --list --contains? --no-contains? --merged? --no-merged? --points-at: --sort: --format: --column?
    --color? --ignore-case
version = --build-options
show-branch = -ar --all --remotes --current --topo-order --date-order --list --merge-base --independent --no-name
    --sha1-name --topics --more:
stash-list = @log -n:
"""
_HARMFUL_TEXT = """
push = -f --force --force-with-lease --force-if-includes --mirror --delete -d --prune --receive-pack --exec
    --no-verify --all
fetch = --upload-pack
pull = --upload-pack --force
ls-remote = --upload-pack --exec
clone = -u --upload-pack -c --config --template
init = --template
reset = --hard --merge --keep
checkout = -f --force -B --ours --theirs
switch = -f --force -C --force-create --discard-changes
branch = -D -M -C -f --force
tag = -d --delete -f --force
gc = --prune --aggressive
rm = -f --force
commit = -n --no-verify
merge = --no-verify
rebase = -x --exec --no-verify
difftool = -x --extcmd
mergetool = --tool
apply = --unsafe-paths
archive = --exec --remote
maintenance = start register
worktree = --force -f
submodule = --force -f
am = --exec
stash = drop clear
reflog = expire delete drop write
lfs = migrate prune
read-tree = --reset -u
checkout-index = -f -a
bundle = unbundle
remote = set-url prune
svn = dcommit
update-index = --assume-unchanged --skip-worktree
notes = prune
config = -e --edit
log = --show-signature
show = --show-signature
"""

HARMLESS_KEYS = re.compile(
    r"(user|color|advice|branch|column|pull|init\.defaultbranch|log|status|core\.(quotepath|abbrev|autocrlf|filemode|ignorecase"
    r"|safecrlf|precomposeunicode|eol)|push\.(default|autosetupremote)|fetch\.prune|rerere|merge\.conflictstyle|diff\.(algorithm"
    r"|renames|context|mnemonicprefix|colormoved))(\..*)?",
    re.IGNORECASE,
)
SHOWING_KEYS = re.compile(
    r"color\..*|core\.(quotepath|abbrev)|column\.ui|advice\..*|log\.(date|decorate|abbrevcommit)"
    r"|diff\.(algorithm|renames|context|mnemonicprefix|noprefix|colormoved)",
    re.IGNORECASE,
)
"""Settings that change how something looks and nothing else, whatever they are set to."""


def _lines(text: str) -> dict[str, str]:
    lines = filter(None, text.replace("\n    ", " ").splitlines())
    return {name: options for name, _, options in (line.partition(" =") for line in lines)}


_READERS = _lines(_READERS_TEXT)
_HARMFUL = {name: tuple(options.split()) for name, options in _lines(_HARMFUL_TEXT).items()}

LISTING = {
    "branch": "-l --list -a -r --all --remotes --contains --no-contains --merged --no-merged --points-at",
    "tag": "-l --list -n --contains --no-contains --merged --no-merged --points-at",
}
"""Subcommands that create something when an operand comes without one of these options."""

READING_FORMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "remote": (("-v",), ("--verbose",), (), ("get-url", "--all"), ("get-url", "--push"), ("get-url",)),
    "stash": (("list",), ("show",)),
    "submodule": ((), ("status",)),
    "archive": (("--list",), ("-l",)),
    "worktree": (("list",),),
    "notes": (("list",), ("show",)),
    "reflog": (("show",), ("exists",)),
    "bisect": (("log",),),
    "bundle": (("list-heads",),),
    "sparse-checkout": (("list",),),
}
"""First words with which a subcommand that mostly changes something only shows something."""

STANDING_ALONE = ((), ("-v",), ("--verbose",), ("--list",), ("-l",))
"""Forms that read only when nothing follows."""

DANGEROUS = {
    name: why
    for why, names in {
        "rewrites history": "filter-branch filter-repo replace fast-import obliterate",
        "moves or deletes refs": "update-ref",
        "shows or changes stored credentials": "credential credential-store credential-cache credential-osxkeychain",
        "deletes objects": "prune",
        "serves the repository": "daemon instaweb http-backend upload-pack receive-pack",
        "sends data to the network": "send-email imap-send",
        "runs commands": "shell",
    }.items()
    for name in names.split()
}
"""Subcommands that are dangerous however they are used."""


@lru_cache(maxsize=64)
def reader_table(command: str) -> Table | None:
    """Give the options with which a subcommand only reads, or None when it is not known to."""
    if command not in _READERS:
        return None
    options = _READERS[command].replace("@log", f"@diff {_LOG}").replace("@diff", _DIFF)
    return read_table(f"{options} --help")


def harmful_options(command: str) -> tuple[str, ...]:
    """List the options and first words with which a subcommand destroys, leaks or runs something."""
    return _HARMFUL.get(command, ())
