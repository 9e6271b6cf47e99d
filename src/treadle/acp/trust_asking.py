"""The question to a client's user whether a folder is trusted, before its first prompt."""

import asyncio
from contextlib import suppress

from treadle.acp.call_shapes import in_fence, question_shape, text_content
from treadle.acp.client import EditorClient
from treadle.acp.rpc import RpcError
from treadle.acp.shapes import ChosenOption, PermissionChoice, ToolCallBegan, ToolCallMoved
from treadle.door.trust import SessionTrust, asked_trust, keep_trust_answer, session_trust

_CALL = "trust"
_CHOICES = (
    PermissionChoice(option_id="always", name="Yes, trust it", kind="allow_always"),
    PermissionChoice(option_id="once", name="Yes, for this session only", kind="allow_once"),
    PermissionChoice(option_id="later", name="Not now", kind="reject_once"),
    PermissionChoice(option_id="never", name="Never for this folder", kind="reject_always"),
)


async def ask_trust(trust: SessionTrust, client: EditorClient) -> SessionTrust:
    """Ask, and keep what was said as `treadle trust` does; gives the word that the session goes by from then on.

    Without an answer the folder stays as it is. A folder that changed while the user read is not trusted.
    """
    asked = await asyncio.to_thread(asked_trust, trust.workspace)
    title = asked.title
    content = (text_content(f"{asked.about}\n\n{in_fence(chr(10).join(asked.lines))}"),)
    call = question_shape(_CALL, title, content)
    client.update(ToolCallBegan(tool_call_id=_CALL, title=title, kind="other", status="pending", content=content))
    status = "failed"
    try:
        chosen = ChosenOption(outcome="cancelled")
        with suppress(RpcError):  # a client that cannot ask is asked again in its next session
            chosen = await client.choose(call, _CHOICES)
        said = chosen.option_id if chosen.outcome == "selected" else "later"
        status = "completed" if said in ("always", "once") else "failed"
    finally:
        client.update(ToolCallMoved(tool_call_id=_CALL, status=status))
    if said not in ("always", "once", "never"):
        return trust
    if said == "once":
        now = session_trust(trust.workspace, once=True)
        return now if now.items == trust.items else trust
    keep_trust_answer(asked, said)
    return session_trust(trust.workspace)
