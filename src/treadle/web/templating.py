"""The templates of the page: every value in them is escaped, and what would steer or hide in it is shown."""

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request

from treadle.door.open_session import Reach
from treadle.present.escape import printable
from treadle.present.words import age, ago, counted, span, spent, tokens
from treadle.protocol.models import money
from treadle.protocol.usage import Usage
from treadle.web.changed_lines import diff_blocks
from treadle.web.markup import code, inline_code, markdown, page_text, ticked
from treadle.web.navigation import ADMIN_PATHS, SESSION_SCREENS, SETTINGS_GROUPS
from treadle.web.page_files import files_path, module_tags
from treadle.web.page_keys import Visitor
from treadle.web.rights import may

PAGE_BASE: ContextVar[str] = ContextVar("page_base", default="")
"""The path below which the page of this request is: its cookie goes nowhere else."""

PAGE_VISITOR: ContextVar[Visitor | None] = ContextVar("page_visitor", default=None)
"""Who asks for the page of this request: it shows what they may do."""

_FOLDER = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.finalize = _shown
    made.filters.update(
        age=_age,
        ago=_ago,
        clock=_clock,
        code=code,
        counted=counted,
        harmless=page_text,
        inline_code=inline_code,
        markdown=markdown,
        money=money,
        spent=spent,
        short_model=_short_model,
        span=span_words,
        time=_time,
        ticked=ticked,
        tokens=tokens,
        used=_used,
    )
    made.globals.update(
        page_base=PAGE_BASE.get, files_at=_files_at, modules=_modules, may=_may, diff_blocks=diff_blocks
    )
    return made


def load_templates() -> None:
    """Read all templates, and what colours code: else the first page waits for that. Takes its time."""
    for name in _environment().list_templates():
        _environment().get_template(name)
    markdown("```python\npass\n```\n")


def render(template: str, /, **values: Any) -> str:
    """Fill in a template."""
    return _environment().get_template(template).render(**values)


def common(request: Request) -> Mapping[str, Any]:
    """Give what every page has: where it is, and the screens."""
    return {
        "here": request.url.path,
        "session_screens": SESSION_SCREENS,
        "admin": ADMIN_PATHS,
        "groups_of_settings": SETTINGS_GROUPS,
    }


def _may(effect: str) -> bool:
    """Whether whoever asks for the page may do what has an effect, named as in `Reach`."""
    return may(PAGE_VISITOR.get(), Reach[effect])


def _files_at() -> str:
    return f"{PAGE_BASE.get()}{files_path()}"


def _modules(*names: str) -> Markup:
    return module_tags(PAGE_BASE.get(), *names)


def _shown(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _used(usage: Usage, cost: float | None) -> str:
    """Say what a reply read and wrote, and what it cost."""
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return f"{tokens(read)} in, {tokens(usage.output_tokens)} out · {money(cost, estimated=usage.estimated)}"


def span_words(seconds: float) -> str:
    """Give a span of time as the page writes it: 0.4 s, 7 s, 2 min, 5 min 35 s, 2 h 10 min."""
    minutes, rest = divmod(int(seconds + 0.05), 60)
    if minutes < 1:
        return span(seconds)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (0 if hours else rest, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def _time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone():%Y-%m-%d %H:%M}"


def _clock(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}"


def _ago(milliseconds: int) -> str:
    return ago(datetime.now(UTC).timestamp() - milliseconds / 1000)


def _age(milliseconds: int) -> str:
    return age(datetime.now(UTC).timestamp() - milliseconds / 1000)


def _short_model(model: str) -> str:
    """Name a model without its provider."""
    return model.rpartition("/")[2]
