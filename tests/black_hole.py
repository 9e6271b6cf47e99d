"""A port that takes no connection and refuses none."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def black_hole() -> Iterator[int]:
    """A port that takes no connection and refuses none: what waits to be taken is as much as may wait."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(8)]
        try:
            for one in waiting:
                one.setblocking(False)
                assert one.connect_ex(listening.getsockname()) in (0, errno.EINPROGRESS)
            yield int(listening.getsockname()[1])
        finally:
            for one in waiting:
                one.close()
