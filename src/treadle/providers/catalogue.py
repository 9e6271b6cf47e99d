"""Providers by name, and what a user types for a model."""

from collections.abc import Mapping
from string import Formatter

from treadle.protocol.errors import ConfigError
from treadle.providers.provider_rows import ROWS, ProviderRow

BY_NAME = {name: row for row in ROWS for name in (row.name, *row.aliases)}
"""Every provider by each of its names."""


def find_provider(name: str) -> ProviderRow:
    """Find a provider by its name or another name for it; raises `ConfigError` with the nearest ones.

    The profile with whose key it is called (`anthropic@work`) is no part of what the provider is.
    """
    name = name.partition("@")[0]
    row = BY_NAME.get(name.strip().lower())
    if row is not None:
        return row
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), BY_NAME, n=3)
    fix = f"Did you mean {_listed(near)}?" if near else "For your own server use 'openai-compatible' and its base URL."
    raise ConfigError("provider-unknown", f"There is no provider {name!r}.", fix=fix)


def parse_ref(ref: str) -> tuple[ProviderRow, str]:
    """Split `provider/model`; the model's own name may have slashes. Raises `ConfigError`."""
    provider, slash, model = ref.strip().partition("/")
    if not slash or not model:
        why = "A model is named by its provider, a slash and its own name."
        fix = "Write it as PROVIDER/NAME; `treadle models` lists the names."
        raise ConfigError("model-name", f"{ref!r} is not a model name.", why=why, fix=fix)
    return find_provider(provider), model


def fill_base_url(row: ProviderRow, environ: Mapping[str, str]) -> str:
    """The base URL with the variables of the environment filled in; raises `ConfigError` where one is missing."""
    if not row.base_url:
        raise ConfigError(
            "base-url-missing",
            f"{row.title} needs a base URL.",
            why=f"The provider {row.name} has no address of its own.",
            fix=f"Give one with --model {row.name}/NAME --base-url URL, or as base_url under [providers.{row.name}] "
            "in your settings.",
        )
    names = [name for _, name, _, _ in Formatter().parse(row.base_url) if name]
    missing = [name for name in names if not environ.get(name)]
    if missing:
        what = f"The base URL of {row.title} needs {', '.join(missing)}."
        raise ConfigError(
            "base-url-incomplete", what, fix=f"Set {' and '.join(missing)} in the environment, or base_url."
        )
    return row.base_url.format_map({name: _without_scheme(environ[name]) for name in names})


def _without_scheme(value: str) -> str:
    """Give what stands in an address for a host, however it was copied: `https://HOST/` is HOST."""
    return value.strip().removeprefix("https://").removeprefix("http://").rstrip("/")


def _listed(names: list[str]) -> str:
    return " or ".join(repr(name) for name in names)
