"""Choosing a model and how much it thinks, for this session or as the default."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.known_models import EFFORT_BUDGETS, OfferedModel
from treadle.present.words import counted
from treadle.tui.lists.filter_list import Pick, take_key, with_rows
from treadle.tui.lists.filter_list_rows import MODELS, model_rows
from treadle.tui.session.aside import Aside


class ModelList:
    """The models to choose from; read when they are wanted first, and again each time that the picker opens."""

    def __init__(
        self, read: Callable[[], Sequence[OfferedModel]], *, aside: Aside, changed: Callable[[], None]
    ) -> None:
        self._read = read
        self._aside = aside
        self._changed = changed
        self._reading = False
        self._known: Sequence[OfferedModel] | None = None

    def known(self) -> Sequence[OfferedModel] | None:
        """Give the models; None until they are read, which this begins."""
        if self._known is None:
            self.refresh()
        return self._known

    def refresh(self) -> None:
        """Read them again: a key may have been stored since."""
        if not self._reading:
            self._reading = True
            self._aside.start(self._read, self._take, self._known or ())

    def _take(self, models: Sequence[OfferedModel]) -> None:
        self._reading, self._known = False, models
        self._changed()


class TakenModel(Struct, frozen=True, kw_only=True):
    """The model that was chosen, how many tokens it may think (None: as set), and whether from now on."""

    ref: str
    thinking: int | None = None
    default: bool = False


_ALL = "ctrl-a all"
_FEWER = "ctrl-a fewer"


class ModelPicker:
    """The models that can be called, or all that are known; `now` is the one that the session uses."""

    def __init__(self, models: ModelList, now: str) -> None:
        self._models = models
        self._now = now
        self._effort = ""
        self._all = False
        self.picker = MODELS
        models.refresh()
        self.follow()

    def follow(self) -> None:
        """Take the models as they are known now."""
        models = self._models.known()
        if models is None:
            return
        shown = [model for model in models if self._all or model.usable or model.ref == self._now]
        self.picker = with_rows(self.picker, list(model_rows(shown, self._now)), self._now)
        more = len(models) - len(shown)
        unfit = f"Nothing fits. Ctrl-A shows {counted(more, 'more model')} of providers without a key." if more else ""
        self.picker = replace(self.picker, unfit=unfit or MODELS.unfit, keys=self._keys())

    def press(self, key: Pick, text: str = "") -> TakenModel | None:
        """Take a key; gives the model that was taken."""
        row = self.picker.row
        if key is Pick.ALL:
            self._all = not self._all
            self.picker = replace(self.picker, hint="")
            self.follow()
        elif row is None or key not in (Pick.TAKE, Pick.DEFAULT, Pick.LEFT, Pick.RIGHT):
            self.picker = take_key(self.picker, key, text)
        elif key in (Pick.LEFT, Pick.RIGHT):
            self._think(row.id, 1 if key is Pick.RIGHT else -1)
        else:
            thinking = EFFORT_BUDGETS[self._effort] if self._effort and self._thinks(row.id) else None
            return TakenModel(ref=row.id, thinking=thinking, default=key is Pick.DEFAULT)
        return None

    def _thinks(self, ref: str) -> bool:
        return any(model.thinks for model in self._models.known() or () if model.ref == ref)

    def _think(self, ref: str, step: int) -> None:
        """Go to the next or the last step of thinking; before the first one it is as set."""
        if not self._thinks(ref):
            self.picker = replace(self.picker, hint=f"{ref.partition('/')[2]} does not think.")
            return
        steps = ("", *EFFORT_BUDGETS)
        self._effort = steps[max(0, min(steps.index(self._effort) + step, len(steps) - 1))]
        self.picker = replace(self.picker, keys=self._keys(), hint="")

    def _keys(self) -> tuple[str, ...]:
        thinking = f"←→ thinking: {self._effort or 'as set'}" if self._effort else "←→ thinking"
        said = {"←→ thinking": thinking, _ALL: _FEWER if self._all else _ALL}
        return tuple(said.get(key, key) for key in MODELS.keys)
