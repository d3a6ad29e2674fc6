"""Every `--json` and every `to_dict` meets the schema that it names, and a schema refuses what it does not know."""

import copy
import json
from importlib.resources import files

import jsonschema
import pytest
from jsonschema import Draft202012Validator

import accountable_ope as aope
import every_result
from accountable_ope.cli import experiments
from accountable_ope.cli.application import COMMANDS
from accountable_ope.report.schemas import DOCUMENTS, derived_schema, file_name, schema
from command import aope_command
from hostile.commands import CHOICE, FACTS, GOOD, MDP, PROBLEM, QUESTION, write_files
from shown_results import NAMES, result

RELATIVE = (*PROBLEM, *FACTS[:5], "--relative-norm", 2, *CHOICE, "--radius", "azuma")
ALSO = {
    "bound, decided and explained": ("bound", "log.parquet", *QUESTION, "--threshold", 0.1, "--explain"),
    "bound, a ladder": ("bound", "log.parquet", *QUESTION[:-2], "--ladder"),
    "bound, nothing fits": ("bound", "log.parquet", *QUESTION, "--norm-bound", 0.0001, "--radius", "certified"),
    "bound, relative norm": ("bound", "log.parquet", *RELATIVE),
    "bound, misfit norm": ("bound", "log.parquet", *QUESTION, "--misfit-norm", 1, "--landmarks", 4),
    "diagnose, decided": ("diagnose", *GOOD["diagnose"], "--threshold", 0.1),
    "sensitivity, all": ("sensitivity", "log.parquet", *QUESTION, "--threshold", 0.1, "--width", 0.1),
    "monitor, decided": ("monitor", *GOOD["monitor"], "--threshold", 0.1),
    "check, declared": ("check", "log.parquet", "--reward-range", 0, 1, "--starts", "starts.parquet"),
    "verify, against data": ("verify", "certificate.json", "--data", "log.parquet", *PROBLEM),
    "families": ("coverage", "--list"),
    "arena, listed": ("arena", "--list", "--problem", "bandits"),
    "arena, planned": ("arena", "--plan", "--problem", "bandit", "--contestant", "aope sandwich", "--n", 300, "--workers", 1),
    "tasks": ("trust", "--list", "--task", "coarse"),
}  # fmt: skip
COMMAND_LINES = {name: (name, *words) for name, words in GOOD.items()} | ALSO
OF_ANOTHER_KIND = {"families": "families", "tasks": "tasks", "arena, listed": "entrants", "arena, planned": "arena-plan"}
SLOW = {"demo", "experiment"}


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each command prints, made when it is first asked for."""
    made = {}

    def document(name):
        if name not in made:
            folder = write_files(tmp_path_factory.mktemp("schemas"))
            answer = aope_command(*COMMAND_LINES[name], "--json", cwd=folder)
            assert answer.stdout, answer.stderr
            made[name] = json.loads(answer.stdout)
        return made[name]

    return document


def kind_of(document):
    publisher, kind, version = document["schema"].split("/")
    assert (publisher, version) == ("accountable-ope", "1")
    return kind


def validate(document):
    jsonschema.validate(document, schema(kind_of(document)), Draft202012Validator)


@pytest.mark.parametrize("kind", sorted(DOCUMENTS))
def test_a_shipped_schema_is_the_derived_one(kind):
    Draft202012Validator.check_schema(schema(kind))
    assert schema(kind) == derived_schema(kind), "write data/schemas anew"


def test_no_file_is_left_over():
    folder = files("accountable_ope") / "data" / "schemas"
    assert {each.name for each in folder.iterdir()} == {file_name(kind) for kind in DOCUMENTS}


def test_every_command_is_asked():
    assert set(COMMANDS) <= {words[0] for words in COMMAND_LINES.values()}


@pytest.mark.parametrize("name", sorted(set(COMMAND_LINES) - SLOW))
def test_what_a_command_prints_meets_its_schema(name, printed):
    document = printed(name)
    assert kind_of(document) == OF_ANOTHER_KIND.get(name, COMMAND_LINES[name][0])
    validate(document)


@pytest.mark.slow
def test_the_demonstration_meets_the_schema_of_a_bound(tmp_path):
    answer = aope_command("demo", "--json", "--output", tmp_path)
    assert answer.returncode == 0, answer.stderr
    written = json.loads((tmp_path / "result.json").read_text())
    assert kind_of(written) == "bound"
    validate(written)
    assert json.loads(answer.stdout) == written


def test_an_experiment_meets_its_schema(tmp_path, monkeypatch):
    def stub(run, markdown):
        return {"task": run.task, "trials": 1, "rows": 3, "files": ["figure1.png"], "findings": ["one"]}

    monkeypatch.setattr(experiments, "_document", stub)
    answer = aope_command("experiment", "figure1", "--quick", "--out", tmp_path, "--json")
    validate(json.loads(answer.stdout))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_result_gives_meets_its_schema(name):
    validate(result(name).to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(every_result.RESULTS))
def test_every_kind_of_interval_meets_the_schema(name):
    interval = every_result.result(name)
    document = interval.to_dict()
    assert kind_of(document) == "bound"
    validate(document)


def places(document, path=()):
    """Every record of a document that has fields."""
    if isinstance(document, dict):
        yield path
        for name, each in document.items():
            yield from places(each, (*path, name))
    elif isinstance(document, list) and document:
        yield from places(document[0], (*path, 0))


def at(document, path):
    for step in path:
        document = document[step]
    return document


OPEN = {"parts", "read_as", "smallest"}
"""Records whose fields differ from one to the next: the numbers of a clause, names of columns, and what a test is made of."""


@pytest.mark.parametrize("name", sorted(set(GOOD) - SLOW))
def test_an_unknown_field_and_a_missing_one_are_refused_everywhere(name, printed):
    document = printed(name)
    check = Draft202012Validator(schema(kind_of(document)))
    assert check.is_valid(document)
    tried = 0
    for path in places(document):
        if OPEN & {step for step in path if isinstance(step, str)}:
            continue
        changed = copy.deepcopy(document)
        at(changed, path)["no_such_field"] = 1
        assert not check.is_valid(changed), f"a new field at {path}"
        changed = copy.deepcopy(document)
        optional = {"columns", "repeat"} if path == () else set()
        missing = next(each for each in at(changed, path) if each not in optional)
        del at(changed, path)[missing]
        assert not check.is_valid(changed), f"without {missing} at {path}"
        tried += 1
    assert tried


def test_another_version_is_refused(printed):
    changed = {**printed("bound"), "schema": "accountable-ope/bound/2"}
    assert not Draft202012Validator(schema("bound")).is_valid(changed)


def test_a_command_and_a_result_give_the_same_document(tmp_path):
    write_files(tmp_path)
    printed = json.loads(aope_command("bound", "log.parquet", *QUESTION, "--json", cwd=tmp_path).stdout)
    data, starts = aope.load_transitions(tmp_path / "log.parquet"), aope.load_starts(tmp_path / "starts.parquet")
    facts = aope.Assumptions(discount=0.6, reward_range=(0, 1), norm_bound=3.0, reward_noise=False)
    asked = aope.Problem(data, starts, MDP.policy, facts)
    interval = aope.bound_value(asked, features=aope.RandomFourier(3, seed=1), kernel=aope.Gaussian(1.0), radius="azuma")
    document = interval.to_dict()
    assert set(document) == set(printed) - {"columns"}
    assert document["intervals"][0]["lower"] == pytest.approx(printed["intervals"][0]["lower"], rel=1e-12)
    assert document["verdict"]["sentence"] == printed["verdict"]["sentence"]
    assert document["assumptions"] == printed["assumptions"] and document["fragility"].keys() == printed["fragility"].keys()
