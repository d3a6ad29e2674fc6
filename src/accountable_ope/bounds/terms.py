"""Constraints with their multipliers, as what they can be derived from again."""

from __future__ import annotations

from ..classes.ranges import ResidualRange
from ..programs.certificate import Argument, Certificate
from ..programs.constraint import Constraint, LossOrigin, Role, RowsOrigin
from ..programs.constraint_set import ConstraintSet
from ..programs.proofs import Proof, Step
from ..verification.record import AveragedRecord, EndRecord, StepRecord, TermRecord


def terms_of(argument: Argument) -> tuple[TermRecord, ...]:
    """The constraints that count in an argument without boxes over points."""
    pairs = zip(argument.constraints, argument.multipliers.tolist(), strict=True)
    return tuple(_term(constraint, multiplier, None) for constraint, multiplier in pairs if multiplier)


def _term(constraint: Constraint, multiplier: float, limit: float | None) -> TermRecord:
    origin = constraint.origin if isinstance(constraint.origin, LossOrigin) else LossOrigin()
    return TermRecord(constraint.role.value, multiplier, limit, origin.evidence, origin.rate, origin.round)


class Terms:
    """Constraints as what they can be derived from again; boxes over points are numbered as they come."""

    def __init__(self, constraints: ConstraintSet, residuals: ResidualRange) -> None:
        self._constraints, self._residuals = constraints, residuals
        self.rows: list[RowsOrigin] = []

    def end(self, certificate: Certificate) -> EndRecord:
        """One end with its proof."""
        pairs = zip(certificate.constraints, certificate.multipliers.tolist(), strict=True)
        terms = tuple(self._term(constraint, multiplier, constraint.limit) for constraint, multiplier in pairs)
        return EndRecord(certificate.status.name, certificate.bound, terms)

    def step(self, step: Step, number: int) -> StepRecord:
        """The proofs of a round."""
        variances = tuple(None if proof is None else self._proof(proof, number) for proof in step.variances)
        return StepRecord(variances, tuple(self._proof(proof, number) for proof in step.range))

    def averaged(self, origin: RowsOrigin) -> AveragedRecord:
        """Boxes over points by the anchor's values there in place of their limits, over rows by their targets."""
        lowest = self._residuals.ranges.value[0] - self._residuals.reference - self._residuals.assumptions.misfit
        residual, m = origin.targets is not None, len(self._constraints.penalized)
        room = 0.0 if origin.missed is None else self._constraints.hidden * origin.missed
        return AveragedRecord(
            features=origin.features[:, :m],
            offsets=lowest - (origin.low + room) if origin.targets is None else -origin.targets,
            weights=origin.weights,
            residual=residual,
            round=origin.round,
            missed=origin.missed,
            ranges=origin.ranges,
        )

    def _proof(self, proof: Proof, number: int) -> tuple[TermRecord, ...]:
        feasible, evidence = self._constraints, range(len(self._constraints.evidence))
        losses = [LossOrigin(k, rate, number) for k, rates in enumerate(proof.rates) for rate in rates.tolist()]
        roles = [(Role.LOSS, origin) for origin in losses] + [(Role.VARIANCE, LossOrigin(k, 0.0, number)) for k in evidence]
        multipliers = proof.multipliers.tolist()
        first = [
            TermRecord(role.value, multiplier, None, origin.evidence, origin.rate, origin.round)
            for (role, origin), multiplier in zip(roles, multipliers, strict=False)
        ]
        others = zip((*feasible.others, *proof.boxes), multipliers[len(first) :], strict=True)
        return (*first, *(self._term(constraint, multiplier, None) for constraint, multiplier in others))

    def _term(self, constraint: Constraint, multiplier: float, limit: float | None) -> TermRecord:
        origin = constraint.origin
        if not isinstance(origin, RowsOrigin) or constraint.role is not Role.BOX:
            return _term(constraint, multiplier, limit)
        number = next((k for k, known in enumerate(self.rows) if known is origin), len(self.rows))
        if number == len(self.rows):
            self.rows.append(origin)
        return TermRecord("rows", multiplier, limit, rows=number)
