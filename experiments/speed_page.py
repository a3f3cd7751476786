"""docs/speed.md, written from the record of :mod:`trilift.experiments.profile_speed`."""

from __future__ import annotations

from typing import Any

from trilift.stream.fast.switch import _WORTH

__all__ = ["page"]

_NAMES = {
    "keystream": "keystream of the finest level (ChaCha20)",
    "comparisons": "comparisons with the thresholds, draws as floats",
    "upper_levels": "the upper levels, all of this",
    "products": "products of draws and factors, finest level",
    "blending": "blocks put together",
    "rounding": "exact rounding",
    "inputs_and_sums": "inputs checked, sums, noise added",
}

_TEXT = """# Speed

What a released step costs, where the time goes, and how far from the floor that is. This page is
written by

    OMP_NUM_THREADS=1 python -m trilift.experiments.profile_speed --out docs/measurements/speed_profile.json
    python -m trilift.experiments.profile_speed --out docs/measurements/speed_profile.json \\
        --page docs/speed.md

from one run ({machine}) of `Counter(1.0, horizon={horizon})`, exact noise over the chain {chain}, one
`extend` of all steps. A test checks that page and record agree.

## Compiled kernels: the extra `fast`

`pip install 'trilift[fast]'` brings numba. The hot loops (comparing keystream with thresholds, bits to
floats, rounding) are then compiled, and chunks of 65,536 steps of Laplace noise are made by several
threads. **Nothing else changes**: every draw and every released value is the same to the last bit,
keys, digests and saved states know nothing of it, and a counter may begin with the one path and go on
with the other. The plain path in numpy is the reference; when the kernels are loaded they are checked
against it on this machine, and not used if they differ.

| | |
|---|---|
| nothing set | as soon as the plain path has read 2^26 words of keystream (here {worth:.1f} million steps) |
| `TRILIFT_FAST=1`, `trilift.stream.fast.enable()` | at once; an error if numba is missing |
| `TRILIFT_FAST=0`, `trilift.stream.fast.disable()` | never |
| `TRILIFT_THREADS=1` | no threads; by default as many as there are processors, at most 8 |
| `trilift.stream.fast.status()` | one line: whether they are used, or why not |

Loading took {loading:.1f} s in this run. The first time the kernels are compiled, which takes some
seconds more; the result is kept in the installed package's `__pycache__`, or where `NUMBA_CACHE_DIR`
says. An installation that is read-only compiles anew in every process (files in other places are not
trusted: numba reads them with pickle). Threads end with the call that started them, so forks are safe.

Compiled integers wrap silently. So only what cannot overflow is compiled: comparisons of 16-bit words,
magnitudes below 2^50 (wider draws are added up in floats, as without numba), and roundings of floats
below 2^52 that lie further from a boundary than their error bound. A word that equals its threshold
(one of 2^16; rare events begin with one) and a rounding that is not decided go to the same Python
integers as without numba.

## Where the time goes

Nanoseconds a released step, one thread; every part is timed alone, the fastest of many short runs, so
that the parts need not add up.

| part | plain | fast |
|---|---:|---:|
{parts}
| **`extend`, whole** | **{plain_whole:.0f}** | **{fast_whole:.0f}** |

## The floor

A step reads {keystream_bytes:.0f} bytes of keystream and needs {macs:.0f} multiply-adds, over all
levels. At the rates measured in the same run, {chacha:.1f} bytes a nanosecond for ChaCha20 and
{mac_rate:.1f} multiply-adds a nanosecond for a square matrix product, that is {floor:.0f} ns: no single
thread can be faster with this layout of draws, which saved keys depend on. The plain path takes
{plain_over:.1f} times the floor, the compiled one {fast_over:.1f} times.

## Beside OpenDP

Released steps a second of `extend`, against samples a second of OpenDP's exact vector sampler (discrete
Laplace, integers, one thread) in the same run. A released step is a sum of many draws, so this flatters
OpenDP.

| path | threads | time | released steps a second | times OpenDP |
|---|---:|---|---:|---:|
{rates}
{peer}
"""


def page(record: dict[str, Any]) -> str:
    """Return the text of docs/speed.md for a record of :func:`trilift.experiments.profile_speed.measure`."""
    plain, fast = record["ns_a_step"]["plain"], record["ns_a_step"]["fast"]
    floor, peers = record["floor"], record["opendp_samples_per_s"]
    parts = [f"| {text} | {plain[name]:.1f} | {fast[name]:.1f} |" for name, text in _NAMES.items()]
    rates = [
        f"| {row['path']} | {row['threads']} | {row['clock']} | {row['steps_per_s']:,.0f} |"
        f" {'-' if row['times_opendp'] is None else format(row['times_opendp'], '.1f')} |"
        for row in record["rates"]
    ]
    return (
        _TEXT.format(
            machine=record["machine"],
            horizon=record["horizon"],
            chain=", ".join(f"`{name}`" for name in record["chain"]),
            loading=record["loading_s"],
            parts="\n".join(parts),
            plain_whole=plain["extend"],
            fast_whole=fast["extend"],
            worth=4 * _WORTH / floor["keystream_bytes"] / 1e6,
            keystream_bytes=floor["keystream_bytes"],
            macs=floor["multiply_adds"],
            chacha=floor["chacha_bytes_per_ns"],
            mac_rate=floor["multiply_adds_per_ns"],
            floor=floor["ns"],
            plain_over=plain["extend"] / floor["ns"],
            fast_over=fast["extend"] / floor["ns"],
            rates="\n".join(rates),
            peer="\n".join(
                f"| OpenDP | 1 | {clock} | {peer:,.0f} samples | 1 |"
                for clock, peer in peers.items()
                if peer is not None
            ),
        ).rstrip("\n")
        + "\n"
    )
