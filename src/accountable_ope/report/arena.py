"""The arena as documents for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ..arena.advising import Advice, Choice, advice
from ..arena.challenge import Challenge
from ..arena.challenges import group_of
from ..arena.costs import Costs
from ..arena.judging import Career, Ranking, Standing
from ..arena.page import verdict
from ..baselines.contestant import Contestant
from ..trust.tasks import Skipped
from .document import Document


def arena_document(ranking: Ranking, skipped: Sequence[Skipped] = ()) -> Document:
    """The verdict and all tables."""
    won, decided = ranking.won
    return {
        "verdict": verdict(ranking),
        "refuted": bool(ranking.refuted),
        "narrowest_steady_is_own": won,
        "cells_with_a_steady_method": decided,
        "skipped": [asdict(each) for each in skipped],
        "advice": [_advice(row) for row in advice(ranking)],
        "contestants": [_career(each) for each in ranking.careers],
        "cells": [
            {
                "problem": cell.challenge,
                "n": cell.n,
                "logs": cell.logs,
                "without_propensities": _name(cell.without),
                "among_all": _name(cell.anybody),
                "steady": _name(cell.steady),
            }
            for cell in ranking.cells
        ],
        "rows": [_standing(row) for row in ranking.rows],
    }


def _standing(row: Standing) -> Document:
    found = asdict(row)
    return {"problem": found.pop("challenge"), **found, "fraction": row.fraction, "judgment": row.judgment.value}


def _career(each: Career) -> Document:
    return {
        "contestant": each.contestant,
        "guarantee": each.guarantee,
        "needs": list(each.needs),
        "logs": each.logs,
        "cells": each.cells,
        "kept": each.kept,
        "refuted": each.refuted,
        "fraction": each.fraction,
        "low": each.low,
        "high": each.high,
        "width": each.width,
        "seconds": each.seconds,
        "silent": each.silent,
        "honest": each.honest,
        "steady": each.steady,
    }


def _advice(row: Advice) -> Document:
    return {
        "propensities": row.situation.propensities,
        "class_trusted": row.situation.trusted,
        "n": row.n,
        "problems": row.problems,
        "logs": row.logs,
        "proved": _choice(row.proved),
        "any": _choice(row.any),
    }


def _choice(choice: Choice | None) -> Document | None:
    return None if choice is None else asdict(choice)


def _name(row: Standing | None) -> str | None:
    return None if row is None else row.contestant


def plan_document(costs: Costs) -> Document:
    """What a trial takes, and what all of them would."""
    return {
        "hours": costs.total / 3600,
        "lines": [asdict(line) for line in costs.lines()],
        "left_out": [{"problem": each.challenge, "n": each.n, "contestant": each.contestant} for each in costs.left_out],
    }


def entrants_document(challenges: Sequence[Challenge], contestants: Sequence[Contestant], skipped: Sequence[Skipped]) -> Document:
    """Who may enter, and what they meet."""
    return {
        "problems": [
            {
                "name": each.name,
                "group": group_of(each.name).name,
                "description": each.description,
                "data": each.data_kind.value,
                "propensities": each.recorded,
                "horizon": each.horizon,
                "class": each.told.value,
                "discount": each.assumptions.discount,
                "value": each.truth.value,
                "margin": each.truth.margin,
                "made": each.truth.made,
            }
            for each in challenges
        ],
        "contestants": [
            {
                "name": each.name,
                "title": each.title,
                "source": each.source,
                "guarantee": each.guarantee.value,
                "needs": list(each.needs.words),
            }
            for each in contestants
        ],
        "skipped": [asdict(each) for each in skipped],
    }
