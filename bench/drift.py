"""Edits with the drift that models show, made from pairs of texts."""

import html
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from treadle.editing import Edit

CONTEXT = 3


@dataclass(frozen=True, slots=True)
class DriftCase:
    """One edit of `pre`. Each of `posts` is right; with none, or `may_refuse`, a refusal is."""

    kind: str
    pre: str
    edits: tuple[Edit, ...]
    posts: tuple[str, ...]
    may_refuse: bool = False


@dataclass(frozen=True, slots=True)
class Spot:
    """One hunk of a change with its context, as lines; `shared` pairs the indexes of equal lines."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    start: int
    shared: tuple[tuple[int, int], ...]

    @property
    def edit(self) -> Edit:
        return Edit("\n".join(self.old), "\n".join(self.new))


@dataclass(frozen=True, slots=True)
class Commit:
    """A change of one file as spots in file order, each with a search text that is unique in `pre`."""

    pre: str
    post: str
    spots: tuple[Spot, ...]


def read_commit(pre: str, post: str, *, context: int = CONTEXT) -> Commit | None:
    """The change as spots; None when a spot would not be unique, or nothing changed."""
    if not pre.endswith("\n") or not post.endswith("\n"):
        return None
    old, new = pre.split("\n")[:-1], post.split("\n")[:-1]
    spots = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        low, high, new_low, new_high = group[0][1], group[-1][2], group[0][3], group[-1][4]
        shared = tuple(
            (i1 - low + k, j1 - new_low + k) for tag, i1, i2, j1, _ in group if tag == "equal" for k in range(i2 - i1)
        )
        spots.append(Spot(tuple(old[low:high]), tuple(new[new_low:new_high]), low, shared))
    if not spots or any(pre.count(spot.edit.old) != 1 or not spot.edit.old.strip() for spot in spots):
        return None
    return Commit(pre, post, tuple(spots))


def invented_commits(rng: random.Random, sources: Sequence[str], count: int) -> Iterator[Commit]:
    """Changes a programmer might make: names, numbers, inserted and removed runs of lines."""
    made = 0
    while made < count:
        lines = rng.choice(sources).split("\n")
        changed = list(lines)
        for _ in range(rng.choice((1, 1, 2, 3))):
            _change(rng, changed)
        commit = read_commit("\n".join(lines), "\n".join(changed), context=rng.choice((1, 2, 3, 3, 4)))
        if commit is not None:
            made += 1
            yield commit


def _change(rng: random.Random, lines: list[str]) -> None:
    at = rng.randrange(1, max(2, len(lines) - 8))
    size = rng.randint(1, 5)
    kind = rng.choice(("rename", "insert", "delete", "rewrite"))
    match kind:
        case "delete":
            del lines[at : at + size]
        case "insert":
            source = rng.randrange(0, max(1, len(lines) - size))
            lines[at:at] = [_renamed(rng, line) for line in lines[source : source + size]]
        case "rewrite":
            lines[at : at + size] = [_renamed(rng, line) for line in lines[at : at + size]] + [_renamed(rng, lines[at])]
        case _:
            lines[at] = _renamed(rng, lines[at])


def _renamed(rng: random.Random, line: str) -> str:
    words = list(re.finditer(r"[A-Za-z_]{3,}", line))
    if not words:
        return line
    word = rng.choice(words)
    return line[: word.start()] + rng.choice(("fresh_", "other_", "my")) + word[0] + line[word.end() :]


Mutation = Callable[[random.Random, Commit], DriftCase | None]


def _context(rng: random.Random, spot: Spot, wanted: Callable[[str], bool]) -> tuple[int, int] | None:
    inner = [pair for pair in spot.shared if 0 < pair[0] < len(spot.old) - 1 and 0 < pair[1] < len(spot.new) - 1]
    fitting = [pair for pair in inner if wanted(spot.old[pair[0]])]
    return rng.choice(fitting) if fitting else None


def _case(kind: str, commit: Commit, edits: Sequence[Edit], *posts: str, may_refuse: bool = True) -> DriftCase | None:
    plain = tuple(spot.edit for spot in commit.spots)
    if tuple(edits) == plain and kind not in ("exact", "out_of_order"):
        return None
    return DriftCase(kind, commit.pre, tuple(edits), posts or (commit.post,), may_refuse)


def _each(kind: str, commit: Commit, change: Callable[[str], str], *, new: bool, may_refuse: bool) -> DriftCase | None:
    edits = [Edit(change(spot.edit.old), change(spot.edit.new) if new else spot.edit.new) for spot in commit.spots]
    return _case(kind, commit, edits, may_refuse=may_refuse)


def _by_line(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(line) if line.strip() else line for line in text.split("\n"))


def _indentation(text: str) -> int:
    return min((len(line) - len(line.lstrip()) for line in text.split("\n") if line.strip()), default=0)


def _dedented(text: str, width: int) -> str:
    return "\n".join(line[width:] if line.strip() else line for line in text.split("\n"))


def _typo(rng: random.Random, line: str) -> str:
    words = list(re.finditer(r"[A-Za-z]{5,}", line))
    if not words:
        return line
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    return line[:at] + line[at] + line[at:] if rng.random() < 0.5 else line[:at] + line[at + 1 :]


def exact(_: random.Random, commit: Commit) -> DriftCase | None:
    return _case("exact", commit, [spot.edit for spot in commit.spots], may_refuse=False)


def out_of_order(_: random.Random, commit: Commit) -> DriftCase | None:
    if len(commit.spots) < 2:
        return None
    return _case("out_of_order", commit, [spot.edit for spot in reversed(commit.spots)], may_refuse=False)


def dedented_both(_: random.Random, commit: Commit) -> DriftCase | None:
    edits = []
    for spot in commit.spots:
        width = min(_indentation(spot.edit.old), _indentation(spot.edit.new))
        edits.append(Edit(_dedented(spot.edit.old, width), _dedented(spot.edit.new, width)))
    return _case("dedented_both", commit, edits, may_refuse=False)


def dedented_search(_: random.Random, commit: Commit) -> DriftCase | None:
    return _each(
        "dedented_search",
        commit,
        lambda text: _dedented(text, _indentation(text)),
        new=False,
        may_refuse=False,
    )


def indented_both(_: random.Random, commit: Commit) -> DriftCase | None:
    return _each("indented_both", commit, _by_line(lambda line: "    " + line), new=True, may_refuse=False)


def tabs_both(_: random.Random, commit: Commit) -> DriftCase | None:
    def tabbed(line: str) -> str:
        body = line.lstrip(" ")
        width = len(line) - len(body)
        return "\t" * (width // 4) + " " * (width % 4) + body

    return _each("tabs_both", commit, _by_line(tabbed), new=True, may_refuse=False)


def first_line_stripped(_: random.Random, commit: Commit) -> DriftCase | None:
    if any((0, 0) not in spot.shared or not spot.old[0].strip() for spot in commit.spots):
        return None
    return _each("first_line_stripped", commit, str.lstrip, new=True, may_refuse=False)


def trailing_search(_: random.Random, commit: Commit) -> DriftCase | None:
    return _each("trailing_search", commit, _by_line(lambda line: line + "  "), new=False, may_refuse=False)


def blank_edges(_: random.Random, commit: Commit) -> DriftCase | None:
    edits = [Edit(f"\n{spot.edit.old}\n", f"\n{spot.edit.new}\n") for spot in commit.spots]
    return _case("blank_edges", commit, edits, may_refuse=False)


def _one_context_line(
    kind: str,
    rng: random.Random,
    commit: Commit,
    wanted: Callable[[str], bool],
    written: tuple[str, ...] | None,
) -> DriftCase | None:
    """Replace one context line of one spot by `written` (None: a typo) in both texts."""
    number = rng.randrange(len(commit.spots))
    spot = commit.spots[number]
    pair = _context(rng, spot, wanted)
    if pair is None:
        return None
    line = spot.old[pair[0]]
    lines = (_typo(rng, line),) if written is None else tuple(line if each == "@" else each for each in written)
    old = (*spot.old[: pair[0]], *lines, *spot.old[pair[0] + 1 :])
    new = (*spot.new[: pair[1]], *lines, *spot.new[pair[1] + 1 :])
    edits = [each.edit for each in commit.spots]
    edits[number] = Edit("\n".join(old), "\n".join(new))
    literal = commit.post.replace(spot.edit.new, edits[number].new) if commit.post.count(spot.edit.new) == 1 else ""
    blank_only = kind.startswith("blank")
    return _case(kind, commit, edits, commit.post, *([literal] if blank_only else []), may_refuse=not blank_only)


def blank_extra(rng: random.Random, commit: Commit) -> DriftCase | None:
    return _one_context_line("blank_extra", rng, commit, lambda line: bool(line.strip()), ("@", ""))


def blank_missing(rng: random.Random, commit: Commit) -> DriftCase | None:
    return _one_context_line("blank_missing", rng, commit, lambda line: not line.strip(), ())


def context_missing(rng: random.Random, commit: Commit) -> DriftCase | None:
    return _one_context_line("context_missing", rng, commit, lambda line: bool(line.strip()), ())


def context_typo(rng: random.Random, commit: Commit) -> DriftCase | None:
    return _one_context_line("context_typo", rng, commit, lambda line: len(line.strip()) > 8, None)


def wrong_leading(rng: random.Random, commit: Commit) -> DriftCase | None:
    spots = commit.spots
    if any((0, 0) not in spot.shared for spot in spots):
        return None
    wrong = f"# {rng.choice(('Another thing', 'Core classes', 'See below'))} entirely"
    edits = [Edit("\n".join((wrong, *spot.old[1:])), "\n".join((wrong, *spot.new[1:]))) for spot in spots]
    return _case("wrong_leading", commit, edits)


def deleted_typo(rng: random.Random, commit: Commit) -> DriftCase | None:
    spot = commit.spots[0]
    kept = {old for old, _ in spot.shared}
    gone = [at for at in range(len(spot.old)) if at not in kept and len(spot.old[at].strip()) > 8]
    if not gone:
        return None
    at = rng.choice(gone)
    old = (*spot.old[:at], _typo(rng, spot.old[at]), *spot.old[at + 1 :])
    return _case("deleted_typo", commit, [Edit("\n".join(old), spot.edit.new), *(s.edit for s in commit.spots[1:])])


def line_numbers(rng: random.Random, commit: Commit) -> DriftCase | None:
    form = rng.choice(("{:>4} | {}", "{}: {}", "{:>6}\t{}", "{}|{}"))

    def numbered(lines: Sequence[str], start: int) -> str:
        return "\n".join(form.format(start + at + 1, line) for at, line in enumerate(lines))

    both = rng.random() < 0.7
    edits = [
        Edit(numbered(spot.old, spot.start), numbered(spot.new, spot.start) if both else spot.edit.new)
        for spot in commit.spots
    ]
    return _case("line_numbers", commit, edits)


def entities(_: random.Random, commit: Commit) -> DriftCase | None:
    return _each("entities", commit, html.escape, new=True, may_refuse=True)


def escaped_newlines(_: random.Random, commit: Commit) -> DriftCase | None:
    return _each("escaped_newlines", commit, lambda text: text.replace("\n", "\\n"), new=True, may_refuse=True)


def escaped_quotes(_: random.Random, commit: Commit) -> DriftCase | None:
    return _each("escaped_quotes", commit, lambda text: text.replace('"', '\\"'), new=True, may_refuse=True)


def smart_quotes(rng: random.Random, commit: Commit) -> DriftCase | None:
    def smart(text: str) -> str:
        return re.sub(r"'([^'\n]*)'", "‘\\1’", re.sub(r'"([^"\n]*)"', "“\\1”", text))

    return _each("smart_quotes", commit, smart, new=rng.random() < 0.6, may_refuse=True)


def elided(rng: random.Random, commit: Commit) -> DriftCase | None:
    wide = read_commit(commit.pre, commit.post, context=8)
    if wide is None:
        return None
    spot = wide.spots[0]
    lead = 0
    while (lead, lead) in spot.shared:
        lead += 1
    if lead < 6:
        return None
    mark = rng.choice(("    # ... existing code ...", "...", "# ... rest of the code ...", "// ..."))
    both = rng.random() < 0.6
    old = (*spot.old[:2], mark, *spot.old[5:]) if both else spot.old
    new = (*spot.new[:2], mark, *spot.new[5:])
    return _case("elided", wide, [Edit("\n".join(old), "\n".join(new)), *(s.edit for s in wide.spots[1:])])


def chained(_: random.Random, commit: Commit) -> DriftCase | None:
    spot = commit.spots[0]
    if commit.post.count(spot.edit.new) != 1 or not spot.new[0].strip():
        return None
    second = Edit(spot.edit.new, "\n".join((spot.new[0], "# second pass", *spot.new[1:])))
    edits = [spot.edit, second, *(each.edit for each in commit.spots[1:])]
    return _case("chained", commit, edits, commit.post.replace(second.old, second.new))


def refused_repeat(_: random.Random, commit: Commit) -> DriftCase | None:
    edits = [commit.spots[0].edit, *(spot.edit for spot in commit.spots)]
    return DriftCase("refused_repeat", commit.pre, tuple(edits), (commit.post,), may_refuse=True)


def refused_applied(_: random.Random, commit: Commit) -> DriftCase | None:
    spot = commit.spots[0]
    if commit.post.count(spot.edit.old) or not any(line.strip() for line in _added(spot)):
        return None
    return DriftCase("refused_applied", commit.post, (spot.edit,), (), may_refuse=True)


def _added(spot: Spot) -> list[str]:
    kept = {new for _, new in spot.shared}
    return [line for at, line in enumerate(spot.new) if at not in kept]


def refused_stale(rng: random.Random, commit: Commit) -> DriftCase | None:
    spot = commit.spots[0]
    kept = {old for old, _ in spot.shared}
    inside = [at for at in range(1, len(spot.old)) if at not in kept and at - 1 not in kept]
    if not inside:
        return None
    at = rng.choice(inside)
    theirs = "\n".join((*spot.old[:at], "    user_line = True  # theirs", *spot.old[at:]))
    return DriftCase("refused_stale", commit.pre.replace(spot.edit.old, theirs), (spot.edit,), (), may_refuse=True)


def refused_ambiguous(rng: random.Random, commit: Commit) -> DriftCase | None:
    spot = commit.spots[0]
    drift = rng.choice((str, _by_line(lambda line: "   " + line)))
    pre = commit.pre + spot.edit.old + "\n"
    return DriftCase("refused_ambiguous", pre, (Edit(drift(spot.edit.old), drift(spot.edit.new)),), (), may_refuse=True)


ALIKE: tuple[Mutation, ...] = (
    exact, out_of_order, dedented_both, dedented_search, indented_both, tabs_both, first_line_stripped,
    trailing_search, blank_edges, blank_extra, blank_missing, context_missing, context_typo, wrong_leading,
    deleted_typo, line_numbers, entities, escaped_newlines, escaped_quotes, smart_quotes, elided, chained,
    refused_repeat, refused_applied, refused_stale, refused_ambiguous,
)  # fmt: skip


def drift_cases(commits: Sequence[Commit], seed: int) -> Iterator[DriftCase]:
    """Every mutation of every commit that it fits, and each commit's edits on another commit's file."""
    rng = random.Random(seed)
    for at, commit in enumerate(commits):
        for mutation in ALIKE:
            case = mutation(rng, commit)
            if case is not None:
                yield case
        other = commits[at - 1]
        if other.pre != commit.pre and commit.spots[0].edit.old not in other.pre:
            edits = tuple(spot.edit for spot in commit.spots)
            yield DriftCase("refused_wrong_file", other.pre, edits, (), may_refuse=True)
        crlf = [replace(each, pre=each.pre.replace("\n", "\r\n")) for each in [commit] if "\r" not in each.pre]
        for each in crlf:
            edits = tuple(spot.edit for spot in commit.spots)
            yield DriftCase("crlf_file", each.pre, edits, (commit.post.replace("\n", "\r\n"),))


def library_sources(limit: int) -> list[str]:
    """Modules of the running Python's standard library, of a size that models edit whole."""
    folder = Path(random.__file__).parent
    paths = sorted(path for path in folder.glob("*.py") if 3_000 < path.stat().st_size < 40_000)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    return [text for text in texts if "\r" not in text][:limit]
