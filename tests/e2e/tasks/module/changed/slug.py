"""File names from titles."""

import re
import unicodedata


def slugify(title: str) -> str:
    """Give the title in small ASCII letters and digits, with hyphens between the words."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
