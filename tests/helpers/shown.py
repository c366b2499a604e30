from collections.abc import Iterator
from itertools import combinations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.mathtext import MathTextParser
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

# What is shown, as messages call it, and where.
Box = tuple[str, Bbox]


def legends_of(figure: Figure) -> list[Legend]:
    """Return all legends, also those of the parts of a figure."""
    return [legend for part in (figure, *figure.subfigs) for legend in part.legends]


def legend_labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in legends_of(figure) for text in legend.get_texts()]


def spans(axes: Axes) -> list[tuple[float, float]]:
    """Return where the bands of a panel begin and end, which are as high as it is."""
    boxes = [p for p in axes.patches if isinstance(p, Rectangle) and p.get_height() == 1]
    ends = [(box.get_x(), box.get_x() + box.get_width()) for box in boxes]
    return sorted((round(start, 9), round(end, 9)) for start, end in ends)


def boxes_of(figure: Figure) -> list[Box]:
    """Return all texts that can be seen, and where."""
    texts = [text for text in _texts(figure) if text.get_visible() and text.get_text()]
    return [(text.get_text(), text.get_window_extent()) for text in texts]


def sizes_of(figure: Figure) -> Iterator[float]:
    """Yield the size of each glyph that can be seen, in points, as matplotlib sets it."""
    parser = MathTextParser("path")
    for text in _texts(figure):
        if text.get_visible() and text.get_text():
            said, is_math = text._preprocess_math(text.get_text())
            yield text.get_fontsize()
            if is_math:
                glyphs = parser.parse(said, 72, text.get_fontproperties()).glyphs
                yield from (each[1] for each in glyphs)


def _texts(figure: Figure) -> Iterator[Text]:
    for part in (figure, *figure.subfigs):
        headings = (part._suptitle, part._supxlabel, part._supylabel)
        yield from (text for text in headings if text is not None)
    for legend in legends_of(figure):
        yield from (legend.get_title(), *legend.get_texts())
    for axes in [*figure.axes, *(child for each in figure.axes for child in each.child_axes)]:
        yield from (axes.title, axes._left_title, axes._right_title, *axes.texts)
        if axes.axison:
            for axis in filter(Artist.get_visible, (axes.xaxis, axes.yaxis)):
                yield from (axis.label, axis.get_offset_text(), *_tick_labels(axis))


def _tick_labels(axis: Axis) -> Iterator[Text]:
    """Yield the labels that are drawn: an axis keeps some beyond its limits."""
    low, high = sorted(axis.get_view_interval())
    for tick in axis.get_major_ticks():
        if low <= tick.get_loc() <= high:
            yield from (tick.label1, tick.label2)


def is_whole(figure: Figure, box: Bbox) -> bool:
    """Tell whether nothing of a box is cut off."""
    width, height = figure.bbox.size
    return min(box.x0, box.y0, width - box.x1, height - box.y1) >= 0


def _boxes_of_lines(text: Text) -> list[Bbox]:
    """Return where each line of a text is: a short line leaves room beside it."""
    whole, said = text.get_window_extent(), text.get_text()
    if text.get_rotation() or "\n" not in said:
        return [whole]
    lines, place = said.split("\n"), {"left": 0.0, "center": 0.5, "right": 1.0}
    high, boxes = whole.height / len(lines), []
    for number, line in enumerate(lines, 1):
        text.set_text(line)
        wide = text.get_window_extent().width
        left = whole.x0 + place[text.get_horizontalalignment()] * (whole.width - wide)
        boxes.append(Bbox.from_bounds(left, whole.y1 - number * high, wide, high))
    text.set_text(said)
    return boxes


def flaws(figure: Figure) -> list[str]:
    """Say which texts of a figure are cut off or lie over each other."""
    texts = [text for text in _texts(figure) if text.get_visible() and text.get_text()]
    boxes = {text: _boxes_of_lines(text) for text in texts}
    found = [text for text in texts if not all(is_whole(figure, box) for box in boxes[text])]
    pairs = [
        (one.get_text(), other.get_text())
        for one, other in combinations(texts, 2)
        if any(a.overlaps(b) for a in boxes[one] for b in boxes[other])
    ]
    return [f"cut off: {text.get_text()}" for text in found] + [
        f"{one} over {other}" for one, other in pairs
    ]
