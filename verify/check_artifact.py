"""Check artifacts from their documented format alone (docs/format.md): a script for anybody who doubts them.

    python check_artifact.py FILE.npz...

It needs numpy and the standard library, nothing else of trilift, and shares no code with the program that
wrote the files. From the integers in the file it proves, in exact arithmetic, that

    T_m = A B + w (1 - v)^T,  v = B^T g,  0 <= w <= 1,  0 <= v <= 1,

that every number of the certificate (of version 1 or 2) is an upper bound of what it stands for, and that its
SHA-256 is that of the numbers. One line per file; exit status 0: all verified, 1: a claim is false, 2: a file
is unreadable or not an artifact.

How the big product is proved: both sides are integers over a common power of two, and their difference is
smaller than a bound. It vanishes modulo primes whose product exceeds that, so it vanishes. Modulo a small
prime the product is exact in float64.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import struct
import sys
import zipfile
import zlib
from collections import namedtuple
from collections.abc import Iterator
from fractions import Fraction
from typing import IO, Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

MEMBERS = ["header.npy", "A.npy", "B.npy", "w.npy", "g.npy"]
MAX_BYTES, MAX_HEADER = 1 << 30, 1 << 20
MAX_SIZE, MAX_EXPONENT, MAX_LIMBS, LOG_BITS = 4096, 1023, 16, 160
SENSITIVITY = ("sensitivity", "sensitivity_sq")  # of version 1 (l1 norm) and 2 (l2 norm, squared)
BROKEN = (OSError, ValueError, RuntimeError, EOFError, zlib.error, zipfile.BadZipFile, struct.error)
NPY = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '(\|u1|<i8)', 'fortran_order': False, 'shape': "
    rb"\(([0-9]{1,9}(?:, [0-9]{1,9}){0,2}),?\), \} *\n",
    re.DOTALL,
)


# The integers of a file: A / 2^a, B / 2^b, w / 2^o, g / 2^h, and 1 - v = u / 2^n with v = B^T g.
Numbers = namedtuple("Numbers", "A B w g u a b o h n")


class Unreadable(Exception):
    """The file is not an artifact of the documented format."""


class Untrue(Exception):
    """A claim of the certificate is false."""


def read_members(path: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the words of four arrays; sizes are checked first, no pipe is waited for."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not os.path.isfile(file.fileno()):
                raise Unreadable("not a regular file")
            size = file.seek(0, 2)
            file.seek(max(size - 22, 0))
            end = file.read(22)
            if size > MAX_BYTES or len(end) < 22 or end[:4] != b"PK\x05\x06":
                raise Unreadable("not a zip archive that ends with its end record, or too large")
            _, _, here, total, length, offset, comment = struct.unpack("<4H2LH", end[4:])
            if (here, total, comment) != (5, 5, 0) or length > 4096 or offset + length + 22 != size:
                raise Unreadable("an artifact has five members, a directory after them and no comment")
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                if [entry.filename for entry in entries] != MEMBERS:
                    raise Unreadable(f"members must be {', '.join(MEMBERS)}, in this order")
                if entries[0].file_size > MAX_HEADER or sum(e.file_size for e in entries) > MAX_BYTES:
                    raise Unreadable("the members declare too many bytes")
                check_layout(file, archive)
                header = parse_header(read_npy(archive, entries[0], "|u1", None))
                shapes = shapes_of(header)
                names = zip(entries[1:], shapes.items(), strict=True)
                return header, {n: read_npy(archive, entry, "<i8", shape) for entry, (n, shape) in names}
    except BROKEN as error:
        raise Unreadable(
            getattr(error, "strerror", None) or str(error).split("\n")[0][:200] or type(error).__name__
        ) from None


def check_layout(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Check that the members lie one behind the other, and that both headers of each say the same."""
    place = 0
    for e in archive.infolist():
        file.seek(place)
        magic, flags, method, crc, *sizes, named, extra = struct.unpack("<4s2x2H4x3L2H", file.read(30))
        found = (magic, flags, method, crc, file.read(named), place)
        wanted = (b"PK\3\4", e.flag_bits, e.compress_type, e.CRC, e.filename.encode(), e.header_offset)
        same = sizes == [e.compress_size, e.file_size] or (extra and sizes == [0xFFFFFFFF] * 2)
        if found != wanted or not same or flags & 9 or method not in (0, 8) or extra > 64:
            raise Unreadable(f"{e.filename}: not where and what the archive's directory says")
        place += 30 + named + extra + e.compress_size
    if place != archive.start_dir:
        raise Unreadable("there is room between the last member and the archive's directory")


def shapes_of(header: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays by name, in the order of the file."""
    m, r = header["size"], header["inner"]
    return {"A": (m, r), "B": (r, m), "w": (m,), "g": (r,)}


def read_npy(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, wanted: str, axes: tuple[int, ...] | None
) -> Array:
    """Read one member, of the wanted type and axes (and perhaps an axis of words); nothing is unpickled."""
    with archive.open(entry) as stream:
        head = stream.read(64)
        length = int.from_bytes(head[8:10], "little")
        if len(head) < 64 or length + 10 not in (64, 128):
            raise Unreadable(f"{entry.filename}: unexpected array header")
        head += stream.read(length + 10 - 64)
        match = NPY.fullmatch(head)
        if match is None:
            raise Unreadable(f"{entry.filename}: not a plain |u1 or <i8 array in C order")
        shape = tuple(int(side) for side in match[3].split(b", "))
        dtype = np.dtype(match[2].decode())
        wide = shape[:-1] == axes and 2 <= shape[-1] <= MAX_LIMBS
        if dtype.str != wanted or not (wide or shape == axes or (axes is None and len(shape) == 1)):
            raise Unreadable(f"{entry.filename}: {dtype.str} of shape {shape} does not fit")
        count = dtype.itemsize * int(np.prod(shape, dtype=object))
        if count + len(head) != entry.file_size:
            raise Unreadable(f"{entry.filename}: the array header and the archive differ in size")
        data = stream.read(count)
        if len(data) != count or stream.read(1):
            raise Unreadable(f"{entry.filename}: not as long as declared")
        return np.frombuffer(data, dtype=dtype).reshape(shape)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object whose names stand once."""
    if len(dict(pairs)) == len(pairs):
        return dict(pairs)
    raise ValueError("a name stands twice")


def parse_header(raw: Array) -> dict[str, Any]:
    """Return the header after checking the fields that the proof needs."""
    try:
        header = json.loads(raw.tobytes().decode("ascii"), object_pairs_hook=once, parse_constant=int)
    except (ValueError, RecursionError):
        raise Unreadable("the header is not JSON") from None
    if not isinstance(header, dict) or header.get("format") != "trilift-artifact":
        raise Unreadable("not a trilift-artifact")
    if type(header.get("version")) is not int or header["version"] not in (1, 2):
        raise Unreadable(f"format version {str(header.get('version'))[:40]}: only 1 and 2 are known here")
    m, r, exponents = (header.get(name) for name in ("size", "inner", "exponents"))
    if type(m) is not int or type(r) is not int or not 2 <= m <= MAX_SIZE or not 1 <= r <= 4 * m + 16:
        raise Unreadable("size or inner is missing or out of range")
    if not isinstance(exponents, dict) or not isinstance(header.get("certificate"), dict):
        raise Unreadable("the exponents or the certificate are missing")
    small = all(type(value) is int and 0 <= value <= MAX_EXPONENT for value in exponents.values())
    if sorted(exponents) != ["A", "B", "g", "w"] or not small:
        raise Unreadable("an exponent is missing or out of range")
    return header


def parse_numbers(words: Array, shape: tuple[int, ...]) -> tuple[Array, int]:
    """Return (Python integers as an object array, number of words per entry)."""
    if words.shape == shape:
        return words.astype(object), 1
    limbs = words.shape[-1]
    lower = (words[..., k].astype(np.uint64).astype(object) << 64 * k for k in range(limbs - 1))
    return sum(lower, words[..., -1].astype(object) << 64 * (limbs - 1)), limbs


def primes(limit: int) -> Iterator[int]:
    """Yield primes downwards from ``limit``."""
    for candidate in range(limit | 1, 2, -2):
        if all(candidate % d for d in range(3, int(candidate**0.5) + 1, 2)):
            yield candidate


def prove_product(x: Numbers) -> None:
    """Prove 2^s T = 2^(s-a-b) A B + 2^(s-o-n) w u^T for u = 2^n (1 - v) and s = max(a + b, o + n)."""
    (m, r), factors = x.A.shape, (x.A, x.B, x.w, x.u)
    ab, on = x.a + x.b, x.o + x.n
    s = max(ab, on)
    sizes = A_max, B_max, w_max, u_max = [int(abs(numbers).max()) for numbers in factors]
    bound = (1 << s) + (r * A_max * B_max << (s - ab)) + (w_max * u_max << (s - on))
    factors = tuple(f if size >> 63 else f.astype(np.int64) for f, size in zip(factors, sizes, strict=True))
    covered, limit = 1, 1 << ((52 - r.bit_length()) // 2)  # r limit^2 <= 2^52: sums are exact in float64
    T = np.tril(np.ones((m, m)))
    for p in primes(limit - 1):
        if covered > bound:
            return
        covered *= p
        A_p, B_p, w_p, u_p = ((numbers % p).astype(np.float64) for numbers in factors)
        product = (A_p @ B_p) % p * pow(2, s - ab, p) + np.outer(w_p, u_p) % p * pow(2, s - on, p)
        wrong = np.argwhere((product - T * pow(2, s, p)) % p)
        if len(wrong):
            i, j = (int(k) for k in wrong[0])
            value = Fraction(int(x.A[i].dot(x.B[:, j])), 1 << ab) + Fraction(int(x.w[i] * x.u[j]), 1 << on)
            raise Untrue(f"T = A B + w (1 - v)^T at ({i}, {j}): {int(j <= i)} against {show(value)}")
    raise Untrue("the factorisation could not be proved: numbers too large")


def log2_below(m: int) -> Fraction:
    """Return a rational <= log2(m), by the series of the inverse hyperbolic tangent."""
    k = m.bit_length() - 1
    if m == 1 << k:
        return Fraction(k)
    low = atanh(Fraction(m - (1 << k), m + (1 << k)), up=False)  # ln(x) = 2 atanh((x-1)/(x+1)), x = m/2^k
    return k + Fraction(low, atanh(Fraction(1, 3), up=True))


def atanh(z: Fraction, *, up: bool) -> int:
    """Return 2^LOG_BITS atanh(z), 0 < z <= 1/3, as an integer rounded up or down."""
    total, power, j = 0, (z.numerator << LOG_BITS) // z.denominator + up, 0
    while power > up:
        total += power // (2 * j + 1) + up
        power = power * z.numerator**2 // z.denominator**2 + up
        j += 1
    return total + (2 if up else 0)  # the terms left out are below 1 + 1/9 + 1/81 + ... units


def show(value: Fraction) -> str:
    """Write a rational shortly."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= 60:
        return str(value)
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return f"about {float(value / Fraction(2) ** shift):.9g} * 2^{shift}"


def canonical(numbers: Array, exponent: int, limbs: int) -> bool:
    """Tell whether no smaller exponent and no fewer 64-bit words per entry would do."""
    half = 1 << (64 * (limbs - 1) - 1) if limbs > 1 else 0
    wide = limbs == 1 or int(numbers.max()) >= half or int(numbers.min()) < -half
    return wide and (exponent == 0 or bool(np.any(numbers & 1)))


def hash_of(parts: list[tuple[str, Array, tuple[int, ...], int, int]]) -> str:
    """Return the SHA-256 of the canonical bytes."""
    digest = hashlib.sha256(b"trilift/stage/1\n")
    for name, words, shape, exponent, limbs in parts:
        digest.update(
            f"{name} shape={','.join(map(str, shape))} exponent={exponent} limbs={limbs}\n".encode()
        )
        digest.update(np.ascontiguousarray(words).tobytes())
    return digest.hexdigest()


def norms(x: Numbers, l2: bool) -> Iterator[tuple[str, Fraction]]:
    """Return the exact norms of the certificate by name, the interior ones over all pairs of weights."""
    A, B, w, g = x.A, x.B, x.w, x.g
    a, o, h, m, rest = x.a, x.o, x.h, len(x.w), (1 << x.o) - x.w
    # squared norms over 2^(2(a + o + h)): A_i scaled by 2^(o + h), (1 - w_i) g by 2^a
    gram = int(g.dot(g)) << 2 * a
    own = ((A * A).sum(axis=1) << 2 * (o + h)) + rest * rest * gram
    scale = 1 << 2 * (a + o + h)
    columns = (B * B).sum(axis=0) if l2 else abs(B).sum(axis=0)
    yield SENSITIVITY[l2], Fraction(int(columns.max()), 1 << x.b * (1 + l2))
    yield "max_row_norm_sq", Fraction(int(own.max()), scale)
    yield "mean_row_norm_sq", Fraction(int(own.sum()), scale * m)

    # rows on the infinite lattice: neighbours share A on the block and g on the block before, except that
    # the row before the first lies one block earlier, where its A meets the first row's g
    cross = np.empty(m, dtype=object)
    cross[1:] = ((A[1:] * A[:-1]).sum(axis=1) << 2 * (o + h)) + rest[1:] * rest[:-1] * gram
    cross[0] = int(rest[0] * A[-1].dot(g)) << (a + o + h)
    before = np.concatenate([own[-1:], own[:-1]])
    # squared norms are convex in the weight, so the largest one has the least weight or the largest
    ends = ((s, (1 << o) - s) for s in (int(w.min()), int(w.max())))
    largest = max(int((s**2 * own + t**2 * before + 2 * s * t * cross).max()) for s, t in ends)
    total = (w * w + rest * rest).sum() * own.sum() + 2 * (w * rest).sum() * cross.sum()
    scale <<= 2 * o
    yield f"interior_{SENSITIVITY[l2]}", Fraction(widest_column(x, columns, l2), 1 << (x.b + x.n) * (1 + l2))
    yield "interior_max_row_norm_sq", Fraction(largest, scale)
    yield "interior_mean_row_norm_sq", Fraction(int(total), scale * m * m)


def widest_column(x: Numbers, columns: Array, l2: bool) -> int:
    """Return the largest norm of 2^n ((1 - v_i) Col_j + v_i Col_{j+1}) over all i and j, l1 or squared l2."""
    B, n = x.B, x.n
    if not l2 and int(columns.max()) << (n + 1) < 1 << 62:
        B, columns = B.astype(np.int64), columns.astype(np.int64)  # no sum can reach 2^63
    products = (B[:, :-1] * B[:, 1:]).sum(axis=0) if l2 else columns
    widest = 0
    for mine in {int(x.u.min()), int(x.u.max())}:  # both norms are convex in the weight
        other = (1 << n) - mine
        if l2:
            inside = mine**2 * columns[:-1] + other**2 * columns[1:] + 2 * mine * other * products
        else:
            inside = abs(mine * B[:, :-1] + other * B[:, 1:]).sum(axis=0)
        across = mine ** (1 + l2) * columns[-1] + other ** (1 + l2) * columns[0]  # into the next block
        widest = max(widest, int(inside.max()), int(across))
    return widest


def claimed(certificate: dict[str, Any], name: str) -> Fraction:
    """Return a rational claim of the certificate."""
    text = certificate.get(name)
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,4000}/[1-9][0-9]{0,4000}", text):
        raise Unreadable(f"{name} must be a string p/q")
    return Fraction(text)


def require(name: str, claim: Fraction, exact: Fraction) -> None:
    """A claim must not be below the exact value."""
    if claim < exact:
        raise Untrue(f"{name} <= {show(claim)}: it is {show(exact)}, above by {show(exact - claim)}")


def check(path: str) -> str:
    """Prove everything about one file; return a line that sums it up."""
    header, words = read_members(path)
    m, exponents, certificate = header["size"], header["exponents"], header["certificate"]
    numbers: dict[str, Array] = {}
    parts = []
    for name, shape in shapes_of(header).items():
        numbers[name], limbs = parse_numbers(words[name], shape)
        if not canonical(numbers[name], exponents[name], limbs):
            raise Unreadable(f"{name} is not in canonical form")
        parts.append((name, words[name], shape, exponents[name], limbs))
    kind = header.get("kind")
    if kind not in ("stage", "direct") or (certificate.get("kind"), certificate.get("size")) != (kind, m):
        raise Unreadable("the certificate is about another kind or size than the header")
    actual = hash_of(parts)
    if certificate.get("sha256") != actual:
        raise Untrue(f"sha256: the numbers have {actual}")
    A, B, w, g = (numbers[name] for name in "ABwg")
    a, b, o, h = (exponents[name] for name in "ABwg")
    check_weights("w", w, o)
    v, n = B.T.dot(g), b + h
    while n > 0 and not np.any(v & 1):
        v, n = v >> 1, n - 1
    check_weights("v", v, n)
    if kind == "direct" and (np.any(w != 0) or np.any(g != 0)):
        raise Untrue("kind direct: w or g is not zero")
    if header.get("tail") != (int(np.flatnonzero(w)[0]) if np.any(w != 0) else 0):
        raise Unreadable("tail is not the number of leading zeros of w")
    x = Numbers(A, B, w, g, (1 << n) - v, a, b, o, h, n)
    prove_product(x)
    l2 = header["version"] == 2
    if certificate.get("norm", "l1") != ("l2" if l2 else "l1"):
        raise Unreadable("the certificate is about another norm than the version says")
    exact, low = dict(norms(x, l2)), log2_below(m)
    constant = "gamma" if l2 else "kappa"
    for prefix in ("", "interior_") if kind == "stage" else ("",):
        for name in (SENSITIVITY[l2], "max_row_norm_sq", "mean_row_norm_sq"):
            require(prefix + name, claimed(certificate, prefix + name), exact[prefix + name])
        b = exact[prefix + SENSITIVITY[l2]]
        for which in ("max", "mean"):
            name, q = f"{prefix}{constant}_{which}", exact[f"{prefix}{which}_row_norm_sq"]
            value = certificate.get(name)
            if type(value) not in (int, float) or not 0 <= value < float("inf"):
                raise Unreadable(f"{name} must be a finite number")
            # the square of gamma is rational
            require(f"{name}{'^2' * l2}", Fraction(value) ** (1 + l2), q * b if l2 else 2 * q * b**2 / low**3)
    claims = (f"{constant}_{which} <= {certificate[f'{constant}_{which}']}" for which in ("max", "mean"))
    return f"{kind} {m}: {', '.join(claims)}"


def check_weights(name: str, weights: Array, exponent: int) -> None:
    """Prove that weights lie in [0, 1]."""
    for i, x in enumerate(weights):
        if not 0 <= x <= 1 << exponent:
            raise Untrue(f"0 <= {name} <= 1 at index {i}: it is {show(Fraction(int(x), 1 << exponent))}")


def main(arguments: list[str] | None = None) -> int:
    """Check the files named on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="Prove the certificates of trilift artifacts.")
    parser.add_argument("files", nargs="+", metavar="FILE.npz")
    parser.add_argument("--json", action="store_true", help="print a list of records instead of lines")
    options = parser.parse_args(arguments)
    status, records = 0, []
    for path in options.files:
        try:
            verdict, code, text = "verified", 0, check(path)
        except Untrue as error:
            verdict, code, text = "FALSE", 1, str(error)
        except Unreadable as error:
            verdict, code, text = "unreadable", 2, str(error)
        status = max(status, code)
        records.append({"file": path, "verdict": verdict, "text": text})
        if not options.json:
            print(f"{verdict}  {path}  {text}", flush=True)
    if options.json:
        print(json.dumps(records, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main())
