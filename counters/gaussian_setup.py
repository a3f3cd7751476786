"""The public parameters of a Gaussian counter, and the mechanism they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.counters.defaults import chain_of, default_names
from trilift.counters.epoch_mechanisms import ChainEpochs, EpochRecord, gaussian_epochs
from trilift.counters.levels import SavedLevel, restored_chain, saved_levels
from trilift.counters.statement import ANY_LENGTH, number
from trilift.counters.streamed import StreamSetup, checked_epsilon, make_stream
from trilift.lift import Chain
from trilift.lift.budget import OBJECTIVES, horizon_scales
from trilift.lift.checks import choice, fail, rational, written
from trilift.lift.errors import ParameterError
from trilift.stream.epoch_layout import GROWTHS, Layout
from trilift.stream.process import NoiseProcess

__all__ = ["GAUSSIAN_FIELDS", "MECHANISMS", "GaussianSetup", "make_gaussian"]

MECHANISMS = ("chain", "toeplitz")
GAUSSIAN_FIELDS = ("epsilon", "delta", "mu", "mechanism", "objective", "growth", "chain")


@dataclass(frozen=True, kw_only=True)
class GaussianSetup(StreamSetup):
    """Everything about a Gaussian counter that is public and fixed.

    Attributes:
        epsilon: as asked for.
        delta: as asked for.
        mu: the whole is mu-GDP; delta(epsilon, mu) <= delta is proved when the setup is made.
        ln_spent: a rational at least ln delta(epsilon, mu).
        mechanism: "chain" or "toeplitz".
        objective: "max" or "mean", what chains are good for.
        growth: how epochs grow, None with a horizon.
        names: artifacts of a bounded chain, finest first; None without one, or for a Chain object.
        chain: the chain, None without one.
        ledger: the split of mu^2 over its levels, None without one.

    The others are those of :class:`trilift.counters.streamed.StreamSetup`.
    """

    epsilon: Fraction
    delta: Fraction
    mu: Fraction
    ln_spent: Fraction
    mechanism: str
    objective: str
    growth: str | None
    names: tuple[str, ...] | None
    chain: Chain | None
    ledger: Any

    @property
    def change(self) -> Fraction:
        """By how much the data of one person can change, coordinates added up in squares."""
        return self.change_l2

    @property
    def layout(self) -> Layout:
        """The epochs of a counter without a horizon."""
        if self.growth is None:
            raise ParameterError("a counter with a horizon has no epochs")
        return Layout.of(self.growth, law="gaussian")

    def processes(
        self, *, key: bytes, stream_id: bytes, purposes: list[str], epochs: Mapping[int, EpochRecord]
    ) -> tuple[list[NoiseProcess], ChainEpochs | None]:
        """Return the noise, one process a purpose, and what makes its epochs if it has any."""
        gamma, places = self.rule.places, self.output_places
        if self.growth is not None:
            noises, made = gaussian_epochs(
                self.mu,
                key=key,
                stream_id=stream_id,
                purposes=purposes,
                growth=self.growth,
                change=self.change,
                objective=self.objective,
                input_places=gamma,
                places=places,
                saved=epochs,
            )
            return list(noises), made
        if self.chain is None:
            from trilift.stream.toeplitz_noise import ToeplitzNoise

            size = self.horizon or 1
            keyed: dict[str, Any] = {"mu": self.mu, "change": self.change, "key": key, "stream_id": stream_id}
            return [
                ToeplitzNoise(size, purpose=purpose, input_places=gamma, places=places, **keyed)
                for purpose in purposes
            ], None
        from trilift.stream.gaussian_noise import GaussianNoise

        bounded = GaussianNoise.family(
            self.chain,
            self.ledger,
            horizon=self.chain.check_horizon(self.horizon or 1),
            key=key,
            stream_id=stream_id,
            purposes=purposes,
            places=places,
        )
        return list(bounded), None

    def levels(self) -> tuple[SavedLevel, ...]:
        """Return what a state keeps of a bounded chain."""
        return () if self.chain is None else saved_levels(self.chain, self.ledger)

    def own_record(self) -> dict[str, Any]:
        """Return what a state keeps besides the inputs' parameters."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "mu": str(self.mu),
            "mechanism": self.mechanism,
            "objective": self.objective,
            "growth": self.growth,
            "chain": None if self.names is None else list(self.names),
        }

    def ledger_text(self) -> str:
        """Return where the budget goes, as text: delta by its logarithm, rounded up."""
        lines = [
            f"epsilon asked {self.epsilon}, delta asked {self.delta}",
            f"mu {float(self.mu):.12g}: delta(epsilon, mu) has logarithm at most {float(self.ln_spent):.9g}"
            " (proved, balls)",
        ]
        if self.ledger is not None:
            lines.append(self.ledger.as_text())
        return "\n".join(lines)

    def statement_lines(self) -> list[str]:
        """Return guarantee, mechanism, composition and theorem, in words."""
        lines = [
            "Guarantee: all released values together are (epsilon, delta)-differentially private with"
            " epsilon = "
            f"{number(self.epsilon)} and delta = {number(self.delta)}, for adaptively chosen inputs too;"
            " they are"
            f" mu-GDP with mu = {float(self.mu):.9g}, hence private for other pairs of epsilon and delta"
            " as well."
        ]
        if self.growth is not None:
            lines += [
                ANY_LENGTH,
                f"Mechanism: epochs of growing length ({self.growth}); in each the Gaussian matrix"
                " mechanism, its sums rounded once and exactly, with a key of its own; factorisations by"
                " shipped artifacts.",
                "Composition: one input lies in one epoch, whose measurements (its total's included) are"
                " mu-GDP"
                " together: squares of mu add up, in exact rational arithmetic; epochs compose in parallel.",
            ]
        else:
            source = "the Toeplitz square root, rounded to a lattice" if self.chain is None else "a chain"
            if self.names is not None:
                source += " of " + " / ".join(self.names)
            lines += [
                "Mechanism: Gaussian matrix mechanism, its sums rounded exactly; factorisation of T_n"
                f" by {source}.",
                "Composition: one release of R x + z, whose squared sensitivity in units of the noise is"
                " at most"
                " mu^2, in exact rational arithmetic; the released values are a function of it.",
            ]
        if self.dimension is not None:
            lines.append("Coordinates have independent noise; their changes add up in squares (l2).")
        return [
            *lines,
            "Theorem: Gaussian differential privacy (Dong, Roth, Su 2022), its delta by Balle and Wang"
            " (2018).",
            self.ledger_text(),
        ]


def make_gaussian(
    epsilon: Any,
    *,
    delta: Any,
    horizon: Any,
    mechanism: Any,
    objective: Any,
    growth: Any,
    chain: Any,
    mu: Fraction | None = None,
    levels: Sequence[SavedLevel] | None = None,
    **shared: Any,
) -> GaussianSetup:
    """Check the arguments of a Gaussian counter: see :class:`trilift.counters.GaussianCounter`.

    With the saved mu and levels of a counter it is their mechanism, and its budget is proved again.

    Raises:
        ParameterError: an argument that is not acceptable, or a saved mu that costs more than delta.
    """
    from trilift.stream.gaussian_ledger import make_gaussian_ledger, restore_gaussian_ledger
    from trilift.stream.gdp import ln_delta_bounds, ln_of, mu_for

    asked = checked_epsilon(epsilon)
    wanted = written("delta", delta, above=0)
    if wanted >= 1:
        raise fail("delta", "a number between 0 and 1", delta)
    choice("mechanism", mechanism, MECHANISMS)
    choice("objective", objective, OBJECTIVES)
    fields = make_stream(horizon=horizon, **shared)
    n, gamma, change = fields["horizon"], fields["rule"].places, StreamSetup(**fields).change_l2
    if n is None:
        growth = choice("growth", "tapered" if growth is None else growth, GROWTHS)
        if mechanism == "toeplitz":
            raise ParameterError("mechanism='toeplitz' needs a horizon; without one, epochs are chains")
    elif growth is not None:
        raise ParameterError("growth is for counters without a horizon")
    if chain is not None and (n is None or mechanism == "toeplitz"):
        raise ParameterError("chain needs a horizon and mechanism='chain'")
    ln_delta = ln_of(wanted)[0]
    budget = mu_for(asked, ln_delta=ln_delta) if mu is None else rational("mu", mu, above=0)
    ln_spent = ln_delta_bounds(asked, mu=budget)[1]
    if ln_spent > ln_delta:
        raise ParameterError("mu spends more than delta")
    names: tuple[str, ...] | None = None
    built, ledger = None, None
    if n is not None and mechanism == "chain":
        options: dict[str, Any] = {"change": change, "input_places": gamma}
        if levels is None:
            names, built = _chain(chain, n, objective)
            built.check_horizon(n)
            scales = horizon_scales(built, n, objective=objective, norm="l2")
            ledger = make_gaussian_ledger(built, budget, scales=scales, **options)
        else:
            names, built = restored_chain(chain, levels, norm="l2")
            built.check_horizon(n)
            pairs = [(level.scale, level.places) for level in levels]
            ledger = restore_gaussian_ledger(built, budget, scales=pairs, **options)
    return GaussianSetup(
        **fields,
        epsilon=asked,
        delta=wanted,
        mu=budget,
        ln_spent=ln_spent,
        mechanism=mechanism,
        objective=objective,
        growth=growth,
        names=names,
        chain=built,
        ledger=ledger,
    )


def _chain(chain: Any, horizon: int, objective: str) -> tuple[tuple[str, ...] | None, Chain]:
    if isinstance(chain, Chain):
        if not chain.is_exact:
            raise ParameterError("chain must be exact: complete and certify the factors first")
        return None, chain
    if chain is None:
        names = default_names(horizon, objective=objective, norm="l2")
    elif isinstance(chain, Sequence) and not isinstance(chain, str):
        names = tuple(chain)
    else:
        raise fail("chain", "a Chain, a sequence of artifact names, or None", chain)
    return names, chain_of(names, norm="l2")
