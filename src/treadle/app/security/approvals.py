"""The user's answers as rules: written down with examples, found again, taken back."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from treadle.app.security.policy_files import RuleFilePlaces, rule_files, usual_places
from treadle.policy.allowances import rule_id, rule_of
from treadle.policy.rulefile import HEAD, RuleFile, RuleFileError, read_rules, render_rule, with_examples
from treadle.policy.rules import Rule, Scope
from treadle.protocol.errors import ConfigError, StoreError
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Allowance
from treadle.workspace.files.private_file import make_private_folder, write_private

_HEADER = regex(r"\s*\[\[\s*rule\s*\]\]")


def remember(allowances: Sequence[Allowance], workspace: str) -> None:
    """Write what the user allowed for every session into their rules; commands for this folder (resolved) only.

    Raises `StoreError`.
    """
    rules = bound_to([rule_of(allowance) for allowance in allowances], workspace)
    try:
        write_rules(rules, usual_places(None).approved, note="you chose always")
    except ConfigError as error:
        raise StoreError(error.code, error.what, why=error.why, fix=error.fix) from error


def write_rules(rules: Sequence[Rule], file: Path, *, note: str = "") -> tuple[str, ...]:
    """Append rules to a rule file with examples of their own; gives the ids of those that were not there yet.

    The whole file is tried first, and replaced in one step. Raises `ConfigError` when the file has a mistake already,
    `StoreError` when it cannot be written.
    """
    with _locked():
        text = _read(file)
        known = {rule.id for rule in _checked(file, text)}
        added = [shown for rule in rules if rule.id not in known and (shown := with_examples(rule)) is not None]
        if added:
            blocks = "".join(f"\n{render_rule(rule, note)}" for rule in added)
            _write(file, f"{_ended(text) or HEAD}{blocks}")
    return tuple(rule.id for rule in added)


def revoke_rule(rule_id: str, places: RuleFilePlaces | None = None) -> tuple[Path, ...]:
    """Take the user's rules with this id out of their files; gives the files. `ConfigError`: none has it."""
    with _locked():
        files = rule_files((places or usual_places(None)).user)
        found = [file for file in files if file.is_file() and _remove(file, rule_id)]
    if not found:
        raise ConfigError(
            "rule-unknown",
            f"None of your rules has the id {rule_id!r}.",
            why="You can remove only rules of your own files, not those of a project or an administrator.",
            fix="`treadle policy show` lists the rules with their ids and files.",
        )
    return tuple(found)


def _remove(file: Path, rule_id: str) -> bool:
    text = _read(file)
    rules = _checked(file, text)
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    going = [number for number, rule in enumerate(rules) if rule.id == rule_id]
    for number in reversed(going):
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        del lines[starts[number] : end]
    if going:
        _write(file, "".join(lines).rstrip("\n") + "\n")
    return bool(going)


def bound_to(rules: Sequence[Rule], workspace: str) -> tuple[Rule, ...]:
    """Let rules over commands count in one folder only: the same words run other code elsewhere."""
    bound = (replace(rule, workspace=workspace) if rule.argv else rule for rule in rules)
    return tuple(replace(rule, id=rule_id(rule)) for rule in bound)


def _checked(file: Path, text: str) -> list[Rule]:
    if not text.strip():
        return []
    try:
        return read_rules(RuleFile(name=str(file), text=text, scope=Scope.USER))
    except RuleFileError as error:
        raise ConfigError(
            "rules-broken",
            f"The rule file {file} has a mistake, so nothing was written to it.",
            why=str(error),
            fix="Fix that line. `treadle policy show` checks the file.",
        ) from error


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise _unwritable(file, error) from error


def _write(file: Path, text: str) -> None:
    _checked(file, text)
    try:
        write_private(file, text.encode())
    except OSError as error:
        raise _unwritable(file, error) from error


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


@contextmanager
def _locked() -> Iterator[None]:
    """Let one process at a time change rule files, so that none loses the other's rule."""
    folder = usual_places(None).kept
    try:
        make_private_folder(folder)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _unwritable(file: Path, error: Exception) -> StoreError:
    return StoreError(
        "rules-unwritable",
        f"Your rules cannot be written to {file}.",
        why=str(error),
        fix="Check the permissions and the free space. Until then your answer applies to this session only.",
    )
