"""Noise is never shared: by two purposes of a counter, by two counters, by forked processes, by threads.

Everything that a counter derives and reads is recorded at the two places where it has to pass: HKDF, and the
reads of keystreams. ``python -m trilift.experiments.trust.sampler_apart`` runs the checks that fork, in a
process of its own without threads, and prints them as JSON.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from trilift.counters import Counter
from trilift.experiments.trust.kinds import KINDS, Kind
from trilift.lift.errors import StateError
from trilift.stream.keystream import PRIMARY, WORDS_PER_PIECE, Keystream, nonce, stream_blocks

__all__ = ["Recorded", "apart_cases", "forked_cases", "recording", "thread_cases"]

Case = tuple[str, bool, str]

_THREADS = 8
_EACH = 20


class Recorded:
    """What was derived and read.

    Attributes:
        derived: (master, salt, info) -> key.
        reads: (key, region, level, block, counter) of every piece of keystream that was read.
        inputs: the same pieces as what the cipher is given: key and 16 bytes.
    """

    def __init__(self) -> None:
        self.derived: dict[tuple[bytes, bytes, bytes], bytes] = {}
        self.reads: set[tuple[bytes, int, int, int, int]] = set()
        self.inputs: set[tuple[bytes, bytes]] = set()

    @property
    def keys(self) -> set[bytes]:
        """Every key that was derived."""
        return set(self.derived.values())

    def read(self, key: bytes, region: int, level: int, block: int, *, counter: int, step: int = 0) -> None:
        """Take down a piece."""
        self.reads.add((key, region, level, block, counter << 10 | step))
        where = nonce(region, step=step, level=level, block=block, counter=counter)
        self.inputs.add((key, where))


@contextmanager
def recording() -> Iterator[Recorded]:
    """Record as long as the ``with`` block lasts."""
    seen = Recorded()
    batches, further = Keystream.batches, Keystream.further

    class Hkdf:
        def __init__(self, *, salt: bytes, info: bytes, **more: Any) -> None:
            self._at, self._kdf = (salt, info), HKDF(salt=salt, info=info, **more)

        def derive(self, master: bytes) -> bytes:
            derived = self._kdf.derive(master)
            seen.derived[(master, *self._at)] = derived
            return derived

    def read_batches(self: Keystream, level: int, blocks: Any, count: int, **more: Any) -> Iterator[Any]:
        start = more.get("start", 0)
        for block in stream_blocks(blocks).tolist() if count else []:
            for piece in range(start // WORDS_PER_PIECE, (start + count - 1) // WORDS_PER_PIECE + 1):
                seen.read(bytes(self._key), PRIMARY, level, block, counter=piece)
        return batches(self, level, blocks, count, **more)

    def read_further(self: Keystream, region: int, level: int, block: int, address: int) -> Iterator[int]:
        for index, word in enumerate(further(self, region, level, block, address)):
            step = index // WORDS_PER_PIECE
            seen.read(bytes(self._key), region, level, block, counter=address, step=step)
            yield word

    with (
        patch("trilift.stream.keys.HKDF", Hkdf),
        patch.object(Keystream, "batches", read_batches),
        patch.object(Keystream, "further", read_further),
    ):
        yield seen


def _lived(kind: Kind, seed: int | None) -> Recorded:
    with recording() as seen:
        kind.feed(kind.make(1, seed))
    return seen


def apart_cases(kinds: Iterable[Kind] = KINDS) -> Iterator[Case]:
    """Yield, for every kind of counter, whether purposes, addresses and counters are kept apart."""
    every: set[bytes] = set()
    total = 0
    for kind in kinds:
        first, second, simulated = _lived(kind, None), _lived(kind, None), _lived(kind, 1)
        count = len(simulated.derived)
        ok = 0 < count == len(simulated.keys)
        yield f"{kind.name}: purposes", ok, f"{count} purposes"
        used = {key for key, *_ in simulated.reads}
        ok = used <= simulated.keys and 0 < len(simulated.reads) == len(simulated.inputs)
        yield f"{kind.name}: addresses", ok, f"{len(simulated.reads)} pieces of 64 bytes"
        for seen in (first, second):
            every |= seen.keys
            total += len(seen.derived)
        yield f"{kind.name}: two counters", not first.keys & second.keys, ""
    yield "all counters", len(every) == total, f"{total} keys"


def _fingerprint(kind: Kind) -> str:
    """Return a hash of the keys that a new counter derives."""
    return hashlib.sha256(b"".join(sorted(_lived(kind, None).keys))).hexdigest()


def _refused(step: Callable[[], Any]) -> bool:
    try:
        step()
    except StateError as error:
        return "forked" in str(error)
    return False


def _both_refused(kind: Kind, counter: Any) -> list[bool]:
    return [_refused(partial(kind.one, counter)), _refused(partial(kind.feed, counter, 3))]


def _in_fork(work: Callable[[], Any]) -> Any:
    """Return what work gives in a fork of this process."""
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.write(sink, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(sink)
    with os.fdopen(source, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def _fork_cases(kinds: Iterable[Kind]) -> Iterator[Case]:
    for kind in kinds:
        counter = kind.make(1, None)
        refused = _in_fork(partial(_both_refused, kind, counter))
        yield f"{kind.name}: a fork", refused == [True, True], str(refused)
        kind.one(counter)
        yield f"{kind.name}: its parent", counter.step == 1, ""
    makers = [_in_fork(lambda: _fingerprint(KINDS[0])) for _ in range(4)] + [_fingerprint(KINDS[0])]
    yield "counters made in forks", len(set(makers)) == len(makers), ""


def _spawned(answers: Any) -> None:
    answers.put(_fingerprint(KINDS[0]))


def _pool_cases(kinds: Sequence[Kind]) -> Iterator[Case]:
    count = 2 if len(kinds) == len(KINDS) else 1
    for method in ("fork", "spawn"):
        if method not in multiprocessing.get_all_start_methods():
            continue
        context: Any = multiprocessing.get_context(method)
        answers = context.SimpleQueue()
        workers = [context.Process(target=_spawned, args=(answers,)) for _ in range(count)]
        for worker in workers:
            worker.start()
        made = [answers.get() for _ in workers] + [_fingerprint(KINDS[0])]
        for worker in workers:
            worker.join()
        yield f"counters made in processes ({method})", len(set(made)) == len(made), ""
    for kind in kinds:
        counter = kind.make(1, None)
        try:
            pickle.dumps(counter)
            yield f"{kind.name}: pickled", False, ""
        except StateError as error:
            yield f"{kind.name}: pickled", "re-use its noise" in str(error), str(error)


def forked_cases(*, full: bool) -> list[Case]:
    """Return the checks of processes, made in a fresh process: forking one with threads is no good idea.

    Args:
        full: all kinds of counters, or some.
    """
    command = [sys.executable, "-m", "trilift.experiments.trust.sampler_apart", "1" if full else "5"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return [(what, ok, detail) for what, ok, detail in json.loads(done.stdout)]


def thread_cases() -> Iterator[Case]:
    """Yield whether threads take different steps of a shared counter, and make counters of different keys."""
    for seed in (1, 2):
        counter = Counter(1, horizon=1000, simulation_seed=seed)
        released: list[Any] = []
        start = threading.Barrier(_THREADS)

        def work(counter: Any = counter, released: list[Any] = released, start: Any = start) -> None:
            start.wait()
            for _ in range(_EACH):
                released.append(counter.update(1))

        _together(work)
        alone = Counter(1, horizon=1000, simulation_seed=seed).extend([1] * (_THREADS * _EACH))
        yield f"threads share a counter (seed {seed})", sorted(released) == sorted(alone.tolist()), ""
    seen: list[bytes] = []
    _together(lambda: seen.append(bytes(Counter(1, horizon=50)._key)))
    yield "threads make counters", len(set(seen)) == _THREADS, ""


def _together(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    some = KINDS[:: int(sys.argv[1])]
    forks = list(_fork_cases(some)) if hasattr(os, "fork") else []
    print(json.dumps([*forks, *_pool_cases(some)]))
