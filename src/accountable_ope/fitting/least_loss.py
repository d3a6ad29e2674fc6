"""Point estimates of Q from the kernel loss: the minimizer with a ridge, or gradient descent stopped after some steps."""

from __future__ import annotations

import numpy as np

from ..arguments import checked
from ..classes.features import FeatureMap
from ..classes.linear_q import LinearQ
from ..errors import InvalidInput
from ..kernels.kernel import Kernel
from ..problem.policy import Policy
from ..problem.problem import Experience
from ..problem.transitions import StartStates, Transitions
from ..programs.quadratic import Quadratic
from ..statistics.bellman import bellman_system
from ..statistics.statistic import kernel_statistic
from ..validation import BoolArray, FloatArray, frozen, number, whole


@checked
def fit_q(
    data: Transitions,
    policy: Policy,
    *,
    kernel: Kernel,
    features: FeatureMap,
    discount: float,
    ridge: float = 1e-6,
    steps: int | None = None,
) -> LinearQ:
    """The Q of the class that minimizes the V-statistic.

    Parameters
    ----------
    data : Transitions
        The rows to fit.
    policy : Policy
        The target policy.
    kernel : Kernel
        The test kernel.
    features : feature map
        The class.
    discount : float
        The discount factor.
    ridge : float
        Penalty on the coefficients, without units.
    steps : int, optional
        Steps of gradient descent; by default the minimizer itself.

    Returns
    -------
    LinearQ

    Notes
    -----
    steps=None: min loss(theta) + ridge * size * ||theta_penalized||^2, in closed form (size: the mean of the diagonal of the loss
    matrix, so that the ridge has no units). steps=k: k steps of gradient descent from 0 at the largest safe rate,
    1 / (2 lambda_max), with the same ridge: few steps give a biased estimate.

    Examples
    --------
    >>> import numpy as np, accountable_ope as aope
    >>> from accountable_ope.environments import PlantedMDP
    >>> mdp = PlantedMDP(seed=1, features=5, discount=0.6)
    >>> data = mdp.sample(np.random.default_rng(0), trajectories=20)
    >>> q = aope.fit_q(data, mdp.policy, kernel=aope.Gaussian(1.0), features=mdp.features(), discount=0.6)
    >>> bool(abs(q(data.states[:1], data.actions[:1])[0]) < 2.5)
    True
    """
    if number(ridge, "ridge") < 0:
        raise InvalidInput(f"`ridge` must not be negative. Got {ridge!r}.")
    if steps is not None:
        whole(steps, "steps", least=0)
    anywhere = StartStates(data.states[:1])  # the loss does not depend on where the policy starts
    system = bellman_system(Experience(data, anywhere, policy, discount), features)
    loss = kernel_statistic(system, kernel).v_loss()
    theta = minimize_loss(loss, system.penalized, ridge) if steps is None else descend(loss, system.penalized, ridge, steps)
    return LinearQ(features, frozen(theta), policy.action_vectors)


def minimize_loss(loss: Quadratic, penalized: BoolArray, ridge: float) -> FloatArray:
    """argmin loss + ridge term; the least-norm one where the loss is flat."""
    H = _with_ridge(loss, penalized, ridge)
    return np.asarray(np.linalg.lstsq(H, loss.a, rcond=1e-12)[0])


def descend(loss: Quadratic, penalized: BoolArray, ridge: float, steps: int) -> FloatArray:
    """Gradient descent from 0 at rate 1 / (2 lambda_max): theta <- theta - (H theta - a) / lambda_max."""
    H = _with_ridge(loss, penalized, ridge)
    values, vectors = np.linalg.eigh(H)
    largest = float(values[-1])
    if largest <= 0:
        return np.zeros(len(loss.a))
    # k steps in closed form: each eigendirection has moved the share 1 - (1 - g / largest)^k of its way.
    shrink = np.clip(values / largest, 0.0, 1.0)
    share = -np.expm1(steps * np.log1p(-np.minimum(shrink, 1 - 1e-16)))
    safe = np.where(values > 1e-14 * largest, values, np.inf)
    return np.asarray(vectors @ (share / safe * (vectors.T @ loss.a)))


def _with_ridge(loss: Quadratic, penalized: BoolArray, ridge: float) -> FloatArray:
    size = float(np.mean(np.diagonal(loss.A)))
    return np.asarray(0.5 * (loss.A + loss.A.T) + ridge * size * np.diag(penalized.astype(float)))
