"""A cipher that is stuck is refused; and ends of scales, by the tables of the trust page."""

from typing import Any

import pytest
from trilift.experiments.trust import sampler_laws as laws
from trilift.experiments.trust.kinds import KINDS
from trilift.experiments.trust.sampler_bits import STUCK, stuck
from trilift.lift.errors import StateError
from trilift.stream import laplace_layout as layout
from trilift.stream.gaussian import GaussianRows
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows


@pytest.mark.parametrize("bits", STUCK)
@pytest.mark.parametrize("rows", [LaplaceRows([3]), LaplaceRows([1 << 70] * 9), GaussianRows([3] * 4)])
def test_a_stuck_cipher_is_refused(rows: Any, bits: str) -> None:
    stream = Keystream(simulation_key(1))
    with stuck(STUCK[bits]), pytest.raises(StateError, match="stuck"):
        rows.sample(stream, 0, [5, 6]).to_objects()
    assert rows.sample(stream, 0, [5]).shape == (1, len(rows.scales))


def test_a_single_gaussian_reads_too_few_words_to_tell_but_refuses_as_well() -> None:
    for bits in ("all zeros", "all ones"):
        with stuck(STUCK[bits]), pytest.raises(StateError):
            GaussianRows([3]).sample(Keystream(simulation_key(1)), 0, [5]).to_objects()


def test_a_block_that_is_stuck_among_others_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Keystream(simulation_key(1))
    good = stream.words(0, range(9), 24)
    assert len(good) == 9
    with stuck(7), pytest.raises(StateError, match="stuck"):
        stream.words(0, [3], 8)
    with stuck(7):
        assert (stream.words(0, [3], 7) == 7).all()  # too few to tell: no sampler of ours reads so few


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k.name in ("Counter", "PartitionCC", "DistinctCounter, zCDP")]
)
def test_counters_refuse_a_stuck_cipher_and_go_on_when_it_works_again(kind: Any) -> None:
    counter = kind.make(1, 1)
    with stuck(0xFFFFFFFF), pytest.raises(StateError):
        kind.feed(counter)
    assert counter.step == 0
    assert kind.feed(counter) == kind.feed(kind.make(1, 1))


def test_the_checks_of_laws_see_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative controls: each check fails when the sampler is another one, a tenth off or too coarse."""
    for kind in ("laplace", "gaussian"):
        scale = 1 << 40
        p, fair = laws.law(kind, scale, count=2000, seed=3)
        assert p > laws.ALPHA
        assert fair is not None
        assert fair > laws.ALPHA
        right = laws._draws
        with monkeypatch.context() as patched:
            patched.setattr(laws, "_draws", lambda k, s, c, seed, right=right: right(k, s * 5 // 4, c, seed))
            assert laws.law(kind, scale, count=2000, seed=3)[0] < laws.ALPHA
        with monkeypatch.context() as patched:
            patched.setattr(laws, "_draws", lambda k, s, c, seed, right=right: 2 * right(k, s // 2, c, seed))
            assert laws.law(kind, scale, count=2000, seed=3)[1] < laws.ALPHA
    with monkeypatch.context() as patched:
        patched.setattr(laws, "rule", lambda scale, test: layout.rule(scale, 0))
        assert not all(ok for _, ok in laws.comparisons(3))
    with monkeypatch.context() as patched:
        patched.setattr(laws, "GaussianRows", lambda scales: GaussianRows([2 * s for s in scales]))
        assert not all(laws.gaussian_integers(100, blocks=5, seed=1))
