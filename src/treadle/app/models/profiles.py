"""Profiles: keys of providers under a name of one's own, to switch between accounts."""

from collections.abc import Iterator

from treadle.app.config.sections import Settings
from treadle.app.models.model_notes import named_profile, plain_ref
from treadle.app.models.provider_keys import stored_names
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.patterns import regex

_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class ProfileLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A profile: the providers of which it has a key, the model that it begins with, and the folders that use it."""

    name: str
    providers: tuple[str, ...]
    model: str = ""
    folders: tuple[str, ...] = ()


def checked_profile(name: str) -> str:
    """Give a name back that a profile can have; raises `ConfigError`."""
    if _NAME.fullmatch(name):
        return name
    why = "It has letters, digits, '.', '_' and '-', at most 40, and begins with a letter or a digit."
    raise ConfigError("profile-name", f"{name!r} is not the name of a profile.", why=why, fix="Choose another name.")


def profile_lines(settings: Settings) -> Iterator[ProfileLine]:
    """List the profiles that have a key or settings, by name."""
    keys = [one.partition("@") for one in sorted(stored_names())]
    for name in sorted({name for _, _, name in keys if name} | set(settings.profiles)):
        own = settings.profiles.get(name)
        yield ProfileLine(
            name=name,
            providers=tuple(provider for provider, _, profile in keys if profile == name),
            model="" if own is None else own.model,
            folders=() if own is None else own.folders,
        )


def describe_profiles(settings: Settings, present: str) -> str:
    """List the profiles in lines; the one that the present model, `provider@profile/name`, is called with is marked."""
    used = named_profile(present)
    lines = [f"{'*' if not used else ' '} usual: the keys without a profile"]
    for one in profile_lines(settings):
        facts = [f"keys of {', '.join(one.providers)}" if one.providers else "no key stored"]
        facts += [f"begins with {one.model}"] if one.model else []
        facts += [f"in {', '.join(one.folders)}"] if one.folders else []
        lines.append(f"{'*' if one.name == used else ' '} {one.name}: {'; '.join(facts)}")
    if len(lines) == 1:
        lines.append("There is no profile. `treadle login PROVIDER --as NAME` stores a key under a name.")
    return "\n".join(lines)


def model_in_profile(settings: Settings, name: str, present: str) -> str:
    """Name the model to change to for a profile: the one that it begins with, else the present one.

    `usual` names the keys without a profile. Raises `ConfigError` for a profile that is not there.
    """
    if name == "usual":
        provider, _, model = plain_ref(present).partition("/")
        return f"{provider}@/{model}"
    one = next((line for line in profile_lines(settings) if line.name == name), None)
    if one is None:
        from treadle.app.models.model_refusals import no_profile

        raise no_profile(name)
    provider, _, model = plain_ref(one.model or present).partition("/")
    if one.providers and provider not in one.providers:
        others = ", ".join(f"/model {other}@{name}/NAME" for other in one.providers)
        raise ConfigError(
            "key-missing",
            f"The profile {name} has no key of {provider}.",
            why=f"It has keys of {', '.join(one.providers)}.",
            fix=f"Choose a model of these: {others}. Or store a key: treadle login {provider} --as {name}.",
        )
    return f"{provider}@{name}/{model}"
