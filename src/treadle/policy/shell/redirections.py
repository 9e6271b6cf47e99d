"""Judges redirections: the files they open, the commands in their words, and the input they give."""

from collections.abc import Iterable
from dataclasses import replace

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.expand import expand_text, expand_word
from treadle.policy.shell.expansions import judge_segments
from treadle.policy.shell.feeds import fed_by
from treadle.policy.shell.scene import FREE_TARGETS, Feed, Follow, Scene
from treadle.policy.shell.syntax import ProcessSubstitution, Redirect


def judge_redirects(
    redirects: Iterable[Redirect], scene: Scene, follow: Follow, *, takes_pipe: bool = False
) -> tuple[list[Finding], Feed | None]:
    """Judge redirections; gives the new input, if any. With `takes_pipe` it may be `< <(…)`."""
    findings: list[Finding] = []
    feed: Feed | None = None
    for redirect in redirects:
        scene.effort.spend()
        match redirect.target.segments:
            case (ProcessSubstitution(script=script, is_output=False),) if takes_pipe and redirect.operator == "<":
                follow(script, replace(scene, feed=Feed()))
                feed = fed_by(script, scene)
                continue
            case _:
                pass
        findings.extend(judge_segments(redirect.target.segments, scene, follow) if redirect.here is None else [])
        if redirect.here is not None:
            findings.extend(judge_segments(redirect.here.body, scene, follow))
            feed = Feed(text=expand_text(redirect.here.body, scene.variables))
        elif redirect.operator == "<<<":
            feed = Feed(text=expand_text(redirect.target.segments, scene.variables, scene.cwd, tilde=True))
        else:
            findings.extend(_redirect(redirect, scene))
            feed = _input_of(redirect) if redirect.operator == "<" else feed
        if redirect.fd.startswith("{"):
            findings.append(unclear("redirect", "opens a descriptor and sets a variable"))
    return findings, feed


def _redirect(redirect: Redirect, scene: Scene) -> list[Finding]:
    if any(isinstance(segment, ProcessSubstitution) for segment in redirect.target.segments):
        return [unclear("redirect", "the input or output is another command")]
    targets = expand_word(redirect.target, scene.variables, scene.cwd)
    findings: list[Finding] = []
    for target in targets:
        if target.startswith(("/dev/tcp", "/dev/udp")):
            findings.append(dangerous("network-redirect", f"{target} is a connection to the network"))
        elif redirect.operator in (">&", "<&") and (target.rstrip("-").isdigit() or target == "-"):
            continue
        elif target not in FREE_TARGETS:
            op = PathOp.READ if redirect.operator == "<" else PathOp.WRITE
            findings.extend(scene.path(target, op))
    is_known = len(targets) == 1 and (is_static(targets[0]) or (redirect.operator == "<" and is_glob(targets[0])))
    if not is_known:
        findings.append(unclear("redirect", f"the file {redirect.target.text} is unknown until it runs"))
    return findings


def _input_of(redirect: Redirect) -> Feed:
    """Give what `< file` reads: nothing that is known, but for `< <(…)`, which is another command's output."""
    is_piped = any(isinstance(segment, ProcessSubstitution) for segment in redirect.target.segments)
    return Feed(upstream=((UNKNOWN,),)) if is_piped else Feed()
