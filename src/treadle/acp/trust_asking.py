"""The question to a client's user whether a folder is trusted, before its first prompt."""

import asyncio

from treadle.acp.call_shapes import in_fence, question_shape, text_content
from treadle.acp.client import EditorClient
from treadle.acp.shapes import PermissionChoice, ToolCallBegan, ToolCallMoved
from treadle.app.security.trusted_rules import allow_lines
from treadle.app.security.trusting import SessionTrust, session_trust, shown_path, trust_lines, trust_store, whole_trust

_CALL = "trust"
_CHOICES = (
    PermissionChoice(option_id="always", name="Yes, trust it", kind="allow_always"),
    PermissionChoice(option_id="once", name="Yes, for this session only", kind="allow_once"),
    PermissionChoice(option_id="later", name="Not now", kind="reject_once"),
    PermissionChoice(option_id="never", name="Never for this folder", kind="reject_always"),
)
_ABOUT = "Its rules, settings, servers and hooks are used only if you trust it. A change asks again."


async def ask_trust(trust: SessionTrust, client: EditorClient) -> SessionTrust:
    """Ask, and keep what was said as `treadle trust` does; gives the word that the session goes by from then on.

    Without an answer the folder stays as it is. A folder that changed while the user read is not trusted.
    """
    shown = await asyncio.to_thread(whole_trust, trust.workspace)
    lines = [*trust_lines(shown), *allow_lines(shown)] or ["  It has no rules, settings, servers or hooks."]
    title = f"{'Do you still trust' if shown.changed else 'Do you trust'} {shown_path(str(trust.workspace))}?"
    content = (text_content(f"{_ABOUT}\n\n{in_fence(chr(10).join(lines))}"),)
    call = question_shape(_CALL, title, content)
    client.update(ToolCallBegan(tool_call_id=_CALL, title=title, kind="other", status="pending", content=content))
    status = "failed"
    try:
        chosen = await client.choose(call, _CHOICES)
        said = chosen.option_id if chosen.outcome == "selected" else "later"
        status = "completed" if said in ("always", "once") else "failed"
    finally:
        client.update(ToolCallMoved(tool_call_id=_CALL, status=status))
    match said:
        case "always":
            trust_store().grant(shown)
        case "once":
            now = session_trust(trust.workspace, once=True)
            return now if now.items == trust.items else trust
        case "never":
            trust_store().refuse(shown)
        case _:
            return trust
    return session_trust(trust.workspace)
