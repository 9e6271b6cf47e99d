"""Why no model can be called with what is set, and what to do about it."""

from difflib import get_close_matches

from treadle.app.models.known import known_models, living_names
from treadle.app.models.model_names import nearest_refs, with_place
from treadle.app.models.provider_keys import stored_names
from treadle.protocol.errors import ConfigError
from treadle.providers.failures import login_command
from treadle.providers.provider_rows import Proof, ProviderRow

_KEY_HELP = (
    "Store your key with `treadle login {provider}`, or set it in the environment ({names}). To try Treadle without "
    "a key: `treadle demo`."
)

_OTHER_PROOFS = {
    Proof.KEY: "",
    Proof.AWS: " An AWS account works as well: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
    Proof.GOOGLE: " A Google account works as well: GOOGLE_APPLICATION_CREDENTIALS, "
    "`gcloud auth application-default login`, or token_command in the settings.",
}


def key_missing(row: ProviderRow, names: str) -> ConfigError:
    """Say that a provider's key was found neither under the `names` of its variables nor among the stored ones."""
    if row.profile:
        return ConfigError(
            "key-missing",
            f"The profile {row.profile} has no key of {row.title}.",
            why="None is stored, or it was removed. The key of another profile is not used in its place.",
            fix=f"Store it with `{login_command(row.name)}`, or choose another profile with --profile NAME, or with "
            "/profile in a session; `treadle providers` lists them.",
        )
    return ConfigError(
        "key-missing",
        f"No key for {row.title} was found.",
        why=f"{names} is not set, and no key is stored.",
        fix=_KEY_HELP.format(provider=row.name, names=names) + _OTHER_PROOFS[row.proof],
    )


def no_provider() -> ConfigError:
    """Say that no model is named, and that there is no key by which to take one."""
    return ConfigError(
        "no-provider",
        "No model is configured, and no provider's key was found.",
        why="--model, TREADLE_MODEL and the settings file name no model; no key variable is set.",
        fix=_KEY_HELP.format(provider="PROVIDER", names="ANTHROPIC_API_KEY, OPENAI_API_KEY, …"),
    )


def no_model(row: ProviderRow) -> ConfigError:
    """Say that a provider has a key, but that no model of it is known that is not retired."""
    return ConfigError(
        "no-model",
        f"There is a key for {row.title}, but no model of it is known that can be used.",
        why=f"The list of models of {known_models().data.date} has none, and {row.name} does not say which it has.",
        fix=f"Name one with --model {row.name}/NAME, or fetch the newest list: `treadle models --update`.",
    )


def unknown_model(ref: str, row: ProviderRow, name: str) -> ConfigError:
    """Say that a provider has no such model as far as is known, which are like it, and what to do if it is right."""
    near = ", ".join(f"{row.name}/{one}" for one in get_close_matches(name, living_names(row), n=3))
    error = ConfigError(
        "model-unknown",
        f"The model {ref} is not known.",
        why=f"The nearest names are: {near}." if near else "No known name is similar.",
        fix="`treadle models` lists the known names, `treadle models --update` fetches the newest. If this one is "
        f"right, set its window in tokens: `treadle config set 'models.\"{ref}\".context_window' TOKENS`.",
    )
    return with_place(error, ref)


def not_a_name(ref: str) -> ConfigError:
    """Say that this is not how a model is named."""
    near = " or ".join(nearest_refs(ref)) or "PROVIDER/NAME"
    error = ConfigError(
        "model-name",
        f"{ref!r} is not a model name.",
        why="A model is named by its provider, a slash and its own name.",
        fix=f"Write {near}; `treadle models` lists them.",
    )
    return with_place(error, ref)


def no_profile(name: str) -> ConfigError:
    """Say that no profile has this name."""
    known = sorted({one.partition("@")[2] for one in stored_names()} - {""})
    return ConfigError(
        "profile-unknown",
        f"There is no profile {name!r}.",
        why=f"There are: {', '.join(known)}." if known else "No key is stored under a name.",
        fix=f"Store a key for it: `treadle login PROVIDER --as {name}`.",
    )
