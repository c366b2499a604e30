"""Captions of kinds of figures, and sentences that they share: `{name}` inserts one."""

import re

from vitscope.errors import VitscopeError
from vitscope.measures.measure import FigureKind
from vitscope.measures.registry import folder

_SHADE = "The shade around a curve is the 95 % interval of a bootstrap over images."
LEGENDS = {
    "shade": _SHADE,
    "by_depth": (
        f"Across: normalized depth, from 0, after the stem, to 1, after the last block. {_SHADE}"
    ),
    "band": "A band reaches from the state before a block to the state after it.",
    "bands": (
        "- *Gray band*: a multi-head self-attention (MSA).\n- *Hatched band*: subsampling; the map "
        "after the block is smaller than before, or the block is a pool."
    ),
    "marks": (
        "- *Gray mark on an axis*: the cut point follows a multi-head self-attention (MSA).\n"
        "- *Light blue mark on an axis*: the cut point follows subsampling; its map is smaller "
        "than the one before, or the block is a pool.\n"
        "- *Hatched cell*: undefined, since one of the maps is the same for all images.\n"
        "- *White dot*: not above chance: of orders of the images of one map, 5 % or more have a "
        "CKA as high."
    ),
    "measured": "- *Filled markers*: measured; colour and marker show the family.",
    "measured_together": (
        "- *Filled markers*: measured; colour and marker show the family, shade and line style "
        "distinguish models of one family."
    ),
    "published": (
        "- *Open markers, dotted*: the published points. "
        "Where they belong to another model than the measured one, they have panels of their own; "
        "then compare only the shapes."
    ),
    "open_signs": (
        "- *Hollow markers on a curve*: whether the block before raises the value is open: other "
        "images could change it."
    ),
    "change": (
        "With ``change: true``, a bar for each block shows by how much the value changes over it "
        "(in percent where it cannot be negative), in the colour of the block's kind, and hatched "
        "where it subsamples. *Line on a bar*: the 95 % interval of the change over images, which "
        "claims test. It is paired, since the same images stand before and after a block, and so "
        "much narrower than the shade of a curve. Above a panel stands over how many blocks the "
        "value changes as the claims say. The scale is linear around 0, and logarithmic beyond the "
        "first ticks. Published points, if any, have panels of their own, of the same scale."
    ),
    "by_epoch": (
        "With ``by_epoch: true``, a column shows one network: above, a curve for each epoch at "
        "which it was measured, by colour (a variance, which grows by orders of magnitude, on a "
        "logarithmic axis); below, after each of these epochs, the share of blocks that change the "
        "value as the legend says, without those that subsample, and its 95 % interval over "
        "images. The axis of epochs is logarithmic from 1 on. Claims are not counted."
    ),
    "norms": (
        "Where blocks normalize the sum of stream and branch (post-norm networks), a point is read "
        "after that norm, unless the study says ``norms: before``."
    ),
    "mean_of_heads": (
        "Each small dot is a head; the larger markers are the mean over the heads of one "
        "attention, and the shade is its 95 % bootstrap interval over images. Across: the "
        "normalized depth of the cut point after the attention."
    ),
    "heads": "*Dots*: heads. *Larger markers*: the mean over heads; the colour shows the family.",
    "methods": (
        "- *Filled*: the maps of a method. *Hollow*, and the *dashed line*: a map of random "
        "values, at as many positions as Grad-CAM has. Rollout knows of no class.\n- *Line through "
        "a dot*: the 95 % interval of a bootstrap over images. All methods explain the same "
        "images, so that two may differ though their intervals overlap; claims test differences."
    ),
    "blocks_by_epoch": (
        "- *Gray circles*: the share of MSAs after which the value is lower than before.\n"
        "- *Ochre triangles*, *purple diamonds*: the share of MLPs, and of Convs that do not "
        "subsample, after which it is higher."
    ),
    "chance": "- *Dashed line*: the accuracy of guessing, one over the number of classes.",
}
# The legend of figures that show by depth how blocks raise or lower a value.
LEGENDS["blocks"] = "\n".join(LEGENDS[name] for name in ("bands", "measured", "open_signs"))
_TITLE = re.compile(r"\*\*(.+?)\.\*\*", re.DOTALL)
_ESCAPE = re.compile(r"\\(\W)")
# A sentence does not end at an abbreviation, as in Fig. 9 and Fig. D.1.
_SENTENCE_ENDS = re.compile(r"(?<=\.) (?=[A-Z][\w-]*[ :,])")
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_LEGEND = re.compile(r"\{(\w+)\}")
_LINK = re.compile(r"`([^`<]+?)\s+<([^`>]+)>`_")


def caption_of(kind: FigureKind) -> str:
    """Return the caption of a kind of figure in reStructuredText, with shared legends inserted."""
    if kind.text:
        return kind.text
    file = folder(kind.measure) / kind.caption
    if not file.is_file():
        raise VitscopeError(f"There is no caption {file}: write it.")
    return _LEGEND.sub(lambda named: LEGENDS[named[1]], file.read_text(encoding="utf-8"))


def title_of(kind: FigureKind) -> str:
    """Return the title of a kind of figure: the words in bold at the beginning of its caption."""
    caption = caption_of(kind)
    title = _TITLE.match(caption)
    if title is None:
        raise VitscopeError(
            f"The caption {kind.measure}/{kind.caption} begins with '{caption[:20]}', allowed: a "
            f"title, as **Title.**"
        )
    return _ESCAPE.sub(r"\1", " ".join(title[1].split()))


def sentence_of(kind: FigureKind) -> str:
    """Return the first sentence after a caption's title, without markup; "" if there is none."""
    paragraph = _TITLE.sub("", caption_of(kind), count=1).strip().partition("\n\n")[0]
    text = " ".join(re.sub(r"(?<!\\)(?:``|\*)", "", paragraph).split())
    return _SENTENCE_ENDS.split(_ESCAPE.sub(r"\1", text))[0]


def in_markdown(text: str) -> str:
    """Convert a caption to Markdown; only literals and links are written differently."""
    return _LINK.sub(r"[\1](\2)", _LITERAL.sub(r"`\1`", text))
