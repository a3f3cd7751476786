"""Figures that other work published, quoted for comparison.

Source: "Improved Error Bounds for Pure Differentially Private Continual Counting via Matrix Factorization"
(Arkhipov, Kalinin), Tables 1 and 2. A kappa is SE epsilon^2 / log2(n)^3.
"""

from __future__ import annotations

__all__ = ["KAPPA_CERTIFIED", "KAPPA_DIRECT"]

KAPPA_DIRECT: dict[int, tuple[float, float]] = {
    4: (0.8293, 0.6259),
    8: (0.3831, 0.3288),
    16: (0.2455, 0.2093),
    32: (0.1938, 0.1609),
    64: (0.1527, 0.1370),
    128: (0.1322, 0.1207),
    256: (0.1191, 0.1099),
    512: (0.1094, 0.1009),
    1024: (0.1032, 0.0944),
}
"""Table 2: kappa of a factorisation of T_k itself, (max, mean) by k."""

KAPPA_CERTIFIED = (0.0778, 0.0710)
"""Table 1: the leading constants that the paper proves, (max, mean), from 1024 x 1024 factors."""
