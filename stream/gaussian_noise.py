"""Keyed correlated Gaussian noise: a pure function of (key, stream, purpose, mechanism, step)."""

from __future__ import annotations

from trilift.lift.chain import Chain
from trilift.stream.chain_noise import ChainNoise, chain_digest
from trilift.stream.gaussian import SAMPLER_ID, GaussianRows
from trilift.stream.gaussian_ledger import GaussianLedger, check_gaussian_ledger

__all__ = ["GaussianNoise", "gaussian_digest"]


def gaussian_digest(chain: Chain, ledger: GaussianLedger, *, places: int) -> bytes:
    """Return SHA-256 of everything the noise depends on besides key, stream and purpose.

    As :func:`trilift.stream.noise.mechanism_digest`, with the sampler of rounded Gaussians, and mu.
    """
    digest = chain_digest(chain, ledger, sampler=SAMPLER_ID, places=places)
    return digest.add("mu", ledger.mu).digest()


class GaussianNoise(ChainNoise[GaussianLedger]):
    """Gaussian noise N = L z of a chain, rounded to the output lattice, at any step, range or set of steps.

    Neighbours: two streams that differ in one input, by at most ``ledger.change``. Guarantee: adding
    ``noise.at(t)`` to every exact prefix sum is mu-GDP for mu = ``ledger.mu`` (Dong, Roth, Su 2022), hence
    (epsilon, delta)-differentially private for every epsilon >= 0 with delta = delta(epsilon, mu) of Balle
    and Wang (2018), :func:`trilift.stream.gdp.ln_delta_bounds`, and mu^2/2-zCDP; for all steps together.
    Given ideal random bits: with ChaCha20 as the source of bits, against adversaries that cannot break it.

    Theorem: the values are a function of Rx + sigma N with independent Gaussians of the ledger's scales,
    because L R = T holds exactly, Rx lies on the rows' lattices and floor(u + k) = floor(u) + k for integers
    k (post-processing); and the sensitivity of Rx is at most mu in units of those scales. Adaptively chosen
    inputs: the Gaussian matrix mechanism for a lower triangular T stays exactly as private when inputs
    depend on earlier outputs (Denisov, McMahan, Rush, Smith, Thakurta 2022, theorem 2.1), for L and R of any
    shape, because Gaussian noise L z is Gaussian noise of a lower triangular factor after a rotation.
    Composition: independent noises of mu_1, mu_2, ... are mu-GDP together for mu^2 = sum mu_i^2.

    **One key serves one version of one stream.** The same key over changed data reveals the change exactly,
    because the noise is the same. Corrected data need a new key and a new budget.

    Args:
        chain: exact chain, best one made for the l2 norm (:func:`trilift.artifacts.load_stage_l2`).
        ledger: its budget split (:func:`trilift.stream.gaussian_ledger.make_gaussian_ledger`).
        horizon: number of steps n <= chain.capacity.
        key: 32 secret bytes (:func:`trilift.stream.keys.new_key`).
        stream_id: 16 bytes drawn together with the key.
        purpose: path that is unique per key, such as "counter".
        places: binary places of the output lattice h = 2^-places; at least the ledger's input places (the
            default), at most 256.

    Raises:
        ParameterError: arguments out of range, or a ledger that does not prove its mu for this chain.
        HorizonError: a horizon past the chain's capacity.
    """

    _DRAW_VARIANCE = 1.0

    def _check(self) -> None:
        check_gaussian_ledger(self.chain, self.ledger)

    def _digest(self) -> bytes:
        return gaussian_digest(self.chain, self.ledger, places=self.places)

    def _plans(self) -> list[GaussianRows]:
        return [GaussianRows(entry.row_scales) for entry in self.ledger.levels]

    def _budget_text(self) -> str:
        return f"mu={float(self.ledger.mu):.6g}"
