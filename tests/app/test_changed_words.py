"""Which words of changed lines are marked."""

from treadle.present.changed_words import changed_words


def _marked(lines: list[str], found: dict[int, tuple[tuple[int, int], ...]]) -> dict[int, list[str]]:
    return {number: [lines[number][start:end] for start, end in spans] for number, spans in found.items()}


def _differing(old: list[str], new: list[str]) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    gone, come = changed_words(old, new)
    return _marked(old, gone), _marked(new, come)


def test_the_words_that_differ_are_marked_on_both_sides() -> None:
    old, new = ["def total(items, tax):", "    return 1"], ["def total(items, rate=0.2):", "    return 2"]
    assert _differing(old, new) == ({0: ["tax"], 1: ["1"]}, {0: ["rate=0.2"], 1: ["2"]})


def test_a_changed_line_is_compared_with_the_one_that_is_like_it() -> None:
    old, new = ["total = price * amount"], ["# what it costs", "", "total = price * count"]
    assert _differing(old, new) == ({0: ["amount"]}, {2: ["count"]})


def test_a_pair_of_lines_is_compared_alone() -> None:
    """The last parenthesis of the line may be like that of another line, too."""
    old = ["response = send(request, timeout=self.timeout)"]
    new = [
        "    response = send(request, timeout=self.timeout)",
        "    self._sleep(retry_after(response.headers, attempt))",
    ]
    for one, other in ((old, new), (new, old)):
        gone, come = _differing(one, other)
        assert (gone, come) == ({}, {})


def test_lines_that_have_little_in_common_are_not_marked_in_parts() -> None:
    assert _differing(["if ready(): start()"], ["for name in names: print(name)"]) == ({}, {})


def test_words_side_by_side_are_one_mark_and_what_a_line_is_indented_by_is_none() -> None:
    assert _differing(["a b c d e f g h"], ["a b X Y Z f g h"]) == ({0: ["c d e"]}, {0: ["X Y Z"]})
    assert _differing(["a = 1"], ["a  = 1"]) == ({0: [" "]}, {0: ["  "]})
    assert _differing(["value = 1"], ["\t    value = 2"]) == ({0: ["1"]}, {0: ["2"]})


def test_lines_that_changed_places_are_each_compared_with_the_one_that_is_most_like_it() -> None:
    old = ["return float(value)", "wait = 1.0 * attempt"]
    new = ["wait = 2.0 * attempt", "", "return min(float(value), MAX_WAIT)"]
    assert _differing(old, new) == ({1: ["1"]}, {0: ["2"], 2: ["min(", "), MAX_WAIT"]})


def test_nothing_is_marked_in_what_was_only_added_or_is_too_large() -> None:
    assert changed_words([], ["new"]) == ({}, {})
    assert changed_words(["a b " * 1_000], ["a c " * 1_000]) == ({}, {})
