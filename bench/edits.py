"""Quality and speed of the edit engine: `python -m bench.edits`."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.drift import drift_cases, invented_commits, library_sources
from treadle.editing import Edit, EditError, EditFormat, EditResult, EditStream, apply_edit

RIGHT, REFUSED, MISSED, WRONG, APPLIED = "right", "refused", "missed", "wrong", "applied where it must refuse"
TEXT_FORMATS = (EditFormat.SEARCH_REPLACE, EditFormat.APPLY_PATCH, EditFormat.UNIFIED)


@dataclass(frozen=True, slots=True)
class Trial:
    """One edit in one format with what may come out: one of `posts`, or a refusal when `may_refuse`."""

    group: str
    kind: str
    form: EditFormat
    pre: str
    edit: str | tuple[Edit, ...]
    posts: tuple[str, ...]
    may_refuse: bool
    file_name: str | None = None


def cases_folder() -> Path | None:
    """The folder of the labelled cases, or None where there is none."""
    named = os.environ.get("TREADLE_CASES")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "cases"
    return folder if (folder / "edits.jsonl").is_file() else None


def labelled_trials(folder: Path) -> Iterator[Trial]:
    """Every labelled case in every format it is given in."""
    with (folder / "edits.jsonl").open(encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            for form, edit in _forms(row):
                yield Trial(
                    row["group"], row["cls"], form, row["pre"], edit, tuple(row["post"]),
                    "refuse" in row["allow"], row["file"],
                )  # fmt: skip


def _forms(row: dict[str, Any]) -> Iterator[tuple[EditFormat, str | tuple[Edit, ...]]]:
    if "text" in row:
        texts = row["text"].values() if isinstance(row["text"], dict) else [row["text"]]
        yield from ((EditFormat.SEARCH_REPLACE, text) for text in texts)
        return
    yield EditFormat.OLD_NEW, tuple(Edit(each["old"], each["new"]) for each in row["edits"])
    yield from ((form, row[form.value]) for form in TEXT_FORMATS if form.value in row)


def invented_trials(seed: int, count: int) -> Iterator[Trial]:
    """Drift of changes invented in the standard library's modules."""
    commits = list(invented_commits(random.Random(seed), library_sources(120), count))
    for case in drift_cases(commits, seed):
        yield Trial("invented", case.kind, EditFormat.OLD_NEW, case.pre, case.edits, case.posts, case.may_refuse)


def outcome(trial: Trial) -> str:
    """What came of a trial."""
    result = apply_edit(trial.form, trial.pre, trial.edit, file_name=trial.file_name)
    if isinstance(result, EditError):
        return REFUSED if trial.may_refuse or not trial.posts else MISSED
    if not trial.posts:
        return APPLIED
    return RIGHT if result.text in trial.posts else WRONG


def tally(trials: Iterator[Trial]) -> dict[tuple[str, str], Counter[str]]:
    """Outcomes by group and kind."""
    table: dict[tuple[str, str], Counter[str]] = {}
    for trial in trials:
        table.setdefault((trial.group, trial.kind), Counter())[outcome(trial)] += 1
    return table


def print_table(title: str, table: dict[tuple[str, str], Counter[str]]) -> None:
    """One line per kind, then the macro averages."""
    print(f"\n{title}")
    for (group, kind), counts in sorted(table.items()):
        print(f"  {group:10}{kind:34}" + "  ".join(f"{name} {count}" for name, count in counts.items()))
    recoverable = {key: counts for key, counts in table.items() if counts[RIGHT] or counts[MISSED] or counts[WRONG]}
    print(f"  right, macro average     {_macro(recoverable, RIGHT):6.1%} of {len(recoverable)} kinds")
    print(f"  wrong, macro average     {_macro(table, WRONG):6.2%} of {len(table)} kinds")
    print(f"  applied, must refuse     {_macro(table, APPLIED):6.2%}")


def _macro(table: dict[tuple[str, str], Counter[str]], name: str) -> float:
    return sum(counts[name] / counts.total() for counts in table.values()) / max(1, len(table))


def long_file(lines: int = 10_000) -> list[str]:
    """Plain code of many lines, no two functions alike."""
    body = []
    for number in range(lines // 5):
        body += [
            f"def step_{number}(value: int, other: str) -> int:",
            f"    total = value * {number} + len(other)",
            f"    if total > {number * 7}:",
            f"        return total - offset_{number}(other)",
            "    return total",
        ]
    return body


def _drifted(lines: Sequence[str], change: Callable[[list[str]], list[str]]) -> Edit:
    new = [*lines[:2], lines[1].replace("total =", "log ="), *lines[2:]]
    return Edit("\n".join(change(list(lines))), "\n".join(change(new)))


DRIFTS: dict[str, Callable[[list[str]], list[str]]] = {
    "exact": lambda lines: lines,
    "trailing": lambda lines: [line + "  " for line in lines],
    "indentation": lambda lines: ["  " + line for line in lines],
    "blank_lines": lambda lines: ["", *lines[:-1], "", lines[-1]],
    "line_numbers": lambda lines: [f"{number:>5} | {line}" for number, line in enumerate(lines, 1)],
    "entities": lambda lines: [line.replace(">", "&gt;") for line in lines],
    "similar": lambda lines: [line.replace("offset", "ofset") for line in lines],
    "not found": lambda lines: [line.replace("total", "wholly").replace("step", "stage") for line in lines],
}


def best_ms(run: Callable[[], object], times: int = 7) -> float:
    """The shortest of several runs in milliseconds of processor time, which other work disturbs least."""
    spans = []
    for _ in range(times):
        start = time.process_time()
        run()
        spans.append(time.process_time() - start)
    return min(spans) * 1000


def print_speed() -> None:
    """One edit per tier, and 100 streamed blocks per tier, on a file of 10,000 lines."""
    lines = long_file()
    pre = "\n".join(lines) + "\n"
    print("\nSpeed on 10,000 lines (ms)         one edit   100 blocks streamed in 4-character chunks")
    for name, change in DRIFTS.items():
        edit = _drifted(lines[5_000:5_005], change)
        single = best_ms(lambda edit=edit: apply_edit(EditFormat.OLD_NEW, pre, [edit]))  # type: ignore[misc]
        edits = [_drifted(lines[at : at + 5], change) for at in range(0, 10_000, 100)]
        text = "\n".join(f"------- SEARCH\n{each.old}\n=======\n{each.new}\n+++++++ REPLACE" for each in edits) + "\n"
        streamed = best_ms(lambda text=text: stream_all(pre, text), times=1)  # type: ignore[misc]
        print(f"  {name:32}{single:9.2f}{streamed:12.0f}")


def stream_all(pre: str, text: str, size: int = 4) -> EditResult | EditError:
    """Feed a text in small chunks and finish."""
    stream = EditStream(EditFormat.SEARCH_REPLACE, pre)
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
    return stream.finish()


def main() -> None:
    """Print everything."""
    folder = cases_folder()
    if folder is not None:
        trials = list(labelled_trials(folder))
        for form in (
            EditFormat.SEARCH_REPLACE,
            EditFormat.OLD_NEW,
            EditFormat.APPLY_PATCH,
            EditFormat.UNIFIED,
        ):
            print_table(f"Labelled cases, {form}", tally(trial for trial in trials if trial.form is form))
    print_table("Invented changes", tally(invented_trials(seed=1, count=150)))
    print_speed()


if __name__ == "__main__":
    main()
