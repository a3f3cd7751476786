"""Making and continuing the counters of ``trilift count`` whose neighbours are swaps."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from trilift.lift.errors import HorizonError, ParameterError, StateError

__all__ = ["check_scalar", "lasting", "load_plain", "new_gaussian", "new_plain", "saved_plain"]


def lasting(name: str) -> str:
    """Return an artifact's name as a state keeps it: files by their whole path, good from everywhere."""
    return str(Path(name).resolve()) if name.endswith(".npz") else name


def new_plain(given: dict[str, Any]) -> Any:
    """Make a counter of pure differential privacy from checked options.

    Raises:
        ParameterError: an option that is not acceptable.
        HorizonError: a chain that does not reach.
        CertificateError: a claim of an artifact of one's own is false.
    """
    from trilift.counters import Counter

    arguments = {name: value for name, value in given.items() if name not in ("neighbours", "unbounded")}
    names = arguments.get("chain", [])
    horizon = arguments.setdefault("horizon", None)
    if horizon is None:
        return Counter(arguments.pop("epsilon"), **arguments)
    remedy = (
        "add a direct-... artifact as the top (see: trilift plan "
        f"-n {horizon} -e {given['epsilon']} {' '.join(f'--artifact {name}' for name in names)})"
    )
    _check_chain(names, remedy)
    try:
        return Counter(arguments.pop("epsilon"), **arguments)
    except HorizonError as error:
        raise HorizonError(f"{error}: {remedy}" if names else str(error)) from None


def new_gaussian(given: dict[str, Any]) -> Any:
    """Make a counter with Gaussian noise from checked options.

    Raises:
        ParameterError: an option that is not acceptable.
        HorizonError: a horizon beyond what the mechanism serves.
    """
    from trilift.counters import GaussianCounter

    arguments = {name: value for name, value in given.items() if name not in ("neighbours", "unbounded")}
    return GaussianCounter(arguments.pop("epsilon"), arguments.pop("delta"), **arguments)


def _check_chain(names: list[str], remedy: str) -> None:
    """Refuse artifacts that are not proved: if T = L R fails, so does what the noise is to guarantee."""
    from trilift.arguments import readable_artifact
    from trilift.verify import require_proof

    kinds = []
    for name in names:
        path, claims = readable_artifact(name)
        require_proof(path)
        kinds.append(claims.kind)
    if kinds and kinds[-1] != "direct":
        raise ParameterError(f"--chain {names[-1]}: the last one must be a plain factorisation: {remedy}")


def load_plain(state: Path, kind: str) -> Any:
    """Load a counter of numbers.

    Args:
        state: the file.
        kind: name of the class, as the file says.

    Raises:
        ArtifactFormatError, ReplayError: see :meth:`trilift.counters.Counter.load`.
    """
    from trilift.counters import Counter, GaussianCounter

    loader: Any = GaussianCounter if kind == GaussianCounter.__name__ else Counter
    return loader.load(state)


def check_scalar(counter: Any, state: Path) -> None:
    """Check that a counter counts numbers.

    Raises:
        StateError: it counts vectors.
    """
    if counter.setup.dimension is not None:
        raise StateError(f"{state} is a counter of vectors: continue it from Python")


def saved_plain(counter: Any) -> dict[str, Any]:
    """Return the options that a loaded counter was made with."""
    setup = counter.setup
    unit = Fraction(1, 1 << setup.rule.places)
    gaussian = {} if not hasattr(counter, "delta") else {"delta": counter.delta, "mechanism": setup.mechanism}
    return {
        "neighbours": "swap",
        "epsilon": setup.epsilon,
        **gaussian,
        "horizon": setup.horizon,
        "unbounded": setup.horizon is None,
        "objective": setup.objective,
        "bounds": (setup.rule.low * unit, setup.rule.high * unit),
        "clip": setup.rule.clip,
        "resolution": unit,
        "max_contributions": setup.max_contributions,
        "chain": None if setup.names is None else list(setup.names),
        "postprocess": setup.postprocess,
    }
