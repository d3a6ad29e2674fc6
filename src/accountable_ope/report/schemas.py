"""The JSON Schema of every document; the files in data/schemas are made from here, and are what is shipped."""

from __future__ import annotations

import json
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any, cast

from ..arena.bout import Judgment as Kept
from ..bounds.correction import CorrectionStatus
from ..bounds.decision import Judgment
from ..bounds.diagnosis import EstimateVerdict
from ..bounds.findings import FlipOutcome, Parameter, RowsOutcome
from ..problem.statements import Guarantee, Status
from ..programs.certificate import SolveStatus
from .label import PUBLISHER, schema_name
from .shapes import COUNT, FLAG, NUMBER, SHARE, TEXT, Shape, free, many, maybe, one_of, pair, record, ref


def _names(kind: type[Enum]) -> Shape:
    return one_of(each.name for each in kind)


def _values(kind: type[Enum]) -> Shape:
    return one_of(each.value for each in kind)


STATUS, GUARANTEE, JUDGMENT = _names(Status), _values(Guarantee), _names(Judgment)
END = maybe(NUMBER)
"""Null where there is no interval."""

_ENDS: dict[str, Shape] = {"lower": END, "upper": END}
_SHARED: dict[str, Shape] = {
    **_ENDS, "normalized": pair(END), "delta": SHARE, "guarantee": GUARANTEE, "status": STATUS, "advice": TEXT,
    "transitions": COUNT, "assumed": many(TEXT), "doubts": many(TEXT),
}  # fmt: skip
_METHOD: dict[str, Shape] = {"estimand": TEXT, "method": TEXT}
_ESTIMATE: dict[str, Shape] = {"estimate": END, "standard_error": END}
_WEIGHED: dict[str, Shape] = {
    **_METHOD, **_ENDS, "delta": SHARE, "guarantee": GUARANTEE, "status": STATUS, "advice": TEXT, "episodes": COUNT,
    "transitions": COUNT, "return_range": pair(NUMBER), "assumed": many(TEXT), "doubts": many(TEXT),
}  # fmt: skip

PARTS: dict[str, Shape] = {
    "certificate": record({
        "status": _names(SolveStatus), "bound": END, "value": END, "gap": END,
        "constraints": many(record({"role": TEXT, "limit": NUMBER, "multiplier": NUMBER})),
    }),
    "specification": record({
        "tested": FLAG, "reason": TEXT, "first_rows": maybe(COUNT), "p_value": END,
        "smallest": maybe(free({"p_value": END})),
    }),
    "class": record({
        "features": TEXT, "norm_bound": END, "least_norm": END, "least_loss": END, "specification": ref("specification"),
        "norm_test": maybe(record({"norm_bound": NUMBER, "norm": NUMBER, "p_value": END})), "least_misfit": NUMBER, "note": TEXT,
        "upper": ref("certificate"), "lower": ref("certificate"),
        "tightening": maybe(record({
            "identification": END, "evidence": many(TEXT),
            "rounds": many(record({"residual_bound": END, "variance": END})),
        })),
    }),
    "recipe": record({
        "kind": TEXT, "features": TEXT, "kernel": TEXT, "earlier_rows": COUNT, "earlier_episodes": maybe(COUNT), "sha256": TEXT,
        "within": END, "enlarged": END, "overlap": END, "norm_bound": END, "ridge": END, "held_out": END,
        "candidates": many(record({
            "name": TEXT, "columns": COUNT, "misfit": END, "noise": END, "loss": END, "deviation": END, "chance": END,
            "ridge": END, "chosen": FLAG,
        })),
        "judged_by": COUNT, "statements": many(TEXT),
    }),
    "interval": record({
        "estimand": TEXT, "radius": TEXT, "theorem": TEXT, "guarantee": GUARANTEE, "status": STATUS, "advice": TEXT, **_ENDS,
        "normalized": pair(END), "unclipped": pair(END), "clipped": pair(FLAG), "radius_level": END, "radius_rounding": NUMBER,
        "radius_uses": TEXT, "assumed": many(TEXT), "outcome": STATUS, "doubted": FLAG, "doubts": many(TEXT),
        "doubts_found": many(record({"kind": TEXT, "p_value": END, "weak": FLAG, "text": TEXT})), "remarks": many(TEXT),
        "certificates_check": FLAG, "recipe": maybe(ref("recipe")), "classes": many(ref("class")),
    }),
    "decision": record({
        "claim": TEXT, "judgment": JUDGMENT, "if_the_class_holds": maybe(JUDGMENT), "delta": SHARE, "text": TEXT,
    }),
    "verdict": record({
        "sentence": TEXT, "second_line": TEXT, "decision": maybe(ref("decision")), "advice": TEXT, "rows_wanted": maybe(TEXT),
        "parts": many(free({"name": TEXT, "text": TEXT})),
    }),
    "sentence": record({"sentence": TEXT}),
    "logged-value": record({
        **_METHOD, **_ESTIMATE, "large_sample": pair(END), "episodes": COUNT, "truncated": COUNT, "truncation": NUMBER,
        "return_range": pair(NUMBER), **_SHARED,
    }),
    "cross-fitted": record({
        **_METHOD, **_ESTIMATE, "start_error": END, "unclipped": pair(END), "episodes": COUNT, "blocks": FLAG,
        "effective_sample_size": NUMBER, "largest_share": NUMBER, "coordinates": COUNT, **_SHARED,
    }),
    "sandwich": record({
        **_METHOD, **_ESTIMATE, "start_error": END, "unclipped": pair(END), "condition": END, "unseen": COUNT, "features": TEXT,
        **_SHARED,
    }),
    "anderson-rubin": record({
        **_METHOD, "identified": FLAG, "smallest_eigenvalue": END, "relative_eigenvalue": END, "start_error": END,
        "unclipped": pair(END), "features": TEXT, **_SHARED,
    }),
    "importance-sampling": record(_WEIGHED),
    "by-probabilities": record({**_WEIGHED, "leads": FLAG}),
    "curve": record({
        "over": _values(Parameter), "baseline": END,
        "rows": many(record({"value": NUMBER, **_ENDS, "status": STATUS, "baseline": FLAG})),
    }),
    "flip": record({
        "over": _values(Parameter), "threshold": NUMBER, "outcome": _names(FlipOutcome), "advice": TEXT, "value": END,
        "lower": END, "beyond": END, "baseline": END, "baseline_supports": FLAG,
    }),
    "least-norm": record({"value": NUMBER, "consistent": END}),
    "rows-needed": record({
        "width": NUMBER, "outcome": _names(RowsOutcome), "advice": TEXT, "rows": maybe(COUNT), "slower": maybe(COUNT),
        "floor": NUMBER, "points": many(record({"rows": COUNT, "width": END, "status": STATUS})),
    }),
    "misfit-norms": record({
        "least": ref("least-norm"), "curve": ref("curve"), "flip": maybe(ref("flip")), "text": many(TEXT),
    }),
    "altered": record({"name": TEXT, "text": TEXT, **_ENDS, "status": STATUS, "saved": END}),
    "breakdown": record({
        "width": NUMBER, "start_error": NUMBER, "parts": many(ref("altered")), "remedies": many(ref("altered")),
        "rows_for_half": maybe(record({"outcome": _names(RowsOutcome), "rows": maybe(COUNT), "width": NUMBER})),
        "text": many(TEXT),
    }),
    "half-class": record({
        "features": COUNT, "of": COUNT, **_ENDS, "status": STATUS, "hangs": FLAG, "largest_move": END, "text": TEXT,
    }),
    "fragility": record({
        "norm": maybe(record({
            "of": one_of(("norm_bound", "misfit_norm")), "fragile": FLAG, "largest_move": END,
            "ends": many(record({"norm": NUMBER, **_ENDS})), "text": TEXT,
        })),
        "half_class": maybe(ref("half-class")),
    }),
    "assumptions": record({
        "discount": SHARE, "reward_range": pair(NUMBER), "value_range": maybe(pair(NUMBER)),
        "norm_bound": {"anyOf": [NUMBER, {"type": "null"}, record({"relative_to_least_norm": NUMBER})]},
        "state_box": maybe(pair(many(NUMBER))), "reward_noise": FLAG, "symmetric_noise": FLAG, "horizon": maybe(COUNT),
        "terminal_reward": FLAG, "terminates": maybe(FLAG), "misfit": NUMBER, "one_step_range": END, "misfit_norm": END,
        "value_range_used": pair(NUMBER), "residual_width_used": NUMBER,
    }),
    "columns": record({
        "file": TEXT, "read_as": {"type": "object", "additionalProperties": TEXT}, "not_used": many(TEXT), "ignored": many(TEXT),
        "remarks": many(TEXT),
    }),
    "look": record({
        "rows": COUNT, "lower_now": END, "upper_now": END, **_ENDS, "status_now": STATUS, "status": STATUS, "seconds": NUMBER,
        "batch": TEXT, "doubted": FLAG,
    }),
}  # fmt: skip
"""Shapes that have a name."""

_FILES: dict[str, Shape] = {"columns": many(ref("columns"))}
_COMPANIONS: dict[str, Shape] = {
    "logged_value": maybe(ref("logged-value")), "cross_fitted": maybe(ref("cross-fitted")),
    "by_probabilities": maybe(ref("by-probabilities")), "left_out": many(TEXT),
}  # fmt: skip
_LADDER: dict[str, Shape] = {
    "transitions": COUNT, "episodes": maybe(COUNT), "kernel": TEXT, "engine": maybe(record({"name": TEXT, "reason": TEXT})),
    "assumptions": ref("assumptions"),
    "delta": record({"total": SHARE, "kernel": SHARE, "start": SHARE, "features": SHARE}), "start_error": NUMBER,
    "intervals": {"type": "array", "items": ref("interval"), "minItems": 1},
}  # fmt: skip
_COVERED: dict[str, Shape] = {
    "family": TEXT, "data_kind": TEXT, "method": TEXT, "guarantee": TEXT, "n": COUNT, "delta": SHARE, "trials": COUNT,
    "covered": COUNT, "low": SHARE, "high": SHARE, "width": END, "vacuous": SHARE, "inconsistent": SHARE, "seconds": NUMBER,
    "fraction": SHARE, "refuted": FLAG,
}  # fmt: skip
_TRUSTED: dict[str, Shape] = {
    "task": TEXT, "policy": TEXT, "method": TEXT, "n": COUNT, "delta": SHARE, "logs": COUNT, "covered": COUNT, "width": END,
    "vacuous": COUNT, "inconsistent": COUNT, "wrong_with_doubt": COUNT, "wrong": COUNT, "farthest": NUMBER, "seconds": NUMBER,
    "rate": SHARE, "judged": FLAG, "exceeds": FLAG, "refuted": FLAG,
}  # fmt: skip
_STOOD: dict[str, Shape] = {
    "problem": TEXT, "contestant": TEXT, "guarantee": TEXT, "n": COUNT, "delta": SHARE, "logs": COUNT, "held": COUNT,
    "missed": COUNT, "missed_doubted": COUNT, "vacuous": COUNT, "silent": COUNT, "refused": COUNT, "reason": TEXT, "low": SHARE,
    "high": SHARE, "width": SHARE, "seconds": NUMBER, "false_premise": FLAG, "chance": SHARE, "fraction": SHARE,
    "judgment": _values(Kept),
}  # fmt: skip
_CHOICE: Shape = maybe(record({"contestant": TEXT, "width": SHARE}))
_SKIPPED: Shape = many(record({"name": TEXT, "reason": TEXT}))
_ACTION: Shape = {"type": ["string", "number", "boolean", "array"]}

DOCUMENTS: dict[str, Shape] = {
    "bound": record(
        {"verdict": ref("verdict"), **_COMPANIONS, **_LADDER, "fragility": ref("fragility")},
        {
            **_FILES, "decision": ref("decision"), "breakdown": maybe(ref("breakdown")), "misfit_norms": ref("misfit-norms"),
            "repeat": TEXT,
        },
    ),
    "compare": record(
        {
            "verdict": record({"sentence": TEXT, "unbeaten": many(TEXT)}), "delta": SHARE, "delta_each": SHARE,
            "policies": many(record({
                "name": TEXT, "logged": FLAG, **_ENDS, "status": STATUS, "guarantee": GUARANTEE, "by_probabilities": FLAG,
                "of_class": maybe(record({**_ENDS, "status": STATUS})), "doubts": many(TEXT),
                "bet": maybe(TEXT), "cross_fitted": maybe(ref("cross-fitted")), "assumed": many(TEXT),
                "recipe": maybe(ref("recipe")),
            })),
            "differences": many(record({
                "first": TEXT, "second": TEXT, **_ENDS, "paired": FLAG, "first_is_better": JUDGMENT,
            })),
            "statements": many(TEXT),
        },
        {**_FILES, "decision": ref("decision")},
    ),
    "diagnose": record(
        {
            "estimate": NUMBER, "loss": NUMBER, "threshold": NUMBER, "largest_residual": NUMBER, "values": pair(NUMBER),
            "impossible": many(TEXT), "allowed_for_rounding": NUMBER, "remarks": many(TEXT),
            "verdict": _names(EstimateVerdict), "sentence": TEXT, "unnoticed": END,
            "advice": TEXT, "inside": FLAG, "interval": ref("interval"),
            "witness": many(record({
                "where": TEXT, "point": many(NUMBER), "row": COUNT, "smoothed_residual": NUMBER, "mean_residual": NUMBER,
                "share_of_loss": NUMBER,
            })),
            "rows": many(record({
                "row": COUNT, "state": many(NUMBER), "action": _ACTION, "reward": NUMBER, "next_state": many(NUMBER),
                "q": NUMBER, "onward": NUMBER, "residual": NUMBER, "where": TEXT, "place": TEXT,
            })),
            "top_rows": many(COUNT), "value_verdict": ref("verdict"), **_COMPANIONS,
        },
        {**_FILES, "decision": ref("decision")},
    ),
    "correct": record(
        {
            "status": _names(CorrectionStatus), "advice": TEXT, "norm": END, "estimate_before": NUMBER, "estimate_after": END,
            "loss_before": NUMBER, "loss_after": END, "least_loss": END, "threshold": NUMBER, "note": TEXT,
            "doubts": many(TEXT), "allowed_for_rounding": NUMBER, "remarks": many(TEXT), "coefficients": many(END),
            "interval": ref("interval"),
        },
        _FILES,
    ),
    "sensitivity": record(
        {
            "verdict": ref("verdict"), **_COMPANIONS, **_LADDER, "curves": many(ref("curve")),
            "least_norm": maybe(ref("least-norm")), "least_misfit_norm": maybe(ref("least-norm")), "flips": many(ref("flip")),
            "rows_needed": maybe(ref("rows-needed")),
        },
        {**_FILES, "decision": ref("decision")},
    ),
    "monitor": record(
        {
            "radius": TEXT, "delta": SHARE, "planned": COUNT, "rows": COUNT, "verdict": ref("sentence"),
            "judgment": maybe(JUDGMENT), "status": maybe(STATUS),
            "decision": maybe(record({"threshold": NUMBER, "at_least": FLAG, "update": COUNT, "rows": COUNT})),
            "looks": many(ref("look")), "interval": maybe(ref("interval")),
        },
        _FILES,
    ),
    "update": record({
        "verdict": ref("sentence"), "rows": COUNT, **_ENDS, "status": STATUS, "seconds": NUMBER, "interval": ref("interval"),
    }),
    "check": record({
        "transitions": COUNT, "episodes": maybe(COUNT), "terminated": COUNT, "reward_observed": pair(NUMBER),
        "reward_mean": NUMBER, "reward_declared": maybe(pair(NUMBER)), "state_minimum": many(NUMBER),
        "state_maximum": many(NUMBER), "state_deviation": many(NUMBER), "action_counts": maybe(many(COUNT)),
        "behavior_probability": maybe(pair(NUMBER)), "start_states": maybe(record({"rows": COUNT, "exact": FLAG})),
        "target_probabilities_at_next": FLAG, "target_probabilities_at_state": FLAG, **_FILES,
    }),
    "verify": record({
        "valid": FLAG, "message": TEXT, "with_data": FLAG, **_ENDS, "status": STATUS, "delta": SHARE, "radius": TEXT,
        "guarantee": _names(Guarantee), "premises": many(TEXT), "doubts": many(TEXT), "sha256": maybe(TEXT),
    }),
    "verification": record({
        "valid": FLAG, "message": TEXT, **_ENDS, "premises": many(TEXT), "doubts": many(TEXT),
    }),
    "coverage": record({"claims_believable": FLAG, "rows": many(record(_COVERED))}),
    "families": record({
        "families": many(record({"name": TEXT, "data": TEXT, "description": TEXT, "truth": NUMBER})),
    }),
    "trust": record({
        "verdict": TEXT, "refuted": FLAG, "skipped": _SKIPPED, "rows": many(record(_TRUSTED)),
        "goals": many(record({"n": COUNT, "tasks": COUNT, "useful": COUNT, "of": COUNT, "wanted": SHARE, "holds": maybe(FLAG)})),
    }),
    "arena": record({
        "verdict": TEXT, "refuted": FLAG, "narrowest_steady_is_own": COUNT, "cells_with_a_steady_method": COUNT,
        "skipped": _SKIPPED,
        "advice": many(record({
            "propensities": FLAG, "class_trusted": FLAG, "n": COUNT, "problems": COUNT, "logs": COUNT, "proved": _CHOICE,
            "any": _CHOICE,
        })),
        "contestants": many(record({
            "contestant": TEXT, "guarantee": TEXT, "needs": many(TEXT), "logs": COUNT, "cells": COUNT, "kept": COUNT,
            "refuted": COUNT, "fraction": SHARE, "low": SHARE, "high": SHARE, "width": SHARE, "seconds": NUMBER, "silent": COUNT,
            "honest": FLAG, "steady": FLAG,
        })),
        "cells": many(record({
            "problem": TEXT, "n": COUNT, "logs": COUNT, "without_propensities": maybe(TEXT), "among_all": maybe(TEXT),
            "steady": maybe(TEXT),
        })),
        "rows": many(record(_STOOD)),
    }),
    "arena-plan": record({
        "hours": NUMBER,
        "lines": many(record({
            "contestant": TEXT, "n": COUNT, "problems": COUNT, "seconds": NUMBER, "slowest": NUMBER, "trials": COUNT,
            "hours": NUMBER,
        })),
        "left_out": many(record({"problem": TEXT, "n": COUNT, "contestant": TEXT})),
    }),
    "entrants": record({
        "problems": many(record({
            "name": TEXT, "group": TEXT, "description": TEXT, "data": TEXT, "propensities": FLAG, "horizon": maybe(COUNT),
            "class": TEXT, "discount": SHARE, "value": NUMBER, "margin": NUMBER, "made": TEXT,
        })),
        "contestants": many(record({
            "name": TEXT, "title": TEXT, "source": TEXT, "guarantee": TEXT, "needs": many(TEXT),
        })),
        "skipped": _SKIPPED,
    }),
    "tasks": record({
        "tasks": many(record({
            "name": TEXT, "description": TEXT, "hidden": FLAG,
            "policies": many(record({"name": TEXT, "value": NUMBER, "standard_error": NUMBER, "made": TEXT, "cut_off": NUMBER})),
        })),
        "skipped": _SKIPPED,
    }),
    "simulate": record({
        "task": TEXT, "temperature": NUMBER, "target_temperature": NUMBER, "seed": COUNT, "rows": COUNT,
        "episodes": maybe(COUNT), "terminated": COUNT, "transitions": maybe(TEXT), "starts": maybe(TEXT), "start_states": COUNT,
        "minari": maybe(TEXT), "next": maybe(TEXT),
    }),
    "experiment": record({
        "figure": TEXT,
        "tasks": many(record({
            "task": TEXT, "trials": COUNT, "rows": COUNT, "files": many(TEXT), "findings": many(TEXT),
        })),
    }),
    **{
        name: PARTS[name]
        for name in (
            "verdict", "decision", "logged-value", "cross-fitted", "sandwich", "anderson-rubin", "importance-sampling", "curve",
            "flip", "least-norm", "rows-needed", "misfit-norms", "breakdown", "half-class",
        )
    },
}  # fmt: skip
"""Kind -> what it holds beside the name of its schema."""


def derived_schema(kind: str) -> Shape:
    """A whole schema, which needs no other file: what is in data/schemas."""
    shape = DOCUMENTS[kind]
    label = {"schema": {"const": schema_name(kind)}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{PUBLISHER} {kind}",
        **shape,
        "properties": {**label, **shape["properties"]},
        "required": ["schema", *shape["required"]],
        "$defs": {name: PARTS[name] for name in sorted(_mentioned(shape, set()))},
    }


def _mentioned(shape: Any, found: set[str]) -> set[str]:
    """All shapes that a shape names, and those that they name."""
    if isinstance(shape, dict):
        name = str(shape.get("$ref", "")).removeprefix("#/$defs/")
        if name and name not in found:
            found.add(name)
            _mentioned(PARTS[name], found)
        for each in shape.values():
            _mentioned(each, found)
    elif isinstance(shape, list):
        for each in shape:
            _mentioned(each, found)
    return found


def file_name(kind: str) -> str:
    """Such as bound-1.schema.json."""
    _, name, version = schema_name(kind).split("/")
    return f"{name}-{version}.schema.json"


@cache
def schema(kind: str) -> Shape:
    """The shipped schema of one kind of document."""
    text = (files("accountable_ope") / "data" / "schemas" / file_name(kind)).read_text(encoding="utf-8")
    return cast("Shape", json.loads(text))
