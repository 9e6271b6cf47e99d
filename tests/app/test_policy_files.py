"""Rule files: where they are looked for, what breaks them, and that a change counts at once."""

import os
import stat
from pathlib import Path

import pytest

from treadle.app.security.policy_files import (
    _IN_FORCE_STILL,
    FileState,
    FoundFile,
    PolicyFiles,
    RuleFilePlaces,
    why_not_admin,
)
from treadle.policy.rules import Scope

DENY = 'version = 1\n[[rule]]\nid = "{id}"\nverdict = "deny"\nargv = ["{id}"]\nmatch = ["{id} x"]\n'
ALLOW = DENY.replace("deny", "allow")


@pytest.fixture
def places(tmp_path: Path) -> RuleFilePlaces:
    for name in ("admin", "user/policy.d", "work/.treadle"):
        (tmp_path / name).mkdir(parents=True)
    return RuleFilePlaces(
        admin=tmp_path / "admin", user=tmp_path / "user", kept=tmp_path / "kept", workspace=tmp_path / "work"
    )


def _write(file: Path, text: str) -> Path:
    """Write a file so that it is another one, however fast this goes."""
    draft = file.with_name(f".{file.name}.new")
    draft.write_text(text)
    draft.replace(file)
    return file


def _files(places: RuleFilePlaces, admin: str = "") -> PolicyFiles:
    return PolicyFiles(places, admin_problem=lambda path: admin)


def _project(places: RuleFilePlaces) -> Path:
    assert places.workspace is not None
    return places.workspace / ".treadle" / "policy.toml"


def test_the_rules_of_every_scope_are_in_force_with_file_and_line(places: RuleFilePlaces) -> None:
    written = [
        (Scope.ADMIN, _write(places.admin / "policy.toml", DENY.format(id="a"))),
        (Scope.USER, _write(places.user / "policy.toml", DENY.format(id="b"))),
        (Scope.USER, _write(places.user / "policy.d" / "more.toml", DENY.format(id="c"))),
        (Scope.PROJECT, _write(_project(places), DENY.format(id="d"))),
    ]
    found = _files(places).in_force()
    assert [(rule.id, rule.scope, rule.source) for rule in found.ruleset.rules] == [
        (name, scope, f"{file}:2") for name, (scope, file) in zip("abcd", written, strict=True)
    ]
    assert [(one.path, one.scope, one.state, one.rules) for one in found.files] == [
        (str(file), scope.value, FileState.IN_FORCE, 1) for scope, file in written
    ]
    assert found.ruleset.problems == ()


def test_without_files_there_is_nothing_to_tell(places: RuleFilePlaces) -> None:
    files = _files(places)
    assert (files.in_force().ruleset.rules, files.in_force().files, files.notices()) == ((), (), ())


def test_a_file_that_changes_counts_with_the_next_call(places: RuleFilePlaces) -> None:
    files = _files(places)
    file = places.user / "policy.toml"
    versions, ids = set(), []
    for text in ("version = 1", DENY.format(id="a"), DENY.format(id="b")):
        _write(file, text)
        versions.add(files.ruleset().version)
        ids.append([rule.id for rule in files.ruleset().rules])
    file.unlink()
    ids.append([rule.id for rule in files.ruleset().rules])
    assert (ids, len(versions)) == ([[], ["a"], ["b"], []], 3)


def test_files_that_did_not_change_are_not_read_again(places: RuleFilePlaces) -> None:
    _write(places.user / "policy.toml", DENY.format(id="a"))
    files = _files(places)
    assert files.ruleset() is files.ruleset()


def test_the_last_good_text_of_a_broken_file_stays_in_force_and_is_told(places: RuleFilePlaces) -> None:
    file = _write(places.user / "policy.toml", DENY.format(id="a"))
    _files(places).ruleset()
    _write(file, "version = 1\n[[rule]]\nid = 'b'")
    files = _files(places)
    assert [rule.id for rule in files.ruleset().rules] == ["a"]
    problem = f"{file}:2: Object missing required field `verdict`; a rule has an id and a verdict: allow, ask or deny"
    assert files.ruleset().problems == (problem,)
    assert files.notices() == (f"{problem}. {_IN_FORCE_STILL}",)
    assert [stat.S_IMODE(kept.stat().st_mode) for kept in places.kept.iterdir()] == [0o600]


def test_a_file_that_was_never_good_leaves_nothing_in_force(places: RuleFilePlaces) -> None:
    file = _write(places.user / "policy.toml", "[[rule")
    (notice,) = _files(places).notices()
    assert notice.startswith(f"{file}: ")
    assert "None of its rules is in force" in notice


def test_a_look_that_keeps_nothing_leaves_no_trace(places: RuleFilePlaces) -> None:
    _write(places.user / "policy.toml", DENY.format(id="a"))
    assert PolicyFiles(places, keep=False).ruleset().rules[0].id == "a"
    assert not places.kept.exists()


def test_an_administrators_file_that_others_can_change_does_not_count_and_is_told(places: RuleFilePlaces) -> None:
    file = _write(places.admin / "policy.toml", DENY.format(id="a"))
    found = _files(places, admin="x does not belong to root").in_force()
    why = f"{file} is not used: x does not belong to root"
    assert (found.ruleset.rules, found.ruleset.problems) == ((), (why,))
    assert found.files == (FoundFile(path=str(file), scope="admin", state=FileState.BROKEN, why=why),)


def test_only_files_of_root_that_nobody_else_can_change_are_the_administrators(tmp_path: Path) -> None:
    assert why_not_admin(Path("/etc/passwd")) == ""
    own = tmp_path / "policy.toml"
    own.write_text("version = 1")
    own.chmod(0o666)
    (tmp_path / "link").symlink_to(own)
    for path in (own, tmp_path / "link"):
        assert "root" in why_not_admin(path)


def test_what_a_project_allows_counts_as_it_was_at_the_start_of_the_session(places: RuleFilePlaces) -> None:
    file = _write(_project(places), ALLOW.format(id="a"))
    files = _files(places)
    assert [rule.id for rule in files.ruleset().rules] == ["a"]
    _write(file, ALLOW.format(id="b") + DENY.format(id="c").replace("version = 1\n", ""))
    assert [rule.id for rule in files.ruleset().rules] == ["c"]
    assert [rule.id for rule in files.in_force().ignored] == ["b"]
    assert [rule.id for rule in _files(places).ruleset().rules] == ["b", "c"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "large", "latin", "everybody"])
def test_what_is_no_readable_file_is_told_without_waiting(places: RuleFilePlaces, kind: str) -> None:
    file = places.user / "policy.toml"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "large":
            file.write_text("#" * 300_000)
        case "latin":
            file.write_bytes(b"# \xe9")
        case _:
            _write(file, "version = 1").chmod(0o606)
    (problem,) = _files(places).ruleset().problems
    assert problem.startswith(f"{file} ")


def test_a_remembered_answer_is_no_other_policy(places: RuleFilePlaces) -> None:
    files = _files(places)
    before = files.ruleset().version
    _write(places.approved, ALLOW.format(id="a"))
    assert (files.ruleset().version, [rule.id for rule in files.ruleset().rules]) == (before, ["a"])
