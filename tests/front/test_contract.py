"""The JSON that other programs rely on, key by key, and the exit codes that go with it."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import trilift.lift
import typer
from trilift.application import app
from trilift.artifacts import Artifact, catalogue, digest, find, save
from trilift.commands.plan import _MECHANISMS
from trilift.counters import chain_of
from trilift.lift import Dyadic, Stage, chain_cost, plan
from trilift.lift.mechanisms import NAMES, price

Run = Callable[..., Any]


CERTIFY: dict[str, type] = {
    "verified": bool,
    "kind": str,
    "size": int,
    "objective": str,
    "sensitivity": str,
    "max_row_norm_sq": str,
    "mean_row_norm_sq": str,
    "kappa_max": float,
    "kappa_mean": float,
    "interior_kappa_max": float,
    "interior_kappa_mean": float,
    "sha256": str,
}
ARTIFACTS = ["name", "kind", "size", "objective", "kappa_max", "kappa_mean"]
ARTIFACTS += ["interior_kappa_max", "interior_kappa_mean", "sha256", "certified"]
PLAN: dict[str, type] = {
    "horizon": int,
    "epsilon": float,
    "objective": str,
    "levels": list,
    "max_se": float,
    "mean_se": float,
    "kappa_max": float,
    "kappa_mean": float,
    "bound_max_se": float,
    "bound_mean_se": float,
}


def rational(text: str) -> Fraction:
    top, bottom = text.split("/")
    return Fraction(int(top), int(bottom))


@pytest.mark.parametrize("name", ["stage-max-9", "stage-mean-17", "direct-mean-8"])
def test_certify(run: Run, name: str) -> None:
    done = run("certify", name, "--json")
    assert (done.code, done.err) == (0, "")
    record = done.json
    assert list(record) == list(CERTIFY)
    artifact = find(name)
    direct = artifact.kind == "direct"
    for key, kind in CERTIFY.items():
        if direct and key.startswith("interior"):
            assert record[key] is None
        else:
            assert type(record[key]) is kind, key
    assert record["verified"] is True
    assert (record["kind"], record["size"], record["objective"]) == (
        artifact.kind,
        artifact.stage.size,
        artifact.certificate.objective,
    )
    assert record["sha256"] == digest(artifact.stage)
    b = rational(record["sensitivity"])
    assert b == artifact.stage.sensitivity()
    rows = artifact.stage.row_norms_sq()
    assert rational(record["max_row_norm_sq"]) == rows.max()
    for objective in ("max", "mean"):
        q = rational(record[f"{objective}_row_norm_sq"])
        kappa = 2 * float(q * b * b) / math.log2(record["size"]) ** 3
        assert record[f"kappa_{objective}"] == pytest.approx(kappa, rel=1e-14)
        assert direct or record[f"interior_kappa_{objective}"] <= record[f"kappa_{objective}"] * (1 + 1e-12)


def test_certify_takes_files_and_names(run: Run) -> None:
    path = next(entry.path for entry in catalogue() if entry.name == "direct-max-4")
    assert run("certify", path, "--json").json == run("certify", "direct-max-4", "--json").json


def false_claim(artifact: Artifact) -> Artifact:
    low = artifact.certificate.sensitivity - Fraction(1, 2**60)
    return replace(artifact, certificate=replace(artifact.certificate, sensitivity=low))


def false_kappa(artifact: Artifact) -> Artifact:
    low = math.nextafter(artifact.certificate.kappa_mean, 0.0) * (1 - 1e-12)
    return replace(artifact, certificate=replace(artifact.certificate, kappa_mean=low))


def false_numbers(artifact: Artifact) -> Artifact:
    old = artifact.stage
    num = old.A.num.copy()
    num[0, 0] += 2  # keeps the exponent least
    stage = Stage(Dyadic(num, old.A.exp), old.B, old.w, old.g)
    return Artifact(stage, replace(artifact.certificate, sha256=digest(stage)), artifact.provenance)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [(false_claim, "sensitivity <="), (false_kappa, "kappa_mean <="), (false_numbers, "T = A B")],
)
def test_a_false_certificate_exits_with_1(run: Run, spoil: Callable[[Artifact], Artifact], why: str) -> None:
    save(spoil(find("stage-max-9")), "false.npz")
    done = run("certify", "false.npz", "--json")
    assert done.code == 1
    assert list(done.json) == [*CERTIFY, "failure"]
    assert done.json["verified"] is False
    assert done.json["failure"].startswith(why)
    assert done.err.splitlines() == [f"trilift: not verified: {done.json['failure']}"]
    for_people = run("certify", "false.npz")
    assert for_people.code == 1
    assert "NO" in for_people.out


def test_people_see_decimals_beside_fractions(run: Run) -> None:
    artifact = find("direct-max-4")
    low = replace(artifact.certificate, max_row_norm_sq=Fraction(7, 4))
    save(replace(artifact, certificate=low), "false.npz")
    for_people, for_programs = run("certify", "false.npz"), run("certify", "false.npz", "--json")
    assert "max_row_norm_sq   1.75 = 7/4" in for_people.out
    assert "not verified: max_row_norm_sq <= 7/4 (1.75) fails" in for_people.err
    assert "not verified: max_row_norm_sq <= 7/4 fails" in for_programs.err


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04" + bytes(200)])
def test_an_unreadable_file_exits_with_2(refused: Callable[..., str], content: bytes) -> None:
    Path("broken.npz").write_bytes(content)
    assert "broken.npz" in refused("certify", "broken.npz", "--json")


def test_a_file_that_is_no_artifact_is_called_that_everywhere(refused: Callable[..., str]) -> None:
    Path("visits.csv").write_text("a,b\n1,2\n")
    Path("cut.npz").write_bytes(
        next(e.path for e in catalogue() if e.name == "stage-max-17").read_bytes()[:-1]
    )
    for name in ("visits.csv", "cut.npz"):
        messages = {
            refused("certify", name),
            refused("inspect", name),
            refused("export", name, "--out", "folder"),
            refused("plan", "-n", 9, "-e", 1, "--artifact", name),
            refused("count", "-", "-n", 9, "-e", 1, "--chain", name, stdin=b"1\n"),
        }
        assert len(messages) == 1
        assert f"{name}: truncated, or not an artifact (" in messages.pop()


def test_unknown_artifacts_exit_with_2(refused: Callable[..., str]) -> None:
    assert "no such file" in refused("certify", "nothing.npz", "--json")
    assert "neither a file nor an artifact of the catalogue" in refused("certify", "nothing")
    assert ": " in refused("certify", ".")  # a folder


def levels_cost(record: dict[str, Any]) -> Any:
    names = [level["name"] for level in record["levels"]]
    return chain_cost(chain_of(names), record["horizon"], objective=record["objective"])


@pytest.mark.parametrize(("horizon", "epsilon", "objective"), [(1000, "1", "max"), (5000, "0.1", "mean")])
def test_plan(run: Run, horizon: int, epsilon: str, objective: str) -> None:
    done = run("plan", "--horizon", horizon, "--epsilon", epsilon, "--objective", objective, "--json")
    assert (done.code, done.err) == (0, "")
    record = done.json
    assert list(record) == list(PLAN)
    assert {key: type(value) for key, value in record.items()} == PLAN
    assert (record["horizon"], record["epsilon"], record["objective"]) == (horizon, float(epsilon), objective)
    cost, eps = levels_cost(record), float(epsilon)
    for level, scale in zip(record["levels"], cost.scales, strict=True):
        assert list(level) == ["name", "size", "scale"]
        assert level["size"] == find(level["name"]).stage.size
        assert level["scale"] == pytest.approx(scale / eps, rel=1e-12)
    for which in ("max", "mean"):
        se = record[f"{which}_se"]
        assert se == pytest.approx(getattr(cost, f"{which}_se")(eps), rel=1e-12)
        assert record[f"kappa_{which}"] == pytest.approx(se * eps**2 / math.log2(horizon) ** 3, rel=1e-12)
        assert record[f"bound_{which}_se"] >= se


def test_plan_for_one_step_has_no_kappa(run: Run) -> None:
    record = run("plan", "-n", 1, "-e", 1, "--json").json
    assert (record["kappa_max"], record["kappa_mean"]) == (None, None)
    assert record["max_se"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_plan_prices_mechanisms(run: Run, name: str) -> None:
    """The same keys as for a chain; of the paper's lift only bounds are known."""
    done = run("plan", "-n", 1000, "-e", "0.5", "--mechanism", name, "--objective", "mean", "--json")
    assert (done.code, done.err) == (0, "")
    record = done.json
    assert list(record) == list(PLAN)
    assert record == price(name, 1000, objective="mean").record(0.5)
    exact = ("max_se", "mean_se", "kappa_max", "kappa_mean")
    assert [record[key] is None for key in exact] == [name == "paper"] * 4
    text = run("plan", "-n", 1000, "-e", "0.5", "--mechanism", name).out
    assert record["levels"][0]["name"].split("-")[0] in text
    assert ("kappa max   at most 0." in text) == (name == "paper")


def test_plan_prices_an_arity(run: Run) -> None:
    record = run("plan", "-n", 288, "-e", 1, "--mechanism", "kary", "--arity", 17, "--json").json
    assert record["max_se"] == 256.0
    assert "undefined for one step" in run("plan", "-n", 1, "-e", 1, "--mechanism", "kary").out


def test_the_help_names_every_mechanism() -> None:
    assert _MECHANISMS == NAMES


def test_plan_considers_everything(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped artifacts, the user's own, and the files given; an unreadable file is said once."""
    seen: list[set[str]] = []

    def spy(candidates: Any, horizon: int, *, objective: str) -> Any:
        seen.append(set(candidates))
        return plan(candidates, horizon, objective=objective)

    monkeypatch.setattr(trilift.lift, "plan", spy)
    for path in ("catalogue/mine.npz", "other.npz"):
        save(find("direct-max-4"), path)
    (Path("catalogue") / "junk.npz").write_bytes(b"junk")
    done = run("plan", "-n", 4, "-e", 1, "--artifact", "other.npz", "--artifact", "stage-max-9", "--json")
    assert done.code == 0
    lines = done.err.splitlines()
    assert lines[0].startswith("trilift: left out of the catalogue:")
    assert lines[1:] == [f"{name} was considered and not used" for name in ("other.npz", "stage-max-9")]
    shipped = {entry.name for entry in catalogue() if entry.source == "shipped"}
    assert len(shipped) >= 22
    assert seen == [shipped | {"mine", "other.npz"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", 0, "-e", 1), "horizon must be an integer >= 1 and <= 1000000000000000, got 0"),
        (("-n", "many", "-e", 1), "horizon must be an integer, such as 1000, got 'many'"),
        (("-n", "1e5", "-e", 1), "horizon must be an integer, such as 100000, got '1e5'"),
        (("-n", 5, "-e", 1, "--mechanism", "tree"), "mechanism must be one of 'binary-tree', "),
        (("-n", 5, "-e", 1, "--mechanism", "paper", "--arity", 3), "'paper' has no arity to choose"),
        (("-n", 5, "-e", 1, "--mechanism", "kary", "--arity", 1), "arity must be an integer >= 2"),
        (("-n", 5, "-e", 1, "--mechanism", "kary", "--artifact", "x.npz"), "leave it out beside --mechanism"),
        (("-n", 5, "-e", 1, "--arity", 3), "--arity is about a --mechanism"),
        (("-n", 5), "Missing option '--epsilon'"),
        (("-n", 5, "-e", "0"), "epsilon must be a finite number > 0"),
        (("-n", 5, "-e", "1e-200"), "epsilon must be larger, so that squared errors fit floats, got 1e-200"),
        (("-n", 5, "-e", 1, "--objective", "MAX"), "objective must be one of 'max', 'mean', got 'MAX'"),
        (("-n", 5, "-e", 1, "--artifact", "none.npz"), "none.npz: no such file"),
        (("-n", 10**40, "-e", 1), "horizon must be an integer >= 1 and <= 1000000000000000"),
        (("-n", 5, "-e", 1, "--fast"), "No such option"),
    ],
)
def test_bad_plans(refused: Callable[..., str], arguments: tuple[object, ...], message: str) -> None:
    assert message in refused("plan", *arguments)


def test_artifacts(run: Run) -> None:
    save(find("stage-mean-9"), "catalogue/mine.npz")
    done = run("artifacts", "--json")
    assert (done.code, done.err) == (0, "")
    assert [record["name"] for record in done.json] == [entry.name for entry in catalogue()]
    for record in done.json:
        assert list(record) == ARTIFACTS
        claims = find(record["name"]).certificate
        assert record["certified"] is True
        for key in ARTIFACTS[1:-1]:
            assert record[key] == getattr(claims, key)
            assert type(record[key]) is type(getattr(claims, key))
    assert done.json[-1]["name"] == "mine"


def test_your_own_false_claims_are_listed_as_such(run: Run) -> None:
    save(false_claim(find("stage-max-9")), "catalogue/false.npz")
    save(find("stage-max-9"), "catalogue/true.npz")
    done = run("artifacts", "--json")
    assert done.code == 0
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("trilift: false: not verified: sensitivity <=")
    records = {record["name"]: record for record in done.json}
    assert list(records["false"]) == ARTIFACTS
    assert records["false"]["certified"] is False
    assert [value for key, value in records["false"].items() if "kappa" in key] == [None] * 4
    assert records["true"]["certified"] is True
    assert records["true"]["kappa_max"] == find("stage-max-9").certificate.kappa_max
    lines = run("artifacts").out.splitlines()
    assert ["NO" in line.split() for line in lines if line.split()[:1] in (["false"], ["true"])] == [
        True,
        False,
    ]


def test_a_plan_uses_no_unproved_artifact(run: Run) -> None:
    """With a false top for 4 steps that would beat every true one."""
    good = find("direct-max-4").stage
    low = Artifact(
        Stage(good.A, good.B.scaled(-3), good.w, good.g),
        replace(find("direct-max-4").certificate, sha256=""),
        find("direct-max-4").provenance,
    )
    false = replace(low, certificate=replace(low.certificate, sha256=digest(low.stage)))
    save(false, "catalogue/low.npz")
    done = run("plan", "-n", 4, "-e", 1, "--json")
    assert done.code == 0
    assert [level["name"] for level in done.json["levels"]] == ["direct-max-4"]
    assert done.err.startswith("trilift: left out of the plan: low: not verified: T = A B")
    for given in ("catalogue/low.npz", "low"):
        done = run("plan", "-n", 4, "-e", 1, "--artifact", given, "--json")
        assert (done.code, done.out) == (1, "")
        assert "low.npz: not verified: T = A B" in done.err


def test_a_damaged_artifact_is_left_out_of_plans(run: Run) -> None:
    data = bytearray(next(e.path for e in catalogue() if e.name == "direct-max-4").read_bytes())
    data[len(data) // 2] ^= 255
    Path("catalogue/bad.npz").write_bytes(data)
    done = run("plan", "-n", 4, "-e", 1, "--json")
    assert done.code == 0
    assert "bad.npz" in done.err


def test_tables_for_people(run: Run) -> None:
    done = run("artifacts")
    assert done.code == 0
    assert "stage-mean-129" in done.out
    assert "catalogue" in done.err
    done = run("plan", "-n", 100, "-e", "1/2")
    assert "trilift count FILE --epsilon 1/2 --horizon 100 --objective max --chain" in done.out


def test_usage(run: Run, refused: Callable[..., str]) -> None:
    assert run("--version").out.startswith("trilift 0.")
    assert "No such command 'bogus'" in refused("bogus")
    assert run("plan", "--help").code == 0
    bare = run()  # its exit code depends on the version of typer
    assert "Usage" in bare.out + bare.err


def test_every_command_is_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    commands: Any = typer.main.get_command(app)
    assert {"count", "plan", "reproduce", "demo"} <= set(commands.commands)
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    documented = {name for heading in headings for name in heading.split(" and ")}
    for name, command in commands.commands.items():
        assert name in documented
        for option in (option for parameter in command.params for option in parameter.opts):
            if option.startswith("--"):
                assert option in text or option == "--help", (name, option)
