"""Arguments of a counter: each refused with one line that names it."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters import Counter, chain_of
from trilift.lift.errors import HorizonError, ParameterError

Make = Callable[..., Counter]

NO_NUMBERS: list[Any] = [
    np.nan,
    True,
    "1",
    None,
    1j,
    b"1",
    [1],
    np.array(1),
    np.timedelta64(1),
    Decimal("NaN"),
    object(),
]
NO_INTEGERS: list[Any] = [*NO_NUMBERS, 1.0, 0.5, Fraction(3), Decimal(3), np.float64(3)]

BAD: dict[str, list[Any]] = {
    "epsilon": [*NO_NUMBERS, 0, -1, -0.0, np.inf, -np.inf, 1e-320, 1e-300, 1e300, Fraction(-1, 3), 10**5000],
    "horizon": [x for x in NO_INTEGERS if x is not None] + [0, -1],
    "objective": ["Max", "mean ", "", 1, ["max"], b"max"],
    "chain": [
        "stage-max-9",
        5,
        (),
        [],
        (5,),
        ("stage-max-9", None),
        {"a": 1},
        b"ab",
        ("no such thing",),
        object(),
    ],
    "bounds": [
        (1, 0),
        (1, 1),
        (0, np.nan),
        (-np.inf, np.inf),
        (0, 0.5),
        (0, Fraction(1, 3)),
        (0, True),
        ("0", "1"),
        (None, 1),
        (0,),
        (0, 1, 2),
        5,
        None,
        "01",
        {0, 1},
        np.array([0, 1]),
        (0, 2**600),
        (0, 10**5000),
        (0, 1e308),
    ],
    "max_contributions": [*NO_INTEGERS, 0, -1, 31],
    "clip": [0, 1, "yes", None, 1.0],
    "resolution": [*NO_NUMBERS, 0, 2, -1, 0.3, Fraction(1, 3), Fraction(1, 2**257), np.inf],
    "output_resolution": [x for x in NO_NUMBERS if x is not None] + [0, 2, 3, Fraction(1, 3)],
    "dimension": [x for x in NO_INTEGERS if x is not None] + [0, -1, 10**12],
    "norm_bound": [1, 0.5],
    "postprocess": ["x", "", 1, True, ["monotone"]],
    "simulation_seed": [x for x in NO_INTEGERS if x is not None],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(small: Make, name: str) -> None:
    for value in BAD[name]:
        with pytest.raises(ParameterError) as caught:
            small(**{name: value})
        text = str(caught.value)
        assert "\n" not in text, text
        assert len(text) < 250, text
        named = {"epsilon": ("epsilon", "change / epsilon")}.get(name, name)
        known = text.startswith(named if isinstance(named, tuple) else (str(named),))
        assert known or name in ("chain",), text


@pytest.mark.parametrize(
    "value", [x for x in NO_NUMBERS if x is not None] + [0, -1, np.inf, 0.5, Fraction(1, 3)]
)
def test_bad_norm_bounds(small: Make, value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^norm_bound must be"):
        small(norm_bound=value, dimension=2)


@pytest.mark.parametrize(
    "epsilon",
    [
        1,
        0.5,
        1e-6,
        1e6,
        1e-100,
        1e100,
        Fraction(1, 3),
        Decimal("0.1"),
        np.float32(0.1),
        np.int8(3),
        np.longdouble(2),
    ],
)
def test_budgets_of_all_kinds(small: Make, epsilon: Any) -> None:
    counter = small(epsilon)
    whole = isinstance(epsilon, np.integer)
    assert counter.epsilon == Fraction(*(int(epsilon) if whole else epsilon).as_integer_ratio())
    assert counter.spent <= counter.epsilon
    assert isinstance(counter.update(1), int)


def test_equal_arguments_make_equal_mechanisms(small: Make) -> None:
    plain = small(bounds=(0, 1), resolution=0.5).update(1)
    for options in (
        {"bounds": [0, 1.0], "resolution": Fraction(1, 2)},
        {"bounds": (np.int8(0), Decimal(1)), "resolution": Decimal("0.5")},
        {"bounds": (-0.0, 1), "resolution": np.float32(0.5), "output_resolution": 0.5},
    ):
        assert small(**options).update(1) == plain


def test_lattices_and_bounds_must_fit(small: Make) -> None:
    with pytest.raises(ParameterError, match="output_resolution must not be coarser"):
        small(resolution=0.25, output_resolution=0.5)
    with pytest.raises(ParameterError, match=r"bounds must be multiples of the resolution 2\^-2"):
        small(resolution=0.25, bounds=(0, 0.125))
    with pytest.raises(ParameterError, match="norm_bound needs a dimension"):
        small(norm_bound=1)


def test_chains(small: Make) -> None:
    chain = chain_of(("stage-max-9", "direct-max-4"))
    assert small(chain=chain).update(1) == small(chain=["stage-max-9", "direct-max-4"]).update(1)
    with pytest.raises(ParameterError, match="chain must be exact"):
        small(chain=chain.to_float())
    with pytest.raises(ParameterError, match="top of a chain must be a plain"):
        small(chain=("direct-max-4", "stage-max-9"))
    with pytest.raises(HorizonError, match="past the capacity"):
        small(chain=("direct-max-16",))
    with pytest.raises(HorizonError, match="past the capacity"):
        small(chain=chain, horizon=10**6)


def test_positional_arguments_are_few() -> None:
    with pytest.raises(TypeError):
        Counter(1.0, 10)  # type: ignore[misc,call-arg]


def test_extreme_but_allowed(small: Make) -> None:
    """The exact path: noise far beyond int64, lattices finer than floats, bounds beyond 2^64."""
    for options in (
        {"epsilon": 1e-140},
        {"epsilon": 1e140},
        {"resolution": 2.0**-60, "bounds": (-1, 1)},
        {"output_resolution": 2.0**-60},
        {"bounds": (-(2**80), 2**80)},
        {"resolution": 2.0**-256},
    ):
        single, whole = small(**options), small(**options)
        assert [single.update(x) for x in (1, 0, 1)] == whole.extend([1, 0, 1]).tolist()
        spread = single.interval(3, 1 - 1e-12)
        assert abs(Fraction(single.update(1, step=3)) - 2) <= spread  # false alarm 1e-12 each


def test_narrow_noise_on_a_fine_lattice_is_not_lost(small: Make) -> None:
    counter = small(1e6, output_resolution=2.0**-40)
    assert 0 < abs(counter.update(1) - 1) < 1e-3
