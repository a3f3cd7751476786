"""When the kernels are used, what is said about it, and that nothing is loaded that nobody asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.fast import kernels, loading, switch


def in_process(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**{k: v for k, v in os.environ.items() if k != switch.VARIABLE}, **environment},
    )
    return done.stdout.strip()


RELEASE = "import sys, trilift; c = trilift.Counter(1.0, horizon=5000); c.update(1); c.extend([1] * 4000); "


def test_counting_loads_no_compiler() -> None:
    """Neither by default, as little is counted, nor when forbidden."""
    program = RELEASE + "print([n for n in ('numba', 'llvmlite') if n in sys.modules])"
    assert in_process(program) == "[]"


def test_everything_works_without_numba() -> None:
    """An installation without the extra: the plain path, and one line for who asks for more."""
    program = (
        "import sys; sys.modules['numba'] = None; sys.meta_path.insert(0, type('No', (), {'find_spec':"
        " staticmethod(lambda name, path=None, target=None: None)}));"
        + RELEASE
        + "from trilift.stream import fast\n"
        "from trilift.stream.fast import switch\n"
        "switch.find_spec = lambda name: None\n"
        "print(c.step, fast.status())\n"
        "try:\n    fast.enable()\nexcept trilift.ParameterError as error:\n    print(error)"
    )
    assert in_process(program).splitlines() == [
        "4001 fast kernels: not available (numba is not installed)",
        "the fast kernels need numba: pip install 'trilift[fast]'",
    ]


@pytest.mark.parametrize("text", ["2", "yes", "on", " 1"])
def test_the_variable_is_checked(fresh, monkeypatch, text) -> None:
    monkeypatch.setenv(switch.VARIABLE, text)
    with pytest.raises(ParameterError, match="TRILIFT_FAST must be 0, 1 or unset"):
        switch.kernels(1)


def test_the_variable_forbids(fresh, monkeypatch) -> None:
    monkeypatch.setenv(switch.VARIABLE, "0")
    assert switch.kernels(1 << 40) is None
    assert switch.status() == "fast kernels: turned off"
    assert not switch.in_use()


def test_the_variable_demands(fresh, monkeypatch) -> None:
    """Loaded at the first use; if that is impossible, an error and not a slow run."""
    made = SimpleNamespace(version="numba 0")
    monkeypatch.setenv(switch.VARIABLE, "1")
    monkeypatch.setattr(switch, "find_spec", lambda name: name)
    monkeypatch.setattr(loading, "load", lambda: made)
    assert switch.kernels(1) is made
    assert switch.status() == "fast kernels: in use (numba 0)"


def test_demanded_kernels_that_cannot_be_had_are_an_error(fresh, monkeypatch) -> None:
    def broken() -> None:
        raise OSError("no such\nthing")

    monkeypatch.setenv(switch.VARIABLE, "1")
    monkeypatch.setattr(switch, "find_spec", lambda name: name)
    monkeypatch.setattr(loading, "load", broken)
    for _ in range(2):
        with pytest.raises(ParameterError, match=r"cannot be used here: OSError: no such$"):
            switch.kernels(1)


def test_they_are_loaded_when_it_pays(fresh, monkeypatch) -> None:
    made = SimpleNamespace(version="numba 0")
    monkeypatch.setattr(switch, "find_spec", lambda name: name)
    monkeypatch.setattr(loading, "load", lambda: made)
    words = switch._WORTH // 4
    assert [switch.kernels(words) for _ in range(3)] == [None] * 3
    assert switch.status() == "fast kernels: will be loaded when they pay"
    assert switch.kernels(words) is made
    switch.disable()
    assert switch.kernels(words) is None
    switch.enable()
    assert switch.kernels(0) is made


def test_while_one_thread_loads_others_go_on(fresh, monkeypatch) -> None:
    monkeypatch.setattr(loading, "load", lambda: SimpleNamespace(version="numba 0"))
    with fresh.lock:
        assert switch.kernels(switch._WORTH) is None
    assert switch.kernels(0) is not None


def test_a_failure_is_remembered_and_the_plain_path_goes_on(fresh, monkeypatch) -> None:
    calls = []

    def broken() -> None:
        calls.append(1)
        raise StateError("the compiled rounding differs from the plain one on this machine")

    monkeypatch.setattr(switch, "find_spec", lambda name: name)
    monkeypatch.setattr(loading, "load", broken)
    assert [switch.kernels(switch._WORTH) for _ in range(3)] == [None] * 3
    assert len(calls) == 1
    assert "differs from the plain one" in switch.status()


# -- kernels are checked before they are used --------------------------------------------------------


def as_python(**others) -> SimpleNamespace:
    """The kernels as they stand in the source, not compiled."""
    return SimpleNamespace(**{name: getattr(kernels, name) for name in kernels.__all__} | others)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's scalars tell when they wrap
def test_the_source_of_the_kernels_passes_the_check() -> None:
    loading._check(as_python())


def wrong_bits(words, limits, flags, octets, packed, found):
    count = kernels.compare(words, limits, flags, octets, packed, found)
    packed[0, 3] ^= 1
    return count


def no_ties(words, limits, flags, octets, packed, found):
    kernels.compare(words, limits, flags, octets, packed, found)
    return 0


def other_ties(words, limits, flags, octets, packed, found):
    count = kernels.compare(words, limits, flags, octets, packed, found)
    found[:count, 1] += 1
    return count


def wrong_float(*arguments):
    kernels.decode(*arguments)
    *_, out, first, column = arguments
    out[first, column] = np.nextafter(out[first, column], np.inf)


def wrong_wide(*arguments):
    kernels.decode_wide(*arguments)
    *_, out, first, column = arguments
    out[first, column] *= -1


def wrong_rounding(values, factor, margin, out, unsure):
    count = kernels.round_half_up(values, factor, margin, out, unsure)
    out[-1] -= 1
    return count


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "wrong",
    [
        {"compare": wrong_bits},
        {"compare": no_ties},
        {"compare": other_ties},
        {"decode": wrong_float},
        {"decode_wide": wrong_wide},
        {"round_half_up": wrong_rounding},
    ],
)
def test_wrong_kernels_are_refused(wrong) -> None:
    with pytest.raises(StateError, match="differs from the plain one on this machine"):
        loading._check(as_python(**wrong))


def test_compiled_code_is_kept_only_where_the_package_could_be_changed_as_well(monkeypatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not loading._may_cache()
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/anywhere")
    assert loading._may_cache()


def test_machines_with_the_other_byte_order_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(StateError, match="little-endian"):
        loading.load()
