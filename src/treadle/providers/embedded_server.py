"""The child process that holds an embedded model: `python -m treadle.providers.embedded_server FILE THREADS`.

It reads a key from its standard input, tells its address on its standard output, and ends with its standard input: when
the process that started it is gone, so is the model.
"""

import sys

import xllamacpp

BATCH = 64
"""Tokens of the prompt that are read at once: a call that is cancelled ends behind them."""


def main() -> None:
    """Load the model and serve it on loopback until the standard input ends."""
    file, threads = sys.argv[1], int(sys.argv[2])
    params = xllamacpp.CommonParams()
    params.model.path = file
    params.api_keys = [sys.stdin.readline().strip()]
    params.n_parallel = 1
    params.n_ctx = 0  # as much as the model was made for
    params.n_batch = params.n_ubatch = BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
