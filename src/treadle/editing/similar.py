"""Find a SEARCH of which most lines are in the file and a few are misspelt, missing or invented."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct
from rapidfuzz import fuzz, process

from treadle.editing.edit_results import EditBlock, Tier
from treadle.editing.line_keys import MAX_PLACES, TextViews, likeness
from treadle.editing.locate import complete_blanks
from treadle.editing.regions import Alignment

# Bounds on the work: a line seen more often tells nothing, and only the best windows are aligned.
_MOST_WINDOWS = 4
_FEW_KEYS = 30
_MOST_SEARCH_LINES = 400
_MOST_GAP_CELLS = 400
_SLACK = 6
_LONGEST_GUESSED = 120

_LINE_ALIKE = 75.0
_BLOCK_ALIKE = 0.78
_LEAD = 0.15
_NEAR = 0.4


def find_similar(block: EditBlock, views: TextViews) -> list[Alignment]:
    """The places that resemble SEARCH enough; more than one when no single one stands out."""
    keys = [line.strip() for line in block.search]
    if len(keys) > _MOST_SEARCH_LINES:
        return []
    total = sum(map(_weight, keys))
    scored = []
    for low, high in _windows(keys, views):
        pairs, scores = _align(keys, views.stripped.keys, low, high)
        score = sum(_weight(key) * each for key, each in zip(keys, scores, strict=True)) / max(1, total)
        if _anchored(keys, pairs, scores):
            scored.append((score, pairs))
    scored.sort(key=lambda each: -each[0])
    if not scored or scored[0][0] < _BLOCK_ALIKE:
        return []
    rivals = [pairs for score, pairs in scored if score > scored[0][0] - _LEAD and score > _BLOCK_ALIKE - _LEAD]
    found = [Alignment(Tier.SIMILAR, complete_blanks(keys, pairs, views.lines)) for pairs in rivals]
    return list({each.first: each for each in found}.values())


class NearText(Struct, frozen=True):
    """Lines `start` to `end` (from 0, excluded) that resemble a text, and where they first differ from it.

    `difference` says so in words, with a colon before; `first_difference` is the line of the file.
    """

    start: int
    end: int
    difference: str
    first_difference: int


def nearest_window(search: Sequence[str], views: TextViews) -> NearText | None:
    """The lines that resemble `search` most; None when too little of it is there to be of help."""
    keys = [line.strip() for line in search[:_MOST_SEARCH_LINES]]
    windows = _windows(keys, views)
    if not windows:
        return None
    pairs, scores = _align(keys, views.stripped.keys, *windows[0])
    held = [pair for pair in pairs if pair is not None]
    common = sum(_weight(key) * score for key, score in zip(keys, scores, strict=True))
    if not held or common < _NEAR * sum(map(_weight, keys)):
        return None
    return NearText(min(held), max(held) + 1, *_first_difference(keys, pairs, scores, min(held)))


def _first_difference(
    keys: Sequence[str], pairs: Sequence[int | None], scores: Sequence[float], before: int
) -> tuple[str, int]:
    for at, (key, pair, score) in enumerate(zip(keys, pairs, scores, strict=True)):
        if key and pair is None:
            return f": its line {at + 1} is missing", before
        if key and pair is not None and score < 1:
            return f": its line {at + 1} differs from line {pair + 1} of the file", pair
        before = before if pair is None else pair
    return " in this form", before


def _weight(key: str) -> int:
    """How much a line tells: its letters and digits, up to a bound; a lone bracket tells next to nothing."""
    letters = sum(map(str.isalnum, key))
    return min(40, letters) if letters > 2 else min(1, len(key))


def _windows(keys: Sequence[str], views: TextViews) -> list[tuple[int, int]]:
    """Ranges of lines where most of `keys` stand, by the weight of the lines found there, best first."""
    votes = _votes(keys, views)
    clusters: list[list[int]] = []
    for shift in sorted(votes):
        if clusters and shift - clusters[-1][-1] <= _SLACK:
            clusters[-1].append(shift)
        else:
            clusters.append([shift])
    clusters.sort(key=lambda cluster: -sum(votes[shift] for shift in cluster))
    count = len(views.lines)
    return [
        (max(0, cluster[0] - _SLACK), min(count, cluster[-1] + len(keys) + _SLACK))
        for cluster in clusters[:_MOST_WINDOWS]
    ]


def _votes(keys: Sequence[str], views: TextViews) -> Counter[int]:
    """For each shift (file line minus SEARCH line) the weight of the lines that agree with it."""
    wanted = {key for key in keys if _weight(key) > 2}
    places = _places(wanted, views)
    if not any(places.values()):
        _place_resembling(wanted, places, views)
    votes: Counter[int] = Counter()
    for at, key in enumerate(keys):
        known = places.get(key, ())
        if len(known) < MAX_PLACES:
            for place in known:
                votes[place - at] += _weight(key)
    return votes


def _places(wanted: set[str], views: TextViews) -> dict[str, list[int]]:
    if len(wanted) <= _FEW_KEYS:
        return {key: views.stripped.places([key]) for key in wanted}
    places: dict[str, list[int]] = {key: [] for key in wanted}
    for at, key in enumerate(views.stripped.keys):
        if key in wanted:
            places[key].append(at)
    return places


def _place_resembling(wanted: set[str], places: dict[str, list[int]], views: TextViews) -> None:
    """Where no line of SEARCH is in the file: the places of the lines most like its two most telling ones."""
    starts = [key[:_LONGEST_GUESSED] for key in views.stripped.keys]
    for key in sorted(wanted, key=_weight, reverse=True)[:2]:
        best = process.extract(key[:_LONGEST_GUESSED], starts, scorer=fuzz.ratio, score_cutoff=60, limit=3)
        places[key].extend(at for _, _, at in best)


def _align(keys: Sequence[str], lines: Sequence[str], low: int, high: int) -> tuple[list[int | None], list[float]]:
    """Pair `keys` with lines `low` to `high` in order: equal ones, then resembling ones between them."""
    pairs: list[int | None] = [None] * len(keys)
    scores = [0.0] * len(keys)
    matcher = SequenceMatcher(None, keys, lines[low:high], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for offset in range(i2 - i1):
                if keys[i1 + offset]:
                    pairs[i1 + offset] = low + j1 + offset
                    scores[i1 + offset] = 1.0
        elif tag == "replace" and (i2 - i1) * (j2 - j1) <= _MOST_GAP_CELLS:
            for at, place, score in _resembling(keys[i1:i2], lines[low + j1 : low + j2]):
                pairs[i1 + at] = low + j1 + place
                scores[i1 + at] = score
    return pairs, scores


def _resembling(keys: Sequence[str], lines: Sequence[str]) -> list[tuple[int, int, float]]:
    """The monotone pairing of the greatest likeness: (index in keys, index in lines, likeness 0 to 1)."""
    width = len(lines) + 1
    best = [0.0] * width
    chosen: list[list[tuple[int, int, float]]] = [[] for _ in range(width)]
    for at, key in enumerate(keys):
        row, row_chosen = [0.0] * width, [chosen[0]] * width
        for place, line in enumerate(lines):
            options = [(best[place + 1], chosen[place + 1]), (row[place], row_chosen[place])]
            like = likeness(key, line) if key and line else 0.0
            if like >= _LINE_ALIKE:
                options.append((best[place] + like, [*chosen[place], (at, place, like / 100)]))
            row[place + 1], row_chosen[place + 1] = max(options, key=lambda option: option[0])
        best, chosen = row, row_chosen
    return chosen[-1]


def _anchored(keys: Sequence[str], pairs: Sequence[int | None], scores: Sequence[float]) -> bool:
    """Whether the match is held at both ends, or at one end by plenty of lines."""
    visible = [at for at, key in enumerate(keys) if key]
    if not visible:
        return False
    telling = sum(score == 1.0 and _weight(keys[at]) > 5 for at, score in enumerate(scores))
    ends = (pairs[visible[0]] is not None) + (pairs[visible[-1]] is not None)
    return telling >= 1 if ends == 2 else ends == 1 and telling >= 3
