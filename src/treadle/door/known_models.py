"""Models and their providers: which there are, what is known of them, and their keys."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.models.call_check import CallCheck as CallCheck
    from treadle.app.models.call_check import CheckOutcome as CheckOutcome
    from treadle.app.models.known import is_over as is_over
    from treadle.app.models.model_choice import Models as Models
    from treadle.app.models.model_names import said_elsewhere as said_elsewhere
    from treadle.app.models.model_rows import LocalLine as LocalLine
    from treadle.app.models.model_rows import catalogue_models as catalogue_models
    from treadle.app.models.model_rows import data_words as data_words
    from treadle.app.models.model_rows import local_lines as local_lines
    from treadle.app.models.model_rows import local_servers as local_servers
    from treadle.app.models.model_rows import models_of_provider as models_of_provider
    from treadle.app.models.model_rows import provider_lines as provider_lines
    from treadle.app.models.model_rows import replacement as replacement
    from treadle.app.models.model_rows import usable_models as usable_models
    from treadle.app.models.model_rows import usable_providers as usable_providers
    from treadle.app.models.offered import EFFORT_BUDGETS as EFFORT_BUDGETS
    from treadle.app.models.offered import OfferedModel as OfferedModel
    from treadle.app.models.profiles import describe_profiles as describe_profiles
    from treadle.app.models.profiles import profile_lines as profile_lines
    from treadle.app.models.provider_login import KEY_PAGES as KEY_PAGES
    from treadle.app.models.provider_login import KeyOwner as KeyOwner
    from treadle.app.models.provider_login import checked_name as checked_name
    from treadle.app.models.provider_login import clean_key as clean_key
    from treadle.app.models.provider_login import keep_key as keep_key
    from treadle.app.models.provider_login import key_owner as key_owner
    from treadle.app.models.provider_login import key_owners as key_owners
    from treadle.app.models.provider_login import key_providers as key_providers
    from treadle.app.models.provider_login import key_stored as key_stored
    from treadle.app.models.provider_login import remove_key as remove_key
    from treadle.app.models.provider_login import stored_words as stored_words
    from treadle.app.models.provider_login import try_key as try_key
    from treadle.app.models.provider_login import where_to_get as where_to_get
    from treadle.app.models.provider_login import winning_origin as winning_origin
    from treadle.app.models.saving_model import check_setting as check_setting
    from treadle.app.models.saving_model import save_default as save_default
    from treadle.app.models.updating import update_models as update_models
    from treadle.providers.failures import login_command as login_command
    from treadle.providers.shared_limits import share_limits as share_limits
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.models.call_check": "CallCheck CheckOutcome",
            "treadle.app.models.model_choice": "Models",
            "treadle.app.models.known": "is_over",
            "treadle.app.models.model_rows": """
                LocalLine catalogue_models data_words local_lines local_servers models_of_provider
                provider_lines replacement usable_models usable_providers
            """,
            "treadle.app.models.provider_login": """
                KEY_PAGES KeyOwner checked_name clean_key key_stored keep_key key_owner key_owners key_providers
                remove_key stored_words try_key where_to_get winning_origin
            """,
            "treadle.app.models.model_names": "said_elsewhere",
            "treadle.app.models.offered": "EFFORT_BUDGETS OfferedModel",
            "treadle.app.models.profiles": "describe_profiles profile_lines",
            "treadle.app.models.saving_model": "check_setting save_default",
            "treadle.app.models.updating": "update_models",
            "treadle.providers.failures": "login_command",
            "treadle.providers.shared_limits": "share_limits",
        },
    )
