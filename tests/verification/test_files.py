"""Certificate files: what is written is read again bit by bit, fits the published schema, and anything else is one sentence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

import accountable_ope as aope
from accountable_ope.verification import load_record, verify_record
from accountable_ope.verification.files import derived_schema, schema
from every_result import RESULTS, result

SOLVER = ("solver", "tightening", "extreme", "ellipsoid_ball", "multipliers", "pointwise", "spheres")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "certificate.json"
    result("certified").save(path)
    return path


@pytest.mark.parametrize("name", RESULTS)
def test_a_file_proves_what_the_result_proves(name, tmp_path):
    path = tmp_path / "certificate.json"
    interval = result(name)
    interval.save(path)
    jsonschema.Draft202012Validator(schema()).validate(json.loads(path.read_text()))
    found = aope.verify(path)
    assert found.valid, found.message
    assert (found.lower, found.upper) == pytest.approx((interval.lower, interval.upper), rel=1e-3, nan_ok=True)
    assert [each.text for each in found.premises] == [each.text for each in interval.premises]
    again = load_record(path)
    np.testing.assert_array_equal(again.classes[0].statistic.pair_gram, interval.certificates[0].statistic.pair_gram)


def test_a_file_by_itself_says_that_nobody_compared_its_sums(saved):
    """Sums of rows and tests are what the file says: p-values that were forged are found with the data alone."""
    told = aope.verify(saved).message
    assert "the sums of its rows and its tests, which are taken from the certificate and not compared with data" in told
    assert "`--data LOG` (in Python `data=`) compares them" in told
    interval = result("certified")
    assert "not compared" not in interval.verify().message, "the interval has them from the rows"
    document = json.loads(saved.read_text())
    for part in document["classes"]:
        for component in part["specification"]["components"]:
            component["p_value"] = 0.7
    saved.write_text(json.dumps(document))
    assert "not compared with data" in aope.verify(saved).message


def test_the_published_schema_is_that_of_the_records():
    assert schema() == derived_schema()


def test_the_verifier_imports_no_solver():
    code = "import sys, accountable_ope.verification.verify, accountable_ope.verification.files; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in loaded if name.startswith("accountable_ope.programs.") and name.rsplit(".", 1)[1] in SOLVER]


def changed(document: dict, **entries: object) -> dict:
    return {**document, **entries}


BROKEN = {
    "no JSON": lambda d: "{",
    "a list": lambda d: "[]",
    "another format": lambda d: json.dumps(changed(d, format="something")),
    "another version": lambda d: json.dumps(changed(d, version=99)),
    "an unknown entry": lambda d: json.dumps(changed(d, more=1)),
    "a missing entry": lambda d: json.dumps({k: v for k, v in d.items() if k != "delta"}),
    "a wrong type": lambda d: json.dumps(changed(d, estimand=5)),
    "a matrix that is none": lambda d: json.dumps(d).replace('"float64": "', '"float64": "!', 1),
    "an assumption out of range": lambda d: json.dumps(changed(d, assumptions={**d["assumptions"], "discount": 7})),
    "bytes": lambda d: "\x00\x01",
    "deep nesting": lambda d: "[" * 100_000,
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_no_certificate_is_one_sentence(how, saved):
    saved.write_text(BROKEN[how](json.loads(saved.read_text())))
    with pytest.raises(aope.InvalidFile, match=re.escape(saved.name)):
        aope.verify(saved)


FORGED = {
    "ends": lambda d: d["result"].update(upper=d["result"]["upper"] - 0.01),
    "ends before the cut": lambda d: d["result"].update(unclipped=[0.4, 0.5], lower=0.4, upper=0.5),
    "delta": lambda d: d["delta"].update(total=0.01, kernel=0.01),
    "a share of delta": lambda d: d["delta"].update(kernel=0.9),
    "status": lambda d: d["result"].update(status="INCONSISTENT"),
    "reward range": lambda d: d["assumptions"].update(reward_range=[0.0, 0.5]),
    "norm bound": lambda d: d["assumptions"].update(norm_bound=0.1),
    "premises": lambda d: d.update(premises=d["premises"][:-1]),
    "radius": lambda d: d["radius"].update(name="azuma"),
    "guarantee": lambda d: d["radius"].update(guarantee="ASYMPTOTIC"),
    "multipliers": lambda d: [term.update(multiplier=0.0) for term in d["classes"][0]["upper"]["terms"]],
    "a negative multiplier": lambda d: d["classes"][0]["upper"]["terms"][0].update(multiplier=-1.0),
    "a limit": lambda d: d["classes"][0]["upper"]["terms"][0].update(limit=1e-9),
    "a role": lambda d: d["classes"][0]["upper"]["terms"][0].update(role="wish"),
    "a round": lambda d: d["classes"][0]["upper"]["terms"][0].update(round=99),
    "a rate": lambda d: d["classes"][0]["upper"]["terms"][0].update(rate=-1.0),
    "the range": lambda d: d["classes"][0]["rounds"][-1].update(residual_bound=1e-3),
    "steps": lambda d: d["classes"][0].update(steps=[]),
    "the sums": lambda d: d["classes"][0].update(objective=[2 * x for x in d["classes"][0]["objective"]]),
    "the number of rows": lambda d: d["data"].update(rows=10**6),
    "no class": lambda d: d.update(classes=[]),
    "the kernel": lambda d: d["kernel"]["parameters"][0].update(value=3.0),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_file_is_not_proved(what, saved):
    document = json.loads(saved.read_text())
    FORGED[what](document)
    saved.write_text(json.dumps(document))
    found = aope.verify(saved)
    assert not found.valid and found.message.startswith("Not proved: ")


def test_forged_emptiness_is_not_proved():
    """A set that is not empty, reported as INCONSISTENT."""
    interval = result("azuma")
    refuted = result("azuma, refuted").record()
    record = interval.record()
    part = replace(record.classes[0], upper=refuted.classes[0].upper, lower=refuted.classes[0].lower)
    forged = replace(record, classes=(part,), result=replace(refuted.result, start_error=0.0))
    assert not verify_record(forged).valid


def test_only_json_files_are_written(tmp_path):
    with pytest.raises(aope.InvalidInput, match="json"):
        result("azuma").save(tmp_path / "certificate.txt")
