"""The public parameters of a biased counter: a counter beneath it, and how seldom the maximum may bind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.epoch_mechanisms import ChainEpochs, EpochRecord
from trilift.counters.gaussian_setup import GaussianSetup, make_gaussian
from trilift.counters.levels import SavedLevel
from trilift.counters.setup import Setup, make_setup
from trilift.counters.statement import ANY_LENGTH, number
from trilift.counters.streamed import StreamSetup
from trilift.counters.unbounded import UnboundedSetup, make_unbounded
from trilift.lift.checks import choice, fail, rational, written
from trilift.lift.errors import ParameterError
from trilift.stream.process import NoiseProcess

__all__ = ["BASES", "BIASED_FIELDS", "BiasedSetup", "make_biased"]

BASES = ("laplace", "gaussian")
BIASED_FIELDS = ("epsilon", "delta", "ln_eta", "base", "mu", "mechanism", "objective", "growth", "chain")

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_SQUARES = (
    0.6079271  # a little below 6 / pi^2: the failures 6 / (pi t)^2 add up to less than 1 over all steps
)


@dataclass(frozen=True, kw_only=True)
class BiasedSetup(StreamSetup):
    """Everything about a biased counter that is public and fixed.

    Attributes:
        epsilon: of the whole, and of the counter beneath.
        delta: of the whole.
        base: "laplace" or "gaussian".
        beneath: the setup of the counter beneath: (epsilon, 0), or (epsilon, delta / 2).
        ln_eta: a rational; with probability at most e^ln_eta the maximum binds at any step.
        ln_spent: a rational at least the logarithm of the whole delta that is spent.
    """

    epsilon: Fraction
    delta: Fraction
    base: str
    beneath: Setup | UnboundedSetup | GaussianSetup
    ln_eta: Fraction
    ln_spent: Fraction

    @property
    def change(self) -> Fraction:
        """As the counter beneath."""
        return self.beneath.change

    @property
    def names(self) -> tuple[str, ...] | None:
        """Artifacts of a bounded chain beneath."""
        return self.beneath.names

    @property
    def objective(self) -> str:
        """What chains are good for."""
        return self.beneath.objective

    @property
    def layout(self) -> Any:
        """The epochs of a counter without a horizon."""
        if isinstance(self.beneath, Setup):
            raise ParameterError("a counter with a horizon has no epochs")
        return self.beneath.layout

    def processes(
        self, *, key: bytes, stream_id: bytes, purposes: list[str], epochs: Mapping[int, EpochRecord]
    ) -> tuple[list[NoiseProcess], ChainEpochs | None]:
        """Return the noise of the counter beneath."""
        biased = [f"biased/{purpose}" for purpose in purposes]
        return self.beneath.processes(key=key, stream_id=stream_id, purposes=biased, epochs=epochs)

    def levels(self) -> tuple[SavedLevel, ...]:
        """Return what a state keeps of a bounded chain."""
        return self.beneath.levels()

    def ln_failures(self, steps: Any) -> FloatArray:
        """Return the logarithm of every 0-based step's part of eta, per coordinate; they add up to eta."""
        share = float(self.ln_eta) - 1e-9 * abs(float(self.ln_eta)) - float(np.log(self.width))
        if self.horizon is not None:
            return np.full(np.shape(steps), share - float(np.log(self.horizon)))
        t = np.asarray(steps, dtype=np.float64) + 1.0
        return np.asarray(share + np.log(_SQUARES) - 2.0 * np.log(t))

    def own_record(self) -> dict[str, Any]:
        """Return what a state keeps besides the inputs' parameters."""
        own = self.beneath.own_record()
        fields: dict[str, Any] = dict.fromkeys(BIASED_FIELDS)
        fields |= {
            name: own[name] for name in ("mu", "mechanism", "objective", "growth", "chain") if name in own
        }
        return fields | {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "ln_eta": str(self.ln_eta),
            "base": self.base,
        }

    def ledger_text(self) -> str:
        """Return where the budget goes, as text: deltas by their logarithms, rounded up."""
        lines = [f"epsilon asked {self.epsilon}, delta asked {self.delta}"]
        if isinstance(self.beneath, GaussianSetup):
            lines.append(
                f"  counter beneath: epsilon {self.epsilon}, ln delta {float(self.beneath.ln_spent):.9g}"
            )
        else:
            lines.append(f"  counter beneath: epsilon {self.epsilon}, delta 0")
        lines += [
            f"  maximum: (1 + e^epsilon) eta with ln eta = {float(self.ln_eta):.9g}",
            f"  together: ln delta at most {float(self.ln_spent):.9g} (proved, balls)",
        ]
        return "\n".join(lines)

    def statement_lines(self) -> list[str]:
        """Return guarantee, mechanism, composition and theorem, in words."""
        return [
            "Guarantee: all released values together are (epsilon, delta)-differentially private with"
            " epsilon ="
            f" {number(self.epsilon)} and delta = {number(self.delta)}, for adaptively chosen inputs too."
            " No value"
            " is ever below the true sum.",
            *([ANY_LENGTH] if self.horizon is None else []),
            f"Mechanism: a counter with {self.base} noise, raised at every step by a public amount, and"
            " its maximum"
            " with the true sum, which binds with probability at most eta over all steps together.",
            "Composition: (epsilon, delta') of the counter beneath, and (1 + e^epsilon) eta for the maximum.",
            "Theorem: biased counter (Andersson, Chaturvedi, Henzinger, Safavi, BCC), eta with the factor"
            " 1 + e^epsilon.",
            self.ledger_text(),
        ]


def make_biased(
    epsilon: Any,
    *,
    delta: Any,
    base: Any,
    horizon: Any,
    mechanism: Any,
    objective: Any,
    growth: Any,
    chain: Any,
    mu: Fraction | None = None,
    ln_eta: Fraction | None = None,
    levels: Sequence[SavedLevel] | None = None,
    **shared: Any,
) -> BiasedSetup:
    """Check the arguments of a biased counter: see :class:`trilift.counters.BiasedCounter`.

    With saved numbers it is the saved mechanism, and its budget is proved again.

    Raises:
        ParameterError: an argument that is not acceptable, or saved numbers that cost more than delta.
    """
    from trilift.stream.gdp import ln_of, ln_sum

    wanted = written("delta", delta, above=0)
    if wanted >= 1:
        raise fail("delta", "a number between 0 and 1", delta)
    choice("base", base, BASES)
    beneath: Setup | UnboundedSetup | GaussianSetup
    if base == "gaussian":
        beneath = make_gaussian(
            epsilon,
            delta=wanted / 2,
            horizon=horizon,
            mechanism="chain" if mechanism is None else mechanism,
            objective=objective,
            growth=growth,
            chain=chain,
            mu=mu,
            levels=levels,
            **shared,
        )
    elif mechanism is not None:
        raise ParameterError("mechanism is for base='gaussian'")
    elif horizon is None:
        if chain is not None:
            raise ParameterError("chain needs a horizon: without one, every epoch has a chain of its own")
        growth = "tapered" if growth is None else growth
        beneath = make_unbounded(epsilon, growth=growth, objective=objective, **shared)
    else:
        if growth is not None:
            raise ParameterError("growth is for counters without a horizon")
        beneath = make_setup(
            epsilon, horizon=horizon, objective=objective, chain=chain, levels=levels, **shared
        )
    factor = ln_sum([0, beneath.epsilon])[1]  # ln(1 + e^epsilon)
    left = ln_of(wanted if base == "laplace" else wanted / 2)[0]
    eta = left - factor if ln_eta is None else rational("ln_eta", ln_eta)
    parts = [factor + eta]
    if isinstance(beneath, GaussianSetup):
        parts.append(beneath.ln_spent)
    if parts[0] > left:
        raise ParameterError("ln_eta spends more than delta")
    # what is spent is at most delta, so the upper end of its logarithm bounds it too
    spent = parts[0] if len(parts) == 1 else min(ln_sum(parts)[1], ln_of(wanted)[1])
    return BiasedSetup(
        **{name: getattr(beneath, name) for name in StreamSetup.__dataclass_fields__},
        epsilon=beneath.epsilon,
        delta=wanted,
        base=base,
        beneath=beneath,
        ln_eta=eta,
        ln_spent=spent,
    )
