"""Results as plain documents for machines: what `--json` prints and what the report embeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from ..bounds.class_certificates import ClassCertificates
from ..bounds.correction import Correction
from ..bounds.diagnosis import Diagnosis
from ..bounds.interval import Interval
from ..defaults.recipe import Recipe
from ..io.columns import FileColumns
from ..io.reading import TransitionFile
from ..problem.assumptions import RelativeNorm
from ..problem.statements import texts
from ..problem.transitions import StartStates
from ..programs.certificate import Certificate
from ..programs.proofs import Tightening
from ..statistics.specification import SpecificationTest

Document = dict[str, Any]
"""JSON-ready nested data; used at the border of the program only."""


class Counted(Protocol):
    """A log of which the size is known."""

    def __len__(self) -> int: ...

    @property
    def number_of_episodes(self) -> int | None: ...


def ladder_document(intervals: Sequence[Interval], data: Counted) -> Document:
    """All intervals of one run, with what they share."""
    first = intervals[0]
    return {
        "transitions": len(data),
        "episodes": data.number_of_episodes,
        "kernel": first.kernel,
        "engine": None if first.engine is None else asdict(first.engine),
        "assumptions": _assumptions(first),
        "delta": asdict(first.split),
        "start_error": first.start_error,
        "intervals": [interval_document(interval) for interval in intervals],
    }


def interval_document(interval: Interval) -> Document:
    """One interval: numbers, status, guarantee, what was assumed, and the certificates' multipliers."""
    return {
        "estimand": interval.estimand,
        "radius": interval.radius.name,
        "theorem": interval.radius.theorem,
        "guarantee": interval.guarantee.value,
        "status": interval.status.name,
        "advice": interval.status.value,
        "lower": finite_or_none(interval.lower),
        "upper": finite_or_none(interval.upper),
        "normalized": [finite_or_none(end) for end in interval.normalized],
        "unclipped": [finite_or_none(end) for end in interval.unclipped],
        "clipped": list(interval.clipped),
        "radius_level": interval.radius.level,
        "radius_rounding": interval.radius.rounding,
        "radius_uses": interval.radius.uses,
        "assumed": texts(interval.premises),
        "outcome": interval.outcome.name,
        "doubted": interval.doubted,
        "doubts": texts(each.statement for each in interval.doubts),
        "doubts_found": [
            {"kind": each.kind.value, "p_value": each.p_value, "weak": each.weak, "text": each.text} for each in interval.doubts
        ],
        "remarks": texts(interval.remarks),
        "certificates_check": interval.check(),
        "recipe": recipe_document(interval.recipe),
        "classes": [_class(part) for part in interval.certificates],
    }


def recipe_document(recipe: Recipe | None) -> Document | None:
    """What was chosen on the earliest rows."""
    if recipe is None:
        return None
    ball = recipe.ball
    return {
        "kind": recipe.kind.name,
        "features": repr(recipe.features),
        "kernel": repr(recipe.kernel),
        "earlier_rows": recipe.earlier_rows,
        "earlier_episodes": recipe.earlier_episodes,
        "sha256": recipe.sha256,
        "within": None if ball is None else ball.within,
        "enlarged": None if ball is None else ball.enlarged,
        "overlap": None if ball is None else finite_or_none(ball.overlap),
        "norm_bound": recipe.norm_bound,
        "ridge": finite_or_none(recipe.ridge),
        "held_out": finite_or_none(recipe.held_out),
        "candidates": [asdict(each) for each in recipe.candidates],
        "judged_by": recipe.judged_by,
        "statements": texts(recipe.statements()),
    }


def diagnosis_document(diagnosis: Diagnosis, place: Callable[[int], str] = "row {}".format) -> Document:
    """What `aope diagnose --json` prints; place: where a row of the data is found in its file."""
    return {
        "estimate": diagnosis.estimate,
        "loss": diagnosis.loss,
        "threshold": diagnosis.radius.total,
        "largest_residual": diagnosis.largest_residual,
        "values": [diagnosis.reached.least, diagnosis.reached.largest],
        "impossible": texts(diagnosis.impossible),
        "allowed_for_rounding": diagnosis.rounding.loss,
        "remarks": texts(diagnosis.remarks),
        "verdict": diagnosis.verdict.name,
        "sentence": diagnosis.sentence,
        "unnoticed": finite_or_none(diagnosis.unnoticed),
        "advice": diagnosis.verdict.value,
        "inside": diagnosis.inside,
        "interval": interval_document(diagnosis.interval),
        "witness": [
            {
                "where": place,
                "point": region.center.tolist(),
                "row": region.row,
                "smoothed_residual": region.witness,
                "mean_residual": region.mean_residual,
                "share_of_loss": region.share,
            }
            for region, place in zip(diagnosis.witness.regions, diagnosis.explanation.places, strict=True)
        ],
        "rows": [asdict(each) | {"place": place(each.row)} for each in diagnosis.explanation.rows],
        "top_rows": diagnosis.witness.top_rows.tolist(),
    }


def correction_document(correction: Correction) -> Document:
    """What `aope correct --json` prints."""
    return {
        "status": correction.status.name,
        "advice": correction.status.value,
        "norm": correction.norm,
        "estimate_before": correction.estimate_before,
        "estimate_after": correction.estimate_after,
        "loss_before": correction.loss_before,
        "loss_after": correction.loss_after,
        "least_loss": correction.least_loss,
        "threshold": correction.radius.total,
        "note": correction.note,
        "doubts": texts(correction.doubts),
        "allowed_for_rounding": correction.rounding.loss,
        "remarks": texts(correction.remarks),
        "coefficients": correction.theta.tolist(),
        "interval": interval_document(correction.interval),
    }


def columns_document(columns: Sequence[FileColumns]) -> Document:
    """How the columns of the files were read."""
    return {
        "columns": [
            {
                "file": each.file,
                "read_as": dict(each.aliases),
                "not_used": list(each.unused),
                "ignored": list(each.ignored),
                "remarks": list(each.remarks),
            }
            for each in columns
        ]
    }


def description_document(
    file: TransitionFile, reward_range: tuple[float, float] | None, starts: StartStates | None = None
) -> Document:
    """What `aope check --json` prints."""
    data, logged = file.data, file.data.behavior_probability
    return {
        "transitions": len(data),
        "episodes": data.number_of_episodes,
        "terminated": int(data.terminated.sum()),
        "reward_observed": [float(data.rewards.min()), float(data.rewards.max())],
        "reward_mean": float(data.rewards.mean()),
        "reward_declared": None if reward_range is None else list(reward_range),
        "state_minimum": data.states.min(axis=0).tolist(),
        "state_maximum": data.states.max(axis=0).tolist(),
        "state_deviation": data.states.std(axis=0).tolist(),
        "action_counts": np.bincount(data.actions).tolist() if data.finite_actions else None,
        "behavior_probability": None if logged is None else [float(logged.min()), float(logged.max())],
        "start_states": None if starts is None else {"rows": len(starts), "exact": starts.exact},
        "target_probabilities_at_next": file.at_next is not None,
        "target_probabilities_at_state": file.at_state is not None,
    }


def _class(part: ClassCertificates) -> Document:
    return {
        "features": part.features,
        "norm_bound": part.norm_bound,
        "least_norm": part.least_norm,
        "least_loss": finite_or_none(part.least_loss),
        "specification": _specification(part.specification),
        "norm_test": None if part.norm_test is None else asdict(part.norm_test),
        "least_misfit": part.least_misfit,
        "note": part.note,
        "upper": _certificate(part.upper),
        "lower": _certificate(part.lower),
        "tightening": None if part.tightening is None else _tightening(part.tightening),
    }


def _specification(test: SpecificationTest) -> Document:
    return {
        "tested": test.tested,
        "reason": test.reason,
        "first_rows": test.first_rows,
        "p_value": finite_or_none(test.p_value),
        "smallest": None if test.smallest is None else asdict(test.smallest),
    }


def _certificate(certificate: Certificate) -> Document:
    return {
        "status": certificate.status.name,
        "bound": finite_or_none(certificate.bound),
        "value": finite_or_none(certificate.value),
        "gap": finite_or_none(certificate.gap),
        "constraints": [
            {"role": c.role.value, "limit": c.limit, "multiplier": float(m)}
            for c, m in zip(certificate.constraints, certificate.multipliers, strict=True)
        ],
    }


def _tightening(tightening: Tightening) -> Document:
    """The iteration of a radius that follows the variance, round by round."""
    return {
        "identification": tightening.identification,
        "evidence": [evidence.name for evidence in tightening.constraints.evidence],
        "rounds": [{"residual_bound": round_.residual_bound, "variance": round_.variance} for round_ in tightening.rounds],
    }


def _assumptions(interval: Interval) -> Document:
    facts = asdict(interval.assumptions)
    if isinstance(interval.assumptions.norm_bound, RelativeNorm):
        facts["norm_bound"] = {"relative_to_least_norm": interval.assumptions.norm_bound.multiple}
    facts["value_range_used"] = list(interval.ranges.value)
    facts["residual_width_used"] = interval.ranges.residual_width
    return facts


def finite_or_none(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else None
