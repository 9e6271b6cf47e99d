"""Which sessions a rehearsal has: everything about one follows from the seed and its number."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from tests.rehearsal import project, work
from tests.rehearsal.model import Moves, call, reply
from tests.rehearsal.work import Job, Piece
from treadle.protocol.models import ToolProtocol

WIRES = ("anthropic", "chat", "responses", "gemini", "bedrock")
WINDOWS = (None, 200_000, 16_384, 8_192)


PIECES: tuple[Piece, ...] = (
    work.look_around,
    work.wrong_types,
    work.other_names,
    work.several_mistakes,
    work.edit_and_check,
    work.check_in_the_same_reply,
    work.poll,
    work.thinks_only,
    work.says_nothing,
    work.says_text,
    work.answers_as_in_plan_mode,
    work.reads_giant,
    work.prints_giant,
    work.meets_long_line,
    work.foreign_notation,
    work.makes_results_up,
    work.rereads,
    work.reads_after_much,
    work.second_try,
    work.asks_nobody,
    work.keeps_checklist,
    work.reads_then_writes,
    work.bad_line,
    work.odd_names,
    work.loop_of_links,
    work.restarted,
    work.steered,
    work.queued,
)

FILES: dict[Piece, Callable[[], project.Tree]] = {
    work.reads_giant: lambda: {b"data/events.log": project.giant()},
    work.meets_long_line: lambda: {b"data/prices.json": project.long_line()},
    work.odd_names: project.odd_files,
}
"""What must be in the repository for a piece besides its usual files."""

WITH_PERSON = frozenset({work.steered, work.queued})
"""Pieces that need somebody who types while the program works."""

TEXT_ONLY = frozenset({work.says_text, work.foreign_notation})
"""Pieces with a reply without a call: where calls are native, only one reminder is given in a turn."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One session of healthy work. `wire` is empty for a model in process."""

    seed: int
    number: int
    pieces: tuple[Piece, ...]
    protocol: ToolProtocol
    window: int | None = None
    wire: str = ""

    def __str__(self) -> str:
        pieces = ", ".join(piece.__name__ for piece in self.pieces)
        where = f"{self.protocol}, {self.wire or 'in process'}, window {self.window}"
        return f"seed {self.seed}, session {self.number}: {where}: {pieces}"

    def job(self) -> Job:
        """Give what the session works on."""
        native = self.protocol is ToolProtocol.NATIVE
        job = Job(jitter=Random(f"{self.seed}-{self.number}"), native=native, window=self.window)
        for piece in self.pieces:
            job.tree.update(FILES.get(piece, dict)())
        return job

    def moves(self, job: Job) -> Moves:
        """Give what the model does."""
        return _compose(job, self.pieces)


def plans(seed: int, count: int, *, wires: tuple[str, ...] = ("",), person: bool = True) -> Iterator[Plan]:
    """Give sessions in which every piece comes about equally often, over both protocols and all windows."""
    jitter = Random(seed)
    waiting: list[Piece] = []
    for number in range(count):
        protocol = (ToolProtocol.NATIVE, ToolProtocol.XML)[number % 2]
        pieces: list[Piece] = []
        for _ in range(jitter.randint(2, 4)):
            if not waiting:
                waiting = jitter.sample(PIECES, len(PIECES))
            pieces.append(waiting.pop())
        if not person:
            pieces = [piece for piece in pieces if piece not in WITH_PERSON]
        if protocol is ToolProtocol.NATIVE:
            texts = [piece for piece in pieces if piece in TEXT_ONLY]
            pieces = [piece for piece in pieces if piece not in texts[1:]]
        yield Plan(
            seed=seed,
            number=number,
            pieces=tuple(dict.fromkeys(pieces)),
            protocol=protocol,
            window=jitter.choice(WINDOWS),
            wire=wires[number % len(wires)],
        )


def _compose(job: Job, pieces: tuple[Piece, ...]) -> Moves:
    """Put a session together; it ends with what was done, perhaps with a command that shows it."""
    for piece in pieces:
        yield from piece(job)
    arguments = {"result": "All done."}
    if job.jitter.random() < 0.5:
        arguments["command"] = "echo shown"
    job.finishing = True
    yield reply(call("attempt_completion", **arguments))
