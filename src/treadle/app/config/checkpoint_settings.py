"""What a user may set of checkpoints."""

from typing import Annotated

import msgspec

from treadle.protocol.base import Record


class CheckpointSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether checkpoints are taken, of `ignored` files too, and how many megabytes they may take for a workspace."""

    enabled: bool = True
    ignored: bool = False
    most_megabytes: Annotated[int, msgspec.Meta(ge=10)] = 2_000
