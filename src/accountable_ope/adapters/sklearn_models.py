"""Classifiers and regressors in the manner of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import checked, shown
from ..errors import InvalidInput
from ..problem.naming import UNNAMED, Naming
from ..problem.policy import DiscretePolicy, action_vectors
from ..validation import FloatArray, frozen, raw_array
from .answers import asked, distributions, in_parts, label_indices, rows_of, spread
from .company import Company


@runtime_checkable
class Regressor(Protocol):
    """A fitted regressor of another library: rows (n, columns) -> values."""

    def predict(self, X: Any) -> Any: ...


@checked
def sklearn_policy(classifier: Any, actions: ArrayLike | int | None = None, naming: Naming = UNNAMED) -> DiscretePolicy:
    """The policy that acts as a fitted classifier with `predict_proba` says, with exactly its probabilities.

    Parameters
    ----------
    classifier : object with `predict_proba` and `classes_`
        Fitted on the columns of the state, in their order.
    actions : int or array (A, k), optional
        Vectors that enter x = (s, a), or the number of actions, where there are more than the classifier knows: it takes those
        never. By default one-hot vectors.
    naming : Naming, optional
        Which index each label has, such as `data.naming`; needed where labels are not the indices themselves.

    Returns
    -------
    DiscretePolicy

    Raises
    ------
    InvalidInput
        Where it is no fitted classifier, or labels, columns and actions do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from accountable_ope.adapters import sklearn_policy
    >>> fitted = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> [branch.weights.round(2).tolist() for branch in sklearn_policy(fitted).branches(np.array([[0.0], [3.0]]))]
    [[0.81, 0.19], [0.19, 0.81]]
    """
    name = type(classifier).__name__
    if isinstance(classifier, type) or not callable(getattr(classifier, "predict_proba", None)):
        raise InvalidInput(f"`classifier` must be a fitted classifier with `predict_proba`. Got {shown(classifier)}.")
    labels = getattr(classifier, "classes_", None)
    if labels is None:
        raise InvalidInput(f"`classifier` must be fitted before it is asked: this {name} has no `classes_`.")
    known = raw_array(labels)
    if known.ndim != 1:
        raise InvalidInput(f"{name} must choose one action per state: its `classes_` are of several outputs.")
    _refuse_other_columns(classifier, naming, name)
    predict = _predicting(classifier.predict_proba, compared=bool(naming.states))
    where = label_indices(known, naming, name)
    given = actions if actions is not None else max(int(where.max()) + 1, len(naming.actions))
    count = len(action_vectors(given))
    if where.max() >= count:
        raise InvalidInput(f"{name} knows an action of index {int(where.max())}, but there are {count} actions.")

    company = Company()

    def at(states: FloatArray) -> FloatArray:
        return distributions(in_parts(lambda some: asked(predict, some, name), states), states, name)

    def probabilities(states: FloatArray) -> FloatArray:
        answer = at(states)
        company.check(answer, lambda some: at(states[some]), states, name)
        return spread(answer, where, count, name)

    return DiscretePolicy(probabilities, given)


@checked
@dataclass(frozen=True, eq=False, init=False)
class RegressorQ:
    """Q(s, a) as a regressor predicts it from the columns of the state beside those of the action.

    Made by `sklearn_q`.

    Parameters
    ----------
    model : object with `predict`
        Fitted on the columns of the state, followed by those of the action.
    vectors : array (A, k), optional
        What it takes for actions that are given by their index.
    naming : Naming, optional
        What the columns of the state are called, to be compared with those that the model was fitted on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from accountable_ope.adapters import RegressorQ
    >>> fitted = LinearRegression().fit([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [2.0, 1.0, 3.0])
    >>> RegressorQ(fitted, np.array([[0.0], [1.0]]))(np.array([[2.0]]), np.array([1])).round(6).tolist()
    [4.0]
    """

    model: Any
    vectors: FloatArray | None
    _predict: Callable[[Any], Any] = field(repr=False)
    _company: Company = field(repr=False)

    def __init__(self, model: Any, vectors: FloatArray | None = None, naming: Naming = UNNAMED) -> None:
        if isinstance(model, type) or not callable(getattr(model, "predict", None)):
            raise InvalidInput(f"`model` must be a fitted regressor with `predict`. Got {shown(model)}.")
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "vectors", None if vectors is None else frozen(np.asarray(vectors, dtype=np.float64)))
        _refuse_other_columns(model, naming, type(model).__name__, beside=True)
        object.__setattr__(self, "_predict", _predicting(model.predict, compared=bool(naming.states)))
        object.__setattr__(self, "_company", Company())

    def __repr__(self) -> str:
        return f"RegressorQ({type(self.model).__name__})"

    def __call__(self, states: FloatArray, actions: Any) -> FloatArray:
        name, chosen = type(self.model).__name__, np.asarray(actions)
        wanted = getattr(self.model, "n_features_in_", None)
        columns = action_columns(chosen, self.vectors, None if wanted is None else int(wanted) - states.shape[1], name)
        points = np.concatenate([states, columns], axis=1)

        def at(some: FloatArray) -> FloatArray:
            return rows_of(in_parts(lambda part: asked(self._predict, part, name), some), some, name)

        found = at(points)
        self._company.check(found, lambda some: at(points[some]), points, name)
        if found.shape[1] != 1:
            raise InvalidInput(f"{name} must predict one value per row. Its answer has {found.shape[1]} columns.")
        return found[:, 0]

    predict_value = __call__


@checked
def sklearn_q(model: Any, actions: ArrayLike | int | None = None, naming: Naming = UNNAMED) -> RegressorQ:
    """An estimate of Q from a fitted regressor with `predict`, for `diagnose` and `correct`.

    Parameters
    ----------
    model : object with `predict`
        Fitted on the columns of the state, followed by those of the action: its vector, or its index where it has one column
        more than the state.
    actions : int or array (A, k), optional
        The vectors of a finite action set, or their number for one-hot vectors; None for action vectors.
    naming : Naming, optional
        What the columns of the state are called, such as `data.naming`: a model that was fitted on columns of other names, or in
        another order, is refused.

    Returns
    -------
    RegressorQ

    Raises
    ------
    InvalidInput
        Where it is no regressor or, when asked, it was fitted on other columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from accountable_ope.adapters import sklearn_q
    >>> fitted = LinearRegression().fit([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [0.0, 1.0, 3.0])
    >>> sklearn_q(fitted, actions=2)(np.array([[2.0]]), np.array([1])).round(6).tolist()
    [4.0]
    """
    return RegressorQ(model, None if actions is None else action_vectors(actions), naming)


def action_columns(actions: NDArray[Any], vectors: FloatArray | None, wanted: int | None, name: str) -> FloatArray:
    """Actions as columns beside the state: their vectors, or their index where a model takes one column and vectors have more."""
    if actions.ndim == 2:
        found = np.asarray(actions, dtype=np.float64)
    elif vectors is not None and (wanted is None or wanted == vectors.shape[1]):
        found = vectors[actions]
    else:
        found = np.asarray(actions, dtype=np.float64)[:, None]
    if wanted is not None and found.shape[1] != wanted:
        raise InvalidInput(
            f"{name} takes {max(wanted, 0)} columns beside those of the state, but an action has {found.shape[1]}: fit it on the "
            "columns of the state, followed by those of the action."
        )
    return found


def _refuse_other_columns(model: Any, naming: Naming, name: str, *, beside: bool = False) -> None:
    """A model that was fitted on a data frame knows its columns: in another order they would be mistaken for each other.

    beside: whether those of the action stand behind those of the state.
    """
    fitted = getattr(model, "feature_names_in_", None)
    if fitted is None or not naming.states:
        return
    known = [str(each) for each in fitted][: len(naming.states) if beside else None]
    if known != list(naming.states):
        raise InvalidInput(
            f"{name} was fitted on the columns {', '.join(known[:8])}, but the states have {', '.join(naming.states[:8])}: "
            "fit it on pandas.DataFrame(data.states, columns=data.naming.states), whose rows are those of the data."
        )


def _predicting(method: Callable[[Any], Any], *, compared: bool) -> Callable[[Any], Any]:
    """Without the warning that an array has no names of columns, where they were compared before."""
    if not compared:
        return method

    def call(rows: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*valid feature names.*")
            return method(rows)

    return call
