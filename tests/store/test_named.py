"""A session is meant by its id or its title, or by the beginning of either; what may mean several means none."""

from collections.abc import Sequence

import pytest

from treadle.protocol.errors import SessionError
from treadle.store.sqlite import SessionRow
from treadle.store.titles import session_named


def rows(*named: str) -> Sequence[SessionRow]:
    """Sessions, each as `id title`."""
    return [
        SessionRow(id=id_, workspace="/w", model="m", title=title, created_at=0, updated_at=0, events=0)
        for id_, _, title in (one.partition(" ") for one in named)
    ]


SESSIONS = rows(
    "20261127-1-aa Fix the cart", "20261127-2-bb Fix the cart total", "20261126-1-cc Write docs", "2026 2026x"
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("20261127-1", "20261127-1-aa"),
        ("20261127-1-aa", "20261127-1-aa"),
        ("2026", "2026"),  # a whole id before the beginnings of others
        ("fix the cart", "20261127-1-aa"),  # a whole title before the beginning of another
        ("Fix the cart t", "20261127-2-bb"),
        ("WRITE", "20261126-1-cc"),
    ],
)
def test_a_session_is_found_by_what_is_its_own(name: str, found: str) -> None:
    assert session_named(name, SESSIONS).id == found


@pytest.mark.parametrize(("name", "why"), [("20261127", "20261127-1-aa (Fix the cart)"), ("fix", "20261127-2-bb")])
def test_what_may_mean_several_sessions_names_them(name: str, why: str) -> None:
    with pytest.raises(SessionError, match="may mean any of 2 sessions") as refused:
        session_named(name, SESSIONS)
    assert why in refused.value.why


def test_no_name_is_no_session_s_also_where_there_is_one_alone() -> None:
    with pytest.raises(SessionError, match="There is no session ''"):
        session_named("", SESSIONS[:1])


def test_what_no_session_has_is_refused() -> None:
    with pytest.raises(SessionError, match="There is no session 'cart'"):
        session_named("cart", SESSIONS)
    many = rows(*(f"a{number} Same" for number in range(9)))
    with pytest.raises(SessionError) as refused:
        session_named("a", many)
    assert refused.value.why.endswith("a4 (Same) and 4 more.")
