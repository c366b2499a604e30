from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import interpolate

from vitscope.claims.intervals import RESAMPLED
from vitscope.errors import VitscopeError, quoted
from vitscope.files.arrays import Array
from vitscope.measures.attention_tokens import fuse_heads
from vitscope.measures.bootstrap import spread
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.rollout import Rollout
from vitscope.measures.shown import images_shown, name_shown_class
from vitscope.networks.attention.finding import find_attention, list_attention_doubts
from vitscope.networks.attention.reading import Attention, Weights, attending
from vitscope.networks.finding.capture import capturing_tensors
from vitscope.networks.finding.cut_points import CutPoint, named_cut_point
from vitscope.networks.finding.operations import Args, Kwargs, OperationMode
from vitscope.networks.running.predictions import predict_among

_LEAVE_OUT = "leave class_maps, deletion and insertion out."


class Map(NamedTuple):
    """A map (H, W) of one method, divided by its largest value; `of` says where it is read."""

    method: str
    of: str
    values: Tensor


class _GradientEdges(OperationMode):  # type: ignore[no-untyped-call]
    """Finds the edges of tensors in the autograd graph, before anything overwrites the tensors.

    A tensor that an operation returns enters the graph only when the operation has ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.edges: dict[Any, GradientEdge] = {}
        self._waiting: list[tuple[Any, Tensor]] = []

    def keep_edge(self, key: Any, tensor: Tensor) -> None:
        """Look up the edge of a tensor when the next operation begins."""
        self._waiting.append((key, tensor))

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        self.find_edges()
        return function(*args, **kwargs)

    def find_edges(self) -> None:
        for key, tensor in self._waiting:
            if tensor.requires_grad:
                self.edges[key] = get_gradient_edge(tensor)
        self._waiting.clear()


class Passed(NamedTuple):
    """The values of one image at cut points and attentions, each with the gradient of the score.

    The gradient is None for a value computed without gradients, and zero if the score does not
    depend on the value.
    """

    logits: Tensor
    number: int
    streams: dict[int, tuple[Tensor, Tensor | None]]
    attention: dict[int, tuple[Weights, Tensor | None]]


# The weights of a feature map (C, H, W), from the gradient of the score with respect to it.
_CAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "grad_cam": lambda gradient: gradient.mean((1, 2), keepdim=True),
    "layer_cam": torch.relu,
}


def _activation_maps(
    point: CutPoint, stream: Tensor, gradient: Tensor | None
) -> Iterator[tuple[str, Tensor]]:
    """Yield each CAM (H, W) of one image at a cut point, with the name of its method."""
    gradient = torch.zeros_like(stream) if gradient is None else gradient
    maps, back = (point.layout.to_nchw(each)[0].double() for each in (stream, gradient))
    for method, weigh in _CAMS.items():
        values = (weigh(back) * maps).sum(0).relu()
        yield method, values / values.max().clamp_min(torch.finfo(values.dtype).tiny)


class Explainer:
    """Explains the predictions of a classifier, one image at a time.

    `cut_point` is the cut point whose maps Grad-CAM and LayerCAM weight: a name, an index, or None
    for the last one that has more than one position and affects the class score of the first image.
    """

    def __init__(
        self, given: OnModel, cut_point: str | int | None = None, of_class: int | None = None
    ) -> None:
        self._given, self._class = given, of_class
        self._network = given.network.eval().to(given.device).requires_grad_(False)
        self._point = None
        if cut_point is not None:
            self._point = named_cut_point("class_maps", given.model, given.cut_points, cut_point)
        self._outputs = given.images.outputs
        classes = len(self._outputs) if self._outputs else given.settings["classes"]
        if of_class is not None and of_class >= classes:
            raise VitscopeError(
                f"analysis.class_maps.of_class: found {of_class}, allowed for "
                f"models.{given.model}, which tells {classes} classes apart: 0 to {classes - 1}, "
                f"or null."
            )
        found = find_attention(given.network, given.settings, given.cut_points)
        if found.refused:
            given.warnings.extend(
                f"models.{given.model}: {doubt}" for doubt in list_attention_doubts(found)
            )
        self._attentions = found.attentions
        both = (True, False) if found.attentions else ()
        self._rollouts = [Rollout(found.attentions, of_relevance) for of_relevance in both]

    def _pass_back(
        self, image: Tensor, points: Sequence[CutPoint], attentions: Sequence[Attention]
    ) -> Passed:
        """Pass one image forward, and the score of the explained class backward."""
        network = self._network
        streams: dict[int, Tensor] = {}
        weights: dict[int, Weights] = {}
        places = _GradientEdges()

        def keep_stream(index: int, tensor: Tensor) -> None:
            streams[index] = tensor.detach().clone()
            places.keep_edge(("stream", index), tensor)

        def keep_attention(index: int, found: Weights) -> None:
            weights[index] = found
            if found.computed is not None:
                weights[index] = found.of(found.computed.detach())
                places.keep_edge(("attention", index), found.computed)

        image = image.detach().requires_grad_()
        # Compute attention step by step: fused kernels give no gradient of the attention weights.
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            with (
                capturing_tensors(network, points, keep_stream),
                attending(network, attentions, keep_attention),
                places,
            ):
                logits = network(image)
            places.find_edges()
            if not logits.requires_grad:
                raise VitscopeError(
                    f"The {type(network).__name__} computes its logits without gradients, so that "
                    f"nothing tells what they depend on: {_LEAVE_OUT}"
                )
            scores = predict_among(logits, self._outputs)
            number = int(scores[0].argmax()) if self._class is None else self._class
            edges = [*places.edges.values()]
            back = torch.autograd.grad(
                scores[0, number], edges, allow_unused=True, materialize_grads=True
            )
        gradients = dict(zip(places.edges, back, strict=True))
        return Passed(
            logits.detach(),
            number,
            {n: (each, gradients.get(("stream", n))) for n, each in streams.items()},
            {n: (each, gradients.get(("attention", n))) for n, each in weights.items()},
        )

    def _find_point(self, image: Tensor) -> CutPoint:
        """Return the last cut point with more than one position that affects the class score."""
        points = self._given.cut_points
        streams = self._pass_back(image, points, []).streams
        for index in reversed(streams):
            gradient, layout = streams[index][1], points[index].layout
            if gradient is not None:
                maps = layout.to_nchw(gradient)
                if maps[0, 0].numel() > 1 and bool(maps.any()):
                    return points[index]
        raise VitscopeError(
            f"models.{self._given.model}: the score of a class depends on no cut point of more "
            f"than one position, so that there is no map of it: {_LEAVE_OUT}"
        )

    def explain(self, image: Tensor) -> tuple[Tensor, int, list[Map]]:
        """Return a network's output for an image, the class that is explained, and its maps."""
        point = self._point = self._point or self._find_point(image)
        passed = self._pass_back(image, [point], self._attentions)
        self._refuse_relevance(passed)
        cams = _activation_maps(point, *passed.streams[0])
        maps = [Map(method, point.name, values) for method, values in cams]
        maps += [self._roll_out(rollout, passed) for rollout in self._rollouts]
        return passed.logits, passed.number, maps

    @torch.inference_mode()
    def probabilities(self, views: Tensor, number: int) -> Array:
        """Return the probability of class `number` for each view."""
        found = []
        for batch in torch.split(views, self._given.batch_size):
            logits = predict_among(self._network(batch), self._outputs)
            found.append(logits.double().softmax(1)[:, number].cpu().numpy())
        return np.concatenate(found)

    def _roll_out(self, rollout: Rollout, passed: Passed) -> Map:
        """Return the map of a rollout of attention or, with `of_relevance`, of its relevance.

        Relevance is the positive part of the product of attention and its gradient.
        """
        rollout.begin()
        for number, (weights, gradient) in passed.attention.items():
            if rollout.of_relevance:
                assert weights.computed is not None
                assert gradient is not None
                weights = weights.of((weights.computed * gradient).relu())
            rollout.add(number, fuse_heads(weights, "mean")[0])
        of, values = rollout.result()
        method = "gradient_rollout" if rollout.of_relevance else "rollout"
        return Map(method, of, values.double().reshape(rollout.grid))

    def _refuse_relevance(self, passed: Passed) -> None:
        """Drop the rollout of relevance, with a warning, if some attention has no gradient."""
        without = [n for n, (_, gradient) in passed.attention.items() if gradient is None]
        if without and self._rollouts[0].of_relevance:
            del self._rollouts[0]
            self._given.warnings.append(
                f"models.{self._given.model}: the attention of "
                f"{quoted(self._attentions[without[0]].name)} is computed in one operation that "
                f"has no gradient by it, so that there is no gradient rollout."
            )


def measure_class_maps(given: OnModel, explained: Given, chosen: Given) -> pd.DataFrame:
    explainer = Explainer(given, **explained)
    found = []
    for row, picture, image in images_shown(given, **chosen):
        logits, number, maps = explainer.explain(image)
        facts = {"model": given.model, "image": row, "picture": picture}
        facts |= name_shown_class(given, logits, number)
        for method, of, values in maps:
            height, width = values.shape
            shape = {"method": method, "of": of, "height": height, "width": width}
            found.append({**facts, **shape, "values": values.flatten().tolist()})
    return pd.DataFrame(found)


# Maps a method and a change to the class probabilities of an image by step, (steps + 1,).
Curves = dict[tuple[str, str], Array]


def order_pixels(values: Tensor, image: Tensor, among_equals: Array) -> Array:
    """Return pixel indices by descending map value; `among_equals` orders pixels of equal value."""
    resized = interpolate(values.double()[None, None], image.shape[-2:], mode="bilinear")
    return np.lexsort((among_equals, -resized.flatten().cpu().numpy()))


def change_pixels_by_class_map(before: Tensor, after: Tensor, order: Array, steps: int) -> Tensor:
    """Return views (steps + 1, C, H, W) in which ever more pixels of `before` turn into `after`."""
    rank = torch.from_numpy(order).argsort()
    changed = rank < (len(order) * torch.arange(steps + 1) // steps)[:, None]
    mask = changed.view(steps + 1, 1, *before.shape[-2:]).to(before.device)
    return torch.where(mask, after, before)


def blur_image(image: Tensor, share: float) -> Tensor:
    """Blur an image (1, C, H, W) with a Gaussian of sigma `share` times its shorter side."""
    sigma = share * min(image.shape[-2:])
    blurred = gaussian_filter(image.cpu().numpy(), (0, 0, sigma, sigma), mode="nearest")
    return torch.from_numpy(blurred).to(image)


def faithfulness_curves(
    explainer: Explainer, row: int, image: Tensor, steps: int, blur: float, seed: int
) -> Curves:
    """Return the curves of the image in `row` of the split, for each method and each change."""
    _, number, maps = explainer.explain(image)
    generator = np.random.default_rng([seed, row])
    among_equals = generator.random(image[0, 0].numel())
    values = {each.method: each.values for each in maps}
    values["random"] = torch.from_numpy(generator.random(values["grad_cam"].shape))
    black, blurred = torch.zeros_like(image), blur_image(image, blur)
    curves = {}
    for method, of_method in values.items():
        order = order_pixels(of_method, image, among_equals)
        for change, ends in {"deleted": (image, black), "inserted": (blurred, image)}.items():
            views = change_pixels_by_class_map(*ends, order, steps)
            curves[method, change] = explainer.probabilities(views, number)
    return curves


def faithfulness_table(
    model: str, curves: Mapping[tuple[str, str], Array], bootstrap: Given
) -> pd.DataFrame:
    """Build a model's table from `curves`, each of which holds all images: (N, steps + 1)."""
    tables = []
    for (method, change), found in curves.items():
        shares = np.linspace(0, 1, found.shape[1])
        areas = np.trapezoid(found, shares, axis=1)[:, None]
        ends = spread(np.hstack([found, areas]), **bootstrap)
        columns = {
            "model": model,
            "method": method,
            "change": change,
            "share": shares,
            "images": len(found),
            "probability": found.mean(axis=0),
            "ci_low": ends.low[:-1],
            "ci_high": ends.high[:-1],
            "area": areas.mean(),
            "area_low": ends.low[-1],
            "area_high": ends.high[-1],
            f"area{RESAMPLED}": [ends.kept(-1)] * len(shares),
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def measure_faithfulness(
    given: OnModel, explained: Given, chosen: Given, changed: Given, bootstrap: Given
) -> pd.DataFrame:
    explainer, shown = Explainer(given, **explained), images_shown(given, **chosen)
    found = [faithfulness_curves(explainer, row, image, **changed) for row, _, image in shown]
    curves = {key: np.stack([of_image[key] for of_image in found]) for key in found[-1]}
    return faithfulness_table(given.model, curves, bootstrap)
