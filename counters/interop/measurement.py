"""Counters as measurements of OpenDP: a function with a privacy map, which OpenDP's combinators compose."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.accounting.guarantee import (
    Guarantee,
    float_down,
    float_up,
    guarantee_of,
)
from trilift.lift.checks import fail, integer
from trilift.lift.errors import MissingExtraError, ParameterError

__all__ = ["make_measurement"]

_NUMBERS = ("Counter", "GaussianCounter", "BiasedCounter")
_TURNSTILE = ("DistinctCounter", "SecondMoment")


def _library() -> Any:
    try:
        import opendp.prelude
    except ImportError:
        raise MissingExtraError(
            "measurements need the library OpenDP: pip install 'trilift[opendp]'"
        ) from None
    return opendp.prelude


def make_measurement(make: Callable[[], Any], *, size: int | None = None) -> Any:
    """Return an OpenDP measurement: a data set goes in, all released values come out.

    Every invocation takes a new counter from ``make``, with a key of its own, gives it the whole data set and
    returns what ``extend`` returns as a list. The privacy map is that of the counter's guarantee, rounded up:
    epsilon in proportion to the rows that change for pure counters, rho with their square for Gaussian ones,
    group privacy for (epsilon, delta).

    =================  ==========================================  ===========================
    counter            input domain and metric                     output measure
    =================  ==========================================  ===========================
    numbers            ``size`` numbers within the bounds, rows    ``max_divergence`` (pure),
                       that change (``hamming_distance``)          ``zero_concentrated_``
    edit, turnstile    a domain and a distance of trilift's own:   ``divergence`` (Gaussian),
                       insertions, or events that change           ``approximate``
    =================  ==========================================  ===========================

    OpenDP must be told to trust it: ``dp.enable_features("contrib", "honest-but-curious")``. What is trusted
    is this library: that the counter keeps its guarantee.

    Args:
        make: a function of no arguments that makes a counter with fresh noise, always of the same guarantee,
            such as ``lambda: Counter(1, horizon=1000)``.
        size: number of rows, which is public; the counter's horizon when left out. For an
            :class:`~trilift.counters.edit.padding.EndingCounter`, which hides it, the largest number.

    Raises:
        ParameterError: no such function, no size, or a counter of vectors.
        MissingExtraError: OpenDP is not installed.
        OpenDPException: its features are not enabled.

    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> from trilift import Counter
    >>> late = make_measurement(lambda: Counter(Fraction(1, 2), horizon=4))
    >>> len(late([1, 0, 1, 1])), late.map(d_in=1), late.map(d_in=3)
    (4, 0.5, 1.5)
    """
    dp = _library()
    if not callable(make):
        raise fail("make", "a function that makes a counter", make)
    counter = make()
    guarantee = guarantee_of(counter)
    horizon = getattr(counter, "horizon", None)  # streams that end have none
    rows = horizon if size is None else integer("size", size, minimum=1)
    if rows is None:
        raise ParameterError("size must be given: the counter has no horizon")
    if horizon is not None and rows > horizon:
        raise ParameterError(f"size must be at most the horizon {horizon}, got {rows}")
    domain, metric = _space(dp, counter, guarantee, rows)
    measure, privacy_map = _map(dp, guarantee)

    def function(data: Any) -> Any:
        fresh = make()
        if guarantee_of(fresh) != guarantee:
            raise ParameterError("make returned a counter with another guarantee")
        return _released(fresh, data)

    return dp.m.make_user_measurement(
        input_domain=domain,
        input_metric=metric,
        output_measure=measure,
        function=function,
        privacy_map=privacy_map,
    )


def _space(dp: Any, counter: Any, guarantee: Guarantee, rows: int) -> tuple[Any, Any]:
    """Return the domain of data sets, and the distance between them."""
    name = type(counter).__name__
    if name in _NUMBERS:
        setup = counter.setup
        if setup.dimension is not None:
            raise ParameterError("OpenDP's vectors hold numbers: a counter of vectors makes no measurement")
        unit = Fraction(1, 1 << setup.rule.places)
        low, high = setup.rule.low * unit, setup.rule.high * unit
        if setup.rule.places == 0:
            atom = dp.atom_domain(T="i64", bounds=(int(low), int(high)))
        else:
            atom = dp.atom_domain(T="f64", bounds=(float_up(low), float_down(high)), nan=False)
        return dp.vector_domain(atom, size=rows), dp.hamming_distance()
    turnstile, ending = name in _TURNSTILE, name == "EndingCounter"
    what = "events (item, sign)" if turnstile else "inputs or BOT (None)"

    def member(data: Any) -> bool:
        return isinstance(data, list) and (len(data) <= rows if ending else len(data) == rows)

    domain = dp.user_domain(f"trilift: {'at most ' if ending else ''}{rows} {what}", member)
    changes = "events that change" if turnstile else "inputs that change"
    if guarantee.neighbours != "rows":
        changes = f"insertions ({guarantee.neighbours})"
    return domain, dp.user_distance(f"trilift: {changes}")


def _map(dp: Any, guarantee: Guarantee) -> tuple[Any, Callable[[Any], Any]]:
    """Return the output measure, and the privacy map into it."""
    if guarantee.form == "pure":
        return dp.max_divergence(), lambda d: float_up(_cost(guarantee, d).epsilon or Fraction(0))
    if guarantee.form == "gaussian":
        return (
            dp.zero_concentrated_divergence(),
            lambda d: float_up(_cost(guarantee, d).rho or Fraction(0)),
        )

    def pair(d: Any) -> tuple[float, float]:
        cost = _cost(guarantee, d)
        return float_up(cost.epsilon or Fraction(0)), float_up(cost.delta or Fraction(0))

    return dp.approximate(dp.max_divergence()), pair


def _cost(guarantee: Guarantee, changes: Any) -> Guarantee:
    """Return the guarantee for so many changes; none cost nothing."""
    count = integer("d_in", changes, minimum=0)
    if count == 0:
        nothing = None if guarantee.mu_sq is None else Fraction(0)
        return Guarantee(guarantee.form, guarantee.neighbours, 1, Fraction(0), Fraction(0), nothing)
    return guarantee.scaled(count)


def _released(counter: Any, data: Any) -> list[Any]:
    if type(counter).__name__ in _TURNSTILE:
        items, signs = [item for item, _ in data], [sign for _, sign in data]
        return list(counter.extend(items, signs))
    values = counter.extend(np.asarray(data) if data and type(counter).__name__ in _NUMBERS else list(data))
    shown: list[Any] = values.tolist()
    if type(counter).__name__ == "EndingCounter":
        shown += counter.finish().tolist()
    return shown
