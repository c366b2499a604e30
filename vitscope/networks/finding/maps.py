"""Which values of a recorded pass are feature maps, and how they lie."""

from vitscope.networks.finding.cut_points import Layout
from vitscope.networks.finding.dataflow import Dataflow, Value
from vitscope.networks.finding.positions import Tracer
from vitscope.networks.finding.tensor_layouts import layout_of


class Maps:
    """The layouts of what operations return, each found when it is asked for."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._tracer = Tracer(flow)
        self._known: dict[int, Layout | None] = {}

    def layout(self, index: int) -> Layout | None:
        """Return the layout of a feature map; None for what is none."""
        if index not in self._known:
            positions = self._tracer.positions(Value(index))
            shape = self._flow.operations[index].shape
            self._known[index] = None if positions is None else layout_of(positions, shape)
        return self._known[index]

    def size(self, index: int) -> tuple[int, int] | None:
        """Return the height and width of a feature map."""
        layout, shape = self.layout(index), self._flow.operations[index].shape
        if layout is None:
            return None
        if layout.grid is not None:
            return layout.grid
        return shape[layout.order.index("h")], shape[layout.order.index("w")]

    def channel(self, index: int) -> int | None:
        """Return which dimension of a feature map is its channels."""
        layout = self.layout(index)
        return None if layout is None else layout.order.index("c")

    def channels(self, index: int) -> int:
        """Return how many channels a feature map has; 0 for what is none."""
        channel = self.channel(index)
        return 0 if channel is None else self._flow.operations[index].shape[channel]
