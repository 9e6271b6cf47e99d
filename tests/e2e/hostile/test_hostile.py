"""Hostile lines, run for real: whatever stops each of them, nothing outside of what the mode allows happens."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.hostile.driving import SESSIONS, Family, Session, before_landlock, culprits, families, run
from tests.needed import needs

FAMILIES = families()
_MOST_ROWS = 60

pytestmark = [
    needs("sandbox"),
    pytest.mark.timeout(900),
]


def _quick() -> list[Family]:
    """Put the rows that are always run together by what they need, so that few sessions do."""
    found: dict[tuple[tuple[str, ...], bool], Family] = {}
    for family in FAMILIES:
        rows = tuple(row for row in family.rows if not row.soak)
        if rows:
            key = (family.prepare, family.path)
            before = found[key].rows if key in found else ()
            found[key] = Family(
                name="-".join((*family.prepare, *(["path"] if family.path else []))) or "plain",
                rows=(*before, *rows),
                prepare=family.prepare,
                path=family.path,
            )
    return list(found.values())


async def _check(tmp_path: Path, family: Family, session: Session, before: Sequence[str] = ()) -> None:
    for at in range(0, len(family.rows), _MOST_ROWS):
        rows = family.rows[at : at + _MOST_ROWS]
        result = await run(tmp_path / str(at), family, rows, session, before=before)
        if result.harm:
            alone = await culprits(tmp_path / f"{at}-alone", family, rows, session, before=before)
            pytest.fail("\n".join((f"{family.name} in {session}:", *result.harm, "by these alone:", *alone)))


_RUN = ("ask-untrusted", "edits-trusted")
QUICK_RUNS = [
    pytest.param(family, session, id=f"{family.name}-{session}")
    for number, family in enumerate(_quick())
    for session in SESSIONS
    if str(session) in (_RUN if family.name == "plain" else _RUN[number % 2 :][:1])
]


@pytest.mark.parametrize(("family", "session"), QUICK_RUNS)
async def test_hostile_lines_do_no_harm(tmp_path: Path, family: Family, session: Session) -> None:
    await _check(tmp_path, family, session)


@pytest.mark.soak
@pytest.mark.parametrize("session", SESSIONS, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
async def test_all_hostile_lines_do_no_harm(tmp_path: Path, family: Family, session: Session) -> None:
    await _check(tmp_path, family, session)


@needs("landlock", "root")
@pytest.mark.soak
@pytest.mark.parametrize("session", SESSIONS, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
async def test_all_hostile_lines_do_no_harm_under_landlock(tmp_path: Path, family: Family, session: Session) -> None:
    await _check(tmp_path, family, session, before_landlock())


def test_there_are_enough_of_them() -> None:
    assert len({row.line or str(row.arguments) for family in FAMILIES for row in family.rows}) >= 300
