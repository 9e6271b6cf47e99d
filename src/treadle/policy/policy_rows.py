"""Answers rows of plain data: which class has this shell line, where does this path lead."""

import posixpath
from collections.abc import Mapping
from typing import Any

from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.decision_context import PolicyContext
from treadle.policy.findings import PathOp
from treadle.policy.path_check import check_path, refusal
from treadle.protocol.permissions import Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import ReadPath, Risk, RunCommand, ToolSpec, ToolTraits, WritePath

_STARTS = ("/", "~", "file:", "FILE:")
"""Beginnings of paths that do not start from a directory."""


def answer_row(row: object, context: PolicyContext) -> dict[str, Any]:
    """Answer one row, which is decoded JSON; nothing is run.

    `{"id", "command"}` gives `{"id", "class", "verdict", "confinement", "why", "asks_when_used", "reasons",
    "rules"}`, where the confinement is null for what is not allowed, and `asks_when_used` lists rights that are
    asked for in the middle, such as `network:pypi.org`; `{"id", "path", "op", "cwd"}` gives `{"id", "where", "verdict",
    "why", "resolved", "reasons"}`. `cwd` may be left out or relative: it starts at the first root.
    Raises `ValueError` for a row that is neither, or an unknown `op`.
    """
    if not isinstance(row, Mapping):
        raise ValueError("a row is a JSON object")  # noqa: TRY004 - what is wrong is the value that was given
    given = row.get("cwd") or ""
    if not isinstance(given, str):
        raise ValueError("cwd must be a string")  # noqa: TRY004
    if given.startswith("~"):
        given = posixpath.join(context.home or "/", given[2:]) if given[1:2] in ("", "/") else f"/home/{given[1:]}"
    cwd = posixpath.join(context.roots[0] if context.roots else "/", given).rstrip("/") or "/"
    if isinstance(row.get("command"), str):
        return _answer_command(row, cwd, context)
    if isinstance(row.get("path"), str):
        return _answer_path(row, cwd, context)
    raise ValueError("a row needs a command or a path")


def _answer_command(row: Mapping[str, Any], cwd: str, context: PolicyContext) -> dict[str, Any]:
    command = row["command"]
    judgement = classify_command(command, cwd, context)
    decision = decide(_spec("execute_command", Risk.EXECUTE), {}, (RunCommand(command=command, cwd=cwd),), context)
    return {
        "id": row.get("id", ""),
        "class": judgement.command_class.value,
        "verdict": decision.verdict.value,
        "confinement": decision.confinement if decision.verdict is Verdict.ALLOW else None,
        "why": words_of_decision(decision).headline,
        "asks_when_used": [
            f"{right.right}:{target}" if target else str(right.right)
            for right in decision.asks_when_used
            for target in right.target.split(", ")
        ],
        "reasons": list(dict.fromkeys(reason.text for reason in decision.reasons)),
        "rules": list(dict.fromkeys(reason.rule for reason in decision.reasons)),
    }


def _answer_path(row: Mapping[str, Any], cwd: str, context: PolicyContext) -> dict[str, Any]:
    name = row.get("op", PathOp.READ.value)
    if not isinstance(name, str) or name not in tuple(PathOp):
        raise ValueError(f"op must be one of {', '.join(PathOp)}, not {name!r}")
    op = PathOp(name)
    check = refusal(cwd) or check_path(row["path"], op, cwd, context)
    stays = row["path"].startswith(_STARTS) or refusal(row["path"]) is not None
    asked = row["path"] if stays else posixpath.join(cwd, row["path"])
    accesses = tuple(
        WritePath(path=path) if op is PathOp.WRITE else ReadPath(path=path, listing=op is PathOp.LIST)
        for path in dict.fromkeys((asked, check.resolved or asked))
    )
    decision = decide(_spec("file", Risk.WRITE if op is PathOp.WRITE else Risk.READ), {}, accesses, context)
    return {
        "id": row.get("id", ""),
        "where": check.where.value,
        "verdict": decision.verdict.value,
        "why": words_of_decision(decision).headline,
        "resolved": check.resolved,
        "reasons": [reason.text for reason in check.reasons],
    }


def _spec(name: str, risk: Risk) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters={}, traits=ToolTraits(), risk=risk)
