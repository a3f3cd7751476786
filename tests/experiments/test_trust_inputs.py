"""Hostile parameters and streams: every public callable is in the tables, and they find what is not handled.

The tables themselves are run with the part "inputs" of the trust page (tests/experiments/trust).
"""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from trilift.counters import Counter
from trilift.counters.edit import ECC, GaussianCC
from trilift.experiments.trust import inputs
from trilift.experiments.trust.input_entries import Entry, key_of
from trilift.experiments.trust.input_parameters import faults, tried
from trilift.experiments.trust.input_streams import Kind
from trilift.experiments.trust.input_streams import faults as stream_faults
from trilift.lift.errors import ParameterError

PACKAGES = (
    "trilift",
    "trilift.lift",
    "trilift.artifacts",
    "trilift.stream",
    "trilift.counters",
    "trilift.counters.durable",
    "trilift.counters.edit",
    "trilift.counters.neighbours",
    "trilift.counters.turnstile",
    "trilift.verify",
)
TABLES = inputs.parameter_entries()
ENTRIES: list[Entry] = [entry for entries in TABLES.values() for entry in entries]

# Made by the library alone, from what it has checked: results, and parts of ledgers and setups.
RECORDS = {
    "artifacts.artifact.Artifact",
    "artifacts.artifact.Provenance",
    "artifacts.certificate.Certificate",
    "artifacts.l2_artifact.L2Artifact",
    "artifacts.l2_artifact.L2Entry",
    "artifacts.l2_certificate.L2Certificate",
    "artifacts.listing.Entry",
    "counters.edit.choose.Choice",
    "counters.edit.design.Design",
    "counters.edit.inputs.BotRule",
    "counters.edit.ledger.EditLedger",
    "counters.edit.ledger.LedgerPart",
    "counters.neighbours.coupling.Coupling",
    "counters.neighbours.lifting.Lifted",
    "counters.setup.Setup",
    "counters.turnstile.budget.Budget",
    "counters.turnstile.budget.TurnstileLedger",
    "counters.turnstile.reading.Reading",
    "counters.turnstile.reading.Readings",
    "factorize.result.SearchResult",
    "lift.budget.ChainCost",
    "lift.dense.Dense",
    "lift.plan.Plan",
    "lift.plan.Shape",
    "stream.gaussian_ledger.GaussianLedger",
    "stream.ledger.Ledger",
    "stream.ledger.LevelLedger",
    "stream.levels.LevelLedger",
    "verify.completion.Bits",
    "verify.right_factor.RightFactorBounds",
}
# Nothing of theirs is a number, a truth value or one of a few words: streams (tried by the tables of
# streams), objects, functions, files (tried by those of files).
ELSEWHERE = {
    "artifacts.artifact.Provenance.from_json",
    "counters.durable.counter.DurableCounter",
    "counters.durable.counter.DurableCounter.extend",
    "counters.durable.counter.DurableCounter.open",
    "counters.durable.counter.DurableCounter.released",
    "counters.durable.counter.DurableCounter.skip",
    "counters.durable.counter.DurableCounter.update",
    "counters.durable.counter.DurableCounter.is_at",
    "counters.durable.counter.DurableCounter.kind_at",
    "counters.durable.holding.Holding.released",
    "counters.edit.design.Design.from_record",
    "counters.edit.ledger.EditLedger.from_record",
    "artifacts.listing.Entry.to_json",
    "counters.neighbours.lifting.is_data_independent",
    "counters.neighbours.lifting.lift",
    "counters.neighbours.lifting.noise_of",
    "counters.neighbours.reductions.are_distinct_neighbours",
    "counters.setup.Setup.processes",
    "counters.streamed.StreamSetup.many",
    "counters.streamed.StreamSetup.one",
    "stream.gaussian.GaussianRows.sample",
    "stream.laplace.LaplaceRows.floats",
    "stream.laplace.LaplaceRows.sample",
    "stream.process.NoiseProcess",
    "stream.process.NoiseProcess.at",
    "stream.process.NoiseProcess.range",
    "stream.process.NoiseProcess.variance",
}
# Whole subjects whose own tests try their parameters.
APART = ("factorize.", "counters.accounting.", "counters.frames.")
PLAIN = ("int", "float", "bool", "str", "Any", "Fraction")


def public_callables() -> Iterator[tuple[str, Any]]:
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            made = getattr(module, name)
            if inspect.isclass(made):
                if issubclass(made, BaseException) or not made.__module__.startswith("trilift"):
                    continue
                yield key_of(made), made
                for attribute in vars(made).keys() | {key for base in made.__mro__ for key in vars(base)}:
                    method = getattr(made, attribute)
                    if attribute[0] != "_" and (inspect.isfunction(method) or inspect.ismethod(method)):
                        yield key_of(method), method
            elif inspect.isfunction(made) and made.__module__.startswith("trilift"):
                yield key_of(made), made


def wanted(target: Any) -> set[str]:
    """Names of the parameters that take a number, a truth value, a word, or anything."""
    parameters = inspect.signature(target).parameters.values()
    return {
        p.name for p in parameters if p.name != "self" and any(word in str(p.annotation) for word in PLAIN)
    }


def test_every_public_callable_and_parameter_is_in_the_tables() -> None:
    known: dict[str, set[str]] = {}
    for entry in ENTRIES:
        known.setdefault(entry.name, set()).update(entry.wants)
    missing = {}
    for key, target in public_callables():
        if key.startswith(APART) or key in RECORDS | ELSEWHERE:
            continue
        left = wanted(target) - known.get(key, set())
        if left:
            missing[key] = sorted(left)
    assert missing == {}


def test_the_tables_name_parameters_that_there_are() -> None:
    for entry in ENTRIES:
        names = inspect.signature(entry.target).parameters
        assert entry.wants.keys() <= names.keys(), entry.name


def test_what_is_not_handled_is_found() -> None:
    """The tables can fail: a callable that checks nothing has a fault for nearly every value."""

    def careless(size: Any) -> float:
        return float(size)

    want = next(entry for entry in ENTRIES if entry.name == "stream.keys.simulation_key").wants["seed"]
    entry = Entry(careless, careless, {}, {"size": want})
    assert len(list(faults(entry))) > 0.7 * tried(entry)


def test_a_stream_that_leaves_a_trace_is_found() -> None:
    """A counter that has no horizon takes streams that the table holds to be too long."""
    found = stream_faults(Kind(lambda: GaussianCC(1, 0.01, simulation_seed=3), missing=True))
    assert "too long: accepted" in found
    assert "a refused stream changed the state" in found


def test_columns_of_dataframes() -> None:
    pandas = pytest.importorskip("pandas")

    def small() -> Counter:
        return Counter(1, growth="tapered", simulation_seed=5)

    plain = small().extend([1, 0, 1]).tolist()
    for kind in ("int64", "uint8", "float32"):
        assert small().extend(pandas.Series([1, 0, 1], dtype=kind)).tolist() == plain
    for column in (
        pandas.Series([1, None, 1]),
        pandas.Series([1, None, 1], dtype="Int64"),
        pandas.Series([True, False, True]),
        pandas.Series(["1", "0", "1"]),
        pandas.DataFrame({"a": [1, 0, 1]}),
    ):
        counter = small()
        with pytest.raises(ParameterError, match=r"^inputs? must"):
            counter.extend(column)
        assert counter.step == 0
    events = ECC(1, 0.01, base="chain", horizon=9, simulation_seed=3)
    missing = ECC(1, 0.01, base="chain", horizon=9, simulation_seed=3)
    nullable = pandas.Series([1, None, 1], dtype="Int64")
    assert np.array_equal(events.extend(nullable), missing.extend([1, None, 1]))
