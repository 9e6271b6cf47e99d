"""What the error codes of the page mean, and what to do about them."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.app.errors.session_explanations import Explanation

ABOUT_THE_PAGE: Mapping[str, Explanation] = MappingProxyType(
    {
        "arguments-json": Explanation(
            "The arguments of a call were changed on the page to something that is not an object of JSON.",
            "Correct them, or answer without a change.",
        ),
        "blocks": Explanation(
            "The page chose among blocks that this edit does not have: it shows an older question.",
            "Load the page again.",
        ),
        "command-ended": Explanation(
            "A command of your own that was to be stopped has ended.", "Nothing is to be done."
        ),
        "form-incomplete": Explanation(
            "A form that a server wants filled in has a field that is empty or cannot be read.",
            "Fill in what the message names, or answer no.",
        ),
        "job-runs": Explanation(
            "A command in the background does not end.", "Stop its processes. `treadle jobs` lists it."
        ),
        "message-size": Explanation(
            "A message is longer than the page takes, or has more images.",
            "Put long texts into a file in the project, and name the file.",
        ),
        "session-elsewhere": Explanation(
            "The session is open in another program, which alone can close it.", "Close it there: /quit in a terminal."
        ),
        "session-not-open": Explanation(
            "Nobody has the session open, so nothing in it can be answered or changed.",
            "Send a message to continue it.",
        ),
    }
)
