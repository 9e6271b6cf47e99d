"""A subagent that begins with the conversation of its session: what it is sent first is what that was sent."""

from collections.abc import Mapping

from msgspec.structs import replace

from treadle.app.session.children.child_shape import NOT_FOR_CHILDREN, ChildShape
from treadle.engine.ports import Ports
from treadle.protocol.events import OfferChanged
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Situation
from treadle.protocol.sealed import PromptPart


class ForkShape(ChildShape, frozen=True, kw_only=True):
    """The shape of a fork: prompt and tools are those of the `offer` of its session, so that their cache holds.

    It may use no more for that: what its agent does not have is declared, and each call of it is denied.
    """

    offer: OfferChanged

    def offers(self, tool: str) -> bool:
        above = self.parent.shape
        return above is None or above.offers(tool)

    def _is_removed(self, name: str) -> bool:
        return name in NOT_FOR_CHILDREN or not self._wants(name) or super()._is_removed(name)

    def applied(self, ports: Ports) -> Ports:
        above = self.parent.shape
        shaped = ports if above is None else above.applied(ports)
        names = {spec.name for spec in self.offer.tools}

        def left_out(model: str, situation: Situation) -> Mapping[str, str]:
            gone = shaped.left_out(model, situation)
            if not names:  # calls are written as text: the prompt declares them
                return gone
            return {name: gone.get(name, _ELSEWHERE) for name in ports.tools if name not in names}

        def system(model: str, protocol: ToolProtocol, situation: Situation) -> tuple[PromptPart, ...]:  # noqa: ARG001
            return self.offer.system

        judge = self.judged(shaped.judge)
        return replace(shaped, left_out=left_out, system=system, judge=judge, remember=self.remember)


_ELSEWHERE = "it is not offered in this session"


def fork_shape(shape: ChildShape, offer: OfferChanged) -> ForkShape:
    """Give the shape of a fork that is the same subagent else."""
    return ForkShape(**{name: getattr(shape, name) for name in shape.__struct_fields__}, offer=offer)
