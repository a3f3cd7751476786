"""From a search under the l2 norm to a certified artifact, and the index of a folder of them (new)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from trilift.artifacts.artifact import Provenance
from trilift.artifacts.certificate import OBJECTIVES
from trilift.artifacts.l2_artifact import L2Artifact, l2_index_record
from trilift.artifacts.listing import INDEX
from trilift.lift.checks import choice
from trilift.lift.errors import CertificateError
from trilift.lift.files import atomic_write
from trilift.lift.stage import Stage
from trilift.verify.completion import DEFAULT, Bits, complete, loss
from trilift.verify.l2 import certify_l2

__all__ = ["MAX_L2_LOSS", "Found", "from_l2_search", "write_l2_index"]

MAX_L2_LOSS = 1e-4


class Found(Protocol):
    """What is needed of a search's result: its float stage."""

    @property
    def stage(self) -> Stage:
        """The best stage seen; B has at least as many rows as columns."""


def from_l2_search(
    result: Found | Stage, *, objective: str, provenance: Provenance, bits: Bits = DEFAULT
) -> L2Artifact:
    """Complete and certify the stage of a search under the l2 norm.

    Args:
        result: a search result, or its float stage, B of full column rank with columns of l2 norms of about
            1; A and w are recomputed.
        objective: "max" or "mean".
        provenance: how it was found.
        bits: binary places to begin with; finer ones are taken where these lose too much.

    Raises:
        ParameterError: B has not full column rank, or nearly so.
        CertificateError: completion lost more than a relative 1e-4 in gamma^2.
    """
    choice("objective", objective, OBJECTIVES)
    found = (result if isinstance(result, Stage) else result.stage).to_float()
    plain = found.is_plain
    g = None if found.one_sided else found.g
    # an ill-conditioned B needs a finer w and B; a finer v comes last, because it refines all lattices above
    for w, B, v in ((0, 0, 0), (8, 0, 0), (8, 4, 0), (8, 8, 0), (8, 8, 2), (16, 12, 6)):
        finer = replace(bits, w=bits.w + w, B=bits.B + B, v=bits.v + v)
        stage = complete(found.B, g=g, bits=finer, plain=plain, objective=objective, norm="l2")
        lost = loss(stage, found, objective=objective, norm="l2")
        if lost < MAX_L2_LOSS:
            break
    else:
        raise CertificateError(f"completion loses {lost:.2g} of gamma^2, more than {MAX_L2_LOSS}")
    certificate = certify_l2(stage, objective=objective, kind="direct" if plain else "stage")
    note = f"completed with a relative change in gamma^2 of {lost:+.1e}"
    notes = "; ".join(text for text in (provenance.notes, note) if text)
    return L2Artifact(stage, certificate, replace(provenance, notes=notes))


def write_l2_index(folder: Path) -> None:
    """Write ``index.json`` from the headers of the artifacts in a folder."""
    records = [l2_index_record(path) for path in sorted(folder.glob("*.npz"))]
    atomic_write(folder / INDEX, (json.dumps(records, indent=1) + "\n").encode("ascii"))
