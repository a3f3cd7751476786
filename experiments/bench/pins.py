"""The versions of the peers that are measured: each in an environment of its own, made by venv and pip."""

from __future__ import annotations

__all__ = ["PINS"]

_SCIENCE = ("numpy==2.4.6", "scipy==1.17.1")

PINS: dict[str, tuple[str, ...]] = {
    "dpcrpy": ("dpcrpy==1.0.0", "mpmath==1.3.0", "sympy==1.14.0", *_SCIENCE),
    "opendp": ("opendp==0.16.0", "deprecated==1.3.1", "numpy==2.4.6", "wrapt==2.5.2"),
    "jax_privacy": (
        "jax_privacy==2.0.0",
        "absl-py==2.5.1",
        "annotated-types==0.8.0",
        "attrs==23.2.0",
        "chex==0.1.92",
        "dm-tree==0.1.10",
        "dp-accounting==0.6.0",
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "ml_dtypes==0.6.0",
        "mpmath==1.4.1",
        "opt_einsum==3.4.0",
        "optax==0.2.8",
        "pydantic==2.14.4",
        "pydantic_core==2.50.5",
        "toolz==1.2.0",
        "typing-inspection==0.4.5",
        "typing_extensions==4.16.0",
        "wrapt==2.5.2",
        *_SCIENCE,
    ),
}
"""By peer, what pip installs, in full: nothing else is asked for (--no-deps)."""
