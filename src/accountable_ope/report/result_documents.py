"""Every result as the document that `to_dict` gives, each with the kind of its schema."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from ..baselines.interval import BaselineInterval
from ..bounds.anderson_rubin import AndersonRubinInterval
from ..bounds.breakdown import Breakdown
from ..bounds.comparison import Comparison
from ..bounds.correction import Correction
from ..bounds.cross_fitted import CrossFittedInterval
from ..bounds.decision import Ruling
from ..bounds.diagnosis import Diagnosis
from ..bounds.findings import Curve, Flip, LeastNorm, RowsNeeded
from ..bounds.half_class import HalfClass
from ..bounds.interval import Interval
from ..bounds.logging_policy import LoggedValue
from ..bounds.looks import MonitorReport
from ..bounds.misfit_norms import MisfitNorms
from ..bounds.monitor import Monitor
from ..bounds.sandwich import SandwichInterval
from ..bounds.stream_monitor import StreamMonitor
from ..bounds.verdict import Verdict, verdict_of
from ..problem.statements import texts
from ..verification.verify import Verification
from .companions import (
    anderson_rubin_document,
    baseline_document,
    cross_fitted_document,
    logged_value_document,
    sandwich_document,
)
from .contest import comparison_document
from .document import Document, correction_document, diagnosis_document, finite_or_none, ladder_document
from .fragility import fragility_document, half_class_document
from .label import labeled
from .sensitivity import curve_document, flip_document, least_norm_document, misfit_norms_document, rows_document
from .verdict import companions_document, ruling_document, verdict_document, width_document
from .watching import monitor_document, update_document


@singledispatch
def document_of(result: object, /) -> Document:
    """What `to_dict` gives."""
    raise NotImplementedError(f"{type(result).__name__} has no document.")


@dataclass(frozen=True)
class _Rows:
    """The size of the log behind an interval; episodes are known where its rows can be bounded again."""

    count: int
    number_of_episodes: int | None

    def __len__(self) -> int:
        return self.count

    @classmethod
    def of(cls, interval: Interval) -> _Rows:
        again = interval.rebound
        return cls(interval.count, None if again is None else again.evaluation.problem.data.number_of_episodes)


def _said(interval: Interval) -> Document:
    """The verdict, and what stands beside the interval."""
    companions = interval.companions()
    return {"verdict": verdict_document(verdict_of(interval, companions))} | companions_document(companions)


@document_of.register
def _(result: Interval, /) -> Document:
    found = _said(result) | ladder_document([result], _Rows.of(result)) | {"fragility": fragility_document(result)}
    return labeled("bound", found)


@document_of.register
def _(result: Diagnosis, /) -> Document:
    said = _said(result.interval)
    value = {"value_verdict": said.pop("verdict")}  # `verdict` is that on the estimate
    return labeled("diagnose", diagnosis_document(result) | value | said)


@document_of.register
def _(result: Correction, /) -> Document:
    return labeled("correct", correction_document(result))


@document_of.register
def _(result: Comparison, /) -> Document:
    return labeled("compare", comparison_document(result))


@document_of.register(Monitor)
@document_of.register(StreamMonitor)
def _(result: Monitor | StreamMonitor, /) -> Document:
    return labeled("monitor", monitor_document(result))


@document_of.register
def _(result: MonitorReport, /) -> Document:
    return labeled("update", update_document(result))


@document_of.register
def _(result: Verification, /) -> Document:
    found = {
        "valid": result.valid,
        "message": result.message,
        "lower": finite_or_none(result.lower),
        "upper": finite_or_none(result.upper),
        "premises": texts(result.premises),
        "doubts": [str(each) for each in result.doubts],
    }
    return labeled("verification", found)


@document_of.register
def _(result: LoggedValue, /) -> Document:
    return labeled("logged-value", logged_value_document(result))


@document_of.register
def _(result: CrossFittedInterval, /) -> Document:
    return labeled("cross-fitted", cross_fitted_document(result))


@document_of.register
def _(result: SandwichInterval, /) -> Document:
    return labeled("sandwich", sandwich_document(result))


@document_of.register
def _(result: AndersonRubinInterval, /) -> Document:
    return labeled("anderson-rubin", anderson_rubin_document(result))


@document_of.register
def _(result: BaselineInterval, /) -> Document:
    return labeled("importance-sampling", baseline_document(result))


@document_of.register
def _(result: Curve, /) -> Document:
    return labeled("curve", curve_document(result))


@document_of.register
def _(result: Flip, /) -> Document:
    return labeled("flip", flip_document(result))


@document_of.register
def _(result: LeastNorm, /) -> Document:
    return labeled("least-norm", least_norm_document(result))


@document_of.register
def _(result: RowsNeeded, /) -> Document:
    return labeled("rows-needed", rows_document(result))


@document_of.register
def _(result: MisfitNorms, /) -> Document:
    return labeled("misfit-norms", misfit_norms_document(result))


@document_of.register
def _(result: Breakdown, /) -> Document:
    return labeled("breakdown", width_document(result))


@document_of.register
def _(result: HalfClass, /) -> Document:
    return labeled("half-class", half_class_document(result))


@document_of.register
def _(result: Verdict, /) -> Document:
    return labeled("verdict", verdict_document(result))


@document_of.register
def _(result: Ruling, /) -> Document:
    return labeled("decision", ruling_document(result))
