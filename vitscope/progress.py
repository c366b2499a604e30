"""Say now and then how far a long job is, and how long it will still take."""

from time import monotonic

from vitscope.web.downloads import SECONDS_BETWEEN_NEWS, Say


def _duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _rate(done: float, seconds: float, unit: str) -> str:
    """Return a rate per second, or the time that one takes where that is longer."""
    if not done or not seconds:
        return ""
    if done >= seconds:
        return f", {done / seconds:.3g} {unit} per s"
    return f", {seconds / done:.3g} s each"


class Progress:
    """Count what is done of `total`, and say it: at most a line every few seconds, and the last.

    `unit` is what is counted, in the plural.
    """

    def __init__(self, total: int, unit: str, say: Say = print) -> None:
        self._total, self._unit, self._say = total, unit, say
        self._done = 0
        self._start = self._last = monotonic()

    def advance(self, count: int = 1) -> None:
        """Count what was just done."""
        self._done += count
        now = monotonic()
        finished = self._done >= self._total
        if not finished and now - self._last < SECONDS_BETWEEN_NEWS:
            return
        self._last = now
        seconds = now - self._start
        left = (
            f"took {_duration(seconds)}"
            if finished
            else f"about {_duration(seconds * (self._total - self._done) / self._done)} left"
        )
        rate = _rate(self._done, seconds, self._unit)
        self._say(f"{self._done} of {self._total} {self._unit}{rate}, {left}")
