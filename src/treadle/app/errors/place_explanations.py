"""What the error codes of folders and files that cannot be used mean, and what to do about them."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.app.errors.session_explanations import Explanation

ABOUT_PLACES: Mapping[str, Explanation] = MappingProxyType(
    {
        "config-unreadable": Explanation(
            "A settings file cannot be read, because of its permissions or because it is not UTF-8.",
            "Correct the permissions or the encoding, or move the file away.",
        ),
        "config-unwritable": Explanation(
            "A setting cannot be saved: the folder of your settings file cannot be written, or its disk is full.",
            "Correct the permissions of the folder that the message names, or free space on its disk.",
        ),
    }
)
