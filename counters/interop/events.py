"""Counters as events of Google's dp_accounting, so that its accountants compose them with anything else.

An event must dominate the mechanism: every accountant's epsilon for it is one that the counter keeps. Use
accountants with the relation ``ADD_OR_REMOVE_ONE`` (their default): there the sensitivity of an event is the
change itself, and the numbers of a counter are already about the change between its neighbours, whatever
they are. (Under ``REPLACE_ONE`` an accountant doubles the sensitivity by itself.)

- (epsilon, 0): ``DiscreteLaplaceDpEvent(epsilon, 1)``, the geometric mechanism. Its privacy loss is +-epsilon
  and nothing else: it is randomised response, which dominates every mechanism with (epsilon, 0)
  (Kairouz, Oh, Viswanath 2015, theorem 3.1 of "The composition theorem for differential privacy"). Not
  ``LaplaceDpEvent(1/epsilon)``: the noise here is discrete, and a change of one lattice step has a larger
  probability of the extreme loss than continuous noise would have. Accountants by Renyi divergence do not
  know that event; for them it is ``ZCDpEvent(epsilon^2/2)`` (Bun, Steinke 2016, proposition 1.4).
- mu-GDP: ``GaussianDpEvent(1/mu)``, exactly what mu-GDP says.
- (epsilon, delta): no event says it, so it is ``UnsupportedDpEvent``, which accountants refuse, rightly.
  :func:`privacy_loss` returns a privacy loss distribution that does say it, and composes.

Every float is rounded to the side on which the accountant's epsilon is larger.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trilift.counters.accounting.guarantee import (
    Guarantee,
    float_down,
    float_up,
    guarantee_of,
    root_up,
)
from trilift.lift.checks import choice, integer
from trilift.lift.errors import MissingExtraError

__all__ = ["dp_event", "privacy_loss"]

_LARGEST = 700  # e^epsilon is a float up to about here


def _library() -> Any:
    try:
        import dp_accounting
        from dp_accounting import dp_event as events
    except ImportError:
        raise MissingExtraError(
            "events need the library dp_accounting: pip install 'trilift[accounting]'"
        ) from None
    if not hasattr(events, "DiscreteLaplaceDpEvent"):
        raise MissingExtraError("events need a newer dp_accounting: pip install 'trilift[accounting]'")
    return dp_accounting


def dp_event(counter: Any, *, accountant: str = "pld", contributions: int | None = None) -> Any:
    """Return the event of a counter, for dp_accounting's accountants.

    Args:
        counter: a counter of any kind, or a :class:`~trilift.counters.accounting.Guarantee`.
        accountant: "pld" (privacy loss distributions) or "rdp" (Renyi divergences, which know fewer events).
        contributions: rows (or edits) of one person; those that the counter was made for when left out.

    Returns:
        A ``DpEvent``: ``UnsupportedDpEvent`` where none dominates the counter.

    Raises:
        ParameterError: no counter, or a simulated one, which protects nobody.
        MissingExtraError: dp_accounting is not installed.

    >>> from trilift import GaussianCounter
    >>> event = dp_event(GaussianCounter(1, 1e-6, horizon=100))
    >>> type(event).__name__, 4.2 < event.noise_multiplier < 4.3
    ('GaussianDpEvent', True)
    """
    choice("accountant", accountant, ("pld", "rdp"))
    library, guarantee = _library(), _scaled(counter, contributions)
    if guarantee.mu_sq is not None:
        return library.GaussianDpEvent(noise_multiplier=float_down(1 / root_up(guarantee.mu_sq)))
    epsilon = guarantee.epsilon
    if guarantee.form != "pure" or epsilon is None:
        return library.UnsupportedDpEvent()
    if epsilon > _LARGEST:
        return library.NonPrivateDpEvent()
    if accountant == "rdp":
        return library.ZCDpEvent(rho=float_up(epsilon**2 / 2))
    return library.dp_event.DiscreteLaplaceDpEvent(noise_parameter=float_up(epsilon), sensitivity=1)


def privacy_loss(counter: Any, *, contributions: int | None = None, interval: float = 1e-4) -> Any:
    """Return a privacy loss distribution of dp_accounting that dominates a counter of any kind.

    Args:
        counter: as for :func:`dp_event`.
        contributions: likewise.
        interval: width of the discretisation, which rounds up.

    Returns:
        A ``PrivacyLossDistribution``: ``compose``, ``get_epsilon_for_delta``, ``get_delta_for_epsilon``.

    Raises:
        ParameterError, MissingExtraError: as :func:`dp_event`.

    >>> from trilift import SimECC
    >>> loss = privacy_loss(SimECC(1, 1e-6, horizon=1000, rate=0.5))
    >>> 1 <= loss.compose(loss).get_epsilon_for_delta(2.1e-6) <= 2.001
    True
    """
    _library()
    from dp_accounting.pld import common, privacy_loss_distribution

    guarantee = _scaled(counter, contributions)
    if guarantee.mu_sq is not None:
        deviation = float_down(1 / root_up(guarantee.mu_sq))
        return privacy_loss_distribution.from_gaussian_mechanism(
            deviation, value_discretization_interval=interval
        )
    epsilon, delta = guarantee.epsilon or Fraction(0), guarantee.delta or Fraction(0)
    pair = (float_up(epsilon), float_up(delta)) if epsilon <= _LARGEST else (float(_LARGEST), 1.0)
    parameters = common.DifferentialPrivacyParameters(*pair)
    return privacy_loss_distribution.from_privacy_parameters(
        parameters, value_discretization_interval=interval
    )


def _scaled(counter: Any, contributions: int | None) -> Guarantee:
    guarantee = counter if isinstance(counter, Guarantee) else guarantee_of(counter)
    if contributions is None:
        return guarantee
    return guarantee.scaled(integer("contributions", contributions, minimum=1))
