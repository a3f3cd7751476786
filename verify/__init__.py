"""Verification: completion to exact stages, certificates, directed enclosures, lower bounds.

Names are loaded when first used, so that ``python -m trilift.verify.check_artifact`` needs numpy only.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trilift.verify.build import from_search
    from trilift.verify.certification import certify, check_certificate, verification_report
    from trilift.verify.completion import COMPACT, DEFAULT, Bits, best_stage, complete, loss
    from trilift.verify.enclosures import float_down, float_up, kappa_up, log2_enclosure, sqrt_down, sqrt_up
    from trilift.verify.foreign import from_factors, right_factor_record
    from trilift.verify.l2 import certify_l2, check_l2_certificate, gamma_up
    from trilift.verify.l2_build import from_l2_search
    from trilift.verify.lower_bounds import binary_lower_bound, factorisation_lower_bound, kappa_lower_bound
    from trilift.verify.right_factor import RightFactorBounds, certify_right_factor
    from trilift.verify.standing import refutation, require_proof

_HOME = {
    "COMPACT": "completion",
    "DEFAULT": "completion",
    "Bits": "completion",
    "RightFactorBounds": "right_factor",
    "best_stage": "completion",
    "binary_lower_bound": "lower_bounds",
    "certify": "certification",
    "certify_l2": "l2",
    "certify_right_factor": "right_factor",
    "check_certificate": "certification",
    "check_l2_certificate": "l2",
    "complete": "completion",
    "factorisation_lower_bound": "lower_bounds",
    "float_down": "enclosures",
    "float_up": "enclosures",
    "from_factors": "foreign",
    "from_l2_search": "l2_build",
    "from_search": "build",
    "gamma_up": "l2",
    "kappa_lower_bound": "lower_bounds",
    "kappa_up": "enclosures",
    "log2_enclosure": "enclosures",
    "loss": "completion",
    "refutation": "standing",
    "require_proof": "standing",
    "right_factor_record": "foreign",
    "sqrt_down": "enclosures",
    "sqrt_up": "enclosures",
    "verification_report": "certification",
}

__all__ = [
    "COMPACT",
    "DEFAULT",
    "Bits",
    "RightFactorBounds",
    "best_stage",
    "binary_lower_bound",
    "certify",
    "certify_l2",
    "certify_right_factor",
    "check_certificate",
    "check_l2_certificate",
    "complete",
    "factorisation_lower_bound",
    "float_down",
    "float_up",
    "from_factors",
    "from_l2_search",
    "from_search",
    "gamma_up",
    "kappa_lower_bound",
    "kappa_up",
    "log2_enclosure",
    "loss",
    "refutation",
    "require_proof",
    "right_factor_record",
    "sqrt_down",
    "sqrt_up",
    "verification_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
