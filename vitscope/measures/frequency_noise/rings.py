"""Rings of frequencies in the Fourier plane: their arithmetic, which needs no numpy."""

from fractions import Fraction

from vitscope.errors import VitscopeError


def sides(frequency: float, width: float, size: int) -> tuple[int, int]:
    """Return the sides of the two squares that a ring lies between, the outer and the inner one.

    The ring reaches from `frequency` minus `width` to `frequency` plus `width`, in units of pi, in
    the plane of `size` times `size` components. The numbers count as the decimals that they are
    written as: from 0.1 to 0.9 and 0.1 more is 1, whatever their nearest binary fractions add to.
    """
    if size % 2:
        raise VitscopeError(
            f"analysis.frequency_noise: a ring of frequencies needs images of an even size and "
            f"these have {size} pixels: set image_size to {size - 1}."
        )
    middle, half = Fraction(str(frequency)), Fraction(str(width))
    outer, inner = _side(middle + half, size), _side(middle - half, size)
    if outer == inner:
        # Twice the width is then a step of the plane, and at frequency 0 the width is.
        enough = -(-20_000 // size) / 10_000
        raise VitscopeError(
            f"analysis.frequency_noise: the ring at {frequency:g} pi with a width of {width:g} pi "
            f"holds no Fourier component of images of {size} pixels: raise width to {enough:g} or "
            f"leave the frequency out."
        )
    return outer, inner


def _side(border: Fraction, size: int) -> int:
    """Return the side of the square within a border, which reaches from 0 to the whole plane."""
    return min(max(2 * int(border * size / 2), 0), size)
