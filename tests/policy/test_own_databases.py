"""A database that a command of the session serves is reached as a server of it is: nothing is asked for that."""

import pytest

from tests.policy.views import context
from treadle.policy.classify import classify_command
from treadle.policy.findings import worst
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk

OWN = [
    "psql -h localhost -U postgres -c 'select 1'",
    "psql --host=127.0.0.1 -p 5433 -c 'select 1'",
    "psql postgres://me@localhost:5433/shop -c 'select 1'",
    "mysql -h 127.0.0.1 -P 3307 -e 'select 1'",
    "redis-cli -h localhost get x",
    "redis-cli -p 6399 set x y",
    "redis-cli get x",
]
OTHERS = [
    "psql -c 'select 1'",
    "psql -h db.example.com -c 'select 1'",
    "psql -h localhost -h db.example.com -c 'select 1'",
    "psql postgres://me@db.example.com/localhost",
    'psql -h "$DB" -c "select 1"',
    "mysql -h localhost -e 'select 1'",
    "mysql -hlocalhost -e 'select 1'",
    "mysql --host=localhost -e 'select 1'",
    "redis-cli -h db.example.com get x",
    "redis-cli -u redis://db.example.com get x",
    "redis-cli -s /run/redis.sock get x",
    "mongosh db.example.com/shop",
    "snowsql -h localhost",
]


def risk_of(line: str, *, confines: bool = True, served: int = 0) -> Risk:
    found = context(Mode.AUTO, confines=confines, machine_serves=lambda port: port == served)
    (part,) = classify_command(line, found.roots[0], found).parts
    return worst(part.own)


@pytest.mark.parametrize("line", OWN)
def test_a_database_on_this_machine_is_the_sessions_own_where_commands_are_confined(line: str) -> None:
    assert risk_of(line) is Risk.EXECUTE
    assert risk_of(line, confines=False) is Risk.REMOTE


@pytest.mark.parametrize("line", OTHERS)
def test_any_other_database_is_another_machine(line: str) -> None:
    assert risk_of(line) is Risk.REMOTE


@pytest.mark.parametrize(("line", "port"), [*zip(OWN, [5432, 5433, 5433, 3307, 6379, 6399, 6379], strict=True)])
def test_one_that_the_machine_serves_is_not_the_sessions(line: str, port: int) -> None:
    assert risk_of(line, served=port) is Risk.REMOTE


def test_a_statement_that_destroys_is_dangerous_in_any_database() -> None:
    assert risk_of("psql -h localhost -c 'DROP TABLE users'") is Risk.CRITICAL
