"""The switch as a test wants it, and as it was afterwards."""

from collections.abc import Callable, Iterator

import pytest
from trilift.stream.fast import switch


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> object:
    """A process in which nobody has asked for anything yet."""
    monkeypatch.delenv(switch.VARIABLE, raising=False)
    state = switch._Switch()
    monkeypatch.setattr(switch, "_switch", state)
    return state


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[object, object]]]:
    """Call something by the plain path and by the kernels."""
    pytest.importorskip("numba")
    before = switch._switch.wanted, switch._switch.asked

    def run(call: Callable[[], object]) -> tuple[object, object]:
        switch.disable()
        plain = call()
        switch.enable()
        return plain, call()

    yield run
    switch._switch.wanted, switch._switch.asked = before
