"""Settings that name models: checked before they are written, and the default model as it is saved."""

from collections.abc import Iterable
from pathlib import Path

from treadle.app.config.addresses import bind_base_url, checked_url, require_bound
from treadle.app.config.edit import set_value
from treadle.app.config.places import check_workspace
from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models
from treadle.app.models.model_names import named_models, said_elsewhere
from treadle.app.models.model_notes import in_profile
from treadle.protocol.errors import ConfigError


def check_setting(settings: Settings, path: tuple[str, ...]) -> None:
    """Raise `ConfigError` for settings with which no session could start, because of what stands at a path of keys."""
    models = Models(settings)
    if path[0] == "profile":
        in_profile(settings.model, settings)
    if path[0] == "add_dirs":
        _check_folders(settings.add_dirs)
    if path[0] in ("model", "base_url"):
        require_bound(bind_base_url(settings, settings.model))
    if path == ("base_url",) and settings.base_url:
        checked_url(settings.base_url)
    for key, ref in named_models(settings):
        touched = (
            key == path[: len(key)] or path == key[: len(path)] or path[:2] == ("providers", ref.partition("/")[0])
        )
        if touched:
            models.spec(ref)
    if path[0] == "providers" and len(path) > 1 and path[1] in settings.providers:
        models.row(path[1])


def _check_folders(folders: Iterable[str]) -> None:
    for folder in folders:
        try:
            check_workspace(Path(folder))
        except ConfigError as error:
            raise ConfigError("add-dir", error.what, why=error.why, fix="Name another folder.") from None


def save_default(ref: str, thinking: int | None = None) -> str:
    """Make a model the default in the user's settings, and with it how much it thinks; gives what to say of that.

    Raises `ConfigError` and saves nothing that no session could start with.
    """
    saved = set_value("model", ref, check_setting)
    if thinking is not None:
        saved = set_value("thinking_budget", str(thinking), check_setting)
    return f"{ref} is the default now. Saved in {saved.file}.{said_elsewhere('model')}"
