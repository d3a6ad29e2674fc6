"""Sections whose branches share a state, for kernels that are a product over states and actions.

E_a' K0((s', a'), .) is a sum over as many branches as there are actions, and an inner product of two such sections is one over
pairs of them. For K0((s, a), (t, b)) = K_s(s, t) K_a(a, b) the state has to be looked at once:

    <sum_b u_b K0((s, a_b), .), sum_c v_c K0((t, a_c), .)> = K_s(s, t) u'K_a v,

so that many actions cost a product with the small matrix of K_a between action vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Gaussian, Kernel, Laplace, Product, Tabular, block, distinct_rows
from ..validation import FloatArray, IntArray

LARGEST_TABLE = 2**20
"""Entries of K_a between action vectors that are tabulated where only those of the same row are needed."""


def factors(kernel: Kernel, states: int, columns: int) -> tuple[Kernel, Kernel] | None:
    """(K_s, K_a) of a kernel that is a product over the first columns of a point, its state, and the others; None: it is none."""
    if not 0 < states < columns:
        return None
    if isinstance(kernel, Product):
        return (kernel.state_kernel, kernel.action_kernel) if kernel.state_dimension == states else None
    if isinstance(kernel, Tabular):
        return kernel, kernel
    if not isinstance(kernel, Gaussian | Laplace):
        return None
    h = kernel.bandwidth
    if h.ndim == 0:
        return kernel, kernel
    kind = Gaussian if isinstance(kernel, Gaussian) else Laplace
    return (kind(h[:states]), kind(h[states:])) if len(h) == columns else None


@dataclass(frozen=True, eq=False)
class Bundle:
    """n elements sum_b weights[i, b] K0((states[i], a_ib), .).

    vectors: action vectors (p, k).
    which:   (n, B), a_ib = vectors[which[i, b]]; None: every row has all of them, a_ib = vectors[b].
    """

    states: FloatArray
    vectors: FloatArray
    which: IntArray | None
    weights: FloatArray

    @property
    def apart(self) -> int:
        """How many entries of K_a a row may take of its own."""
        return 1 if self.which is None else self.weights.shape[1]

    def rows(self, index: slice) -> Bundle:
        states, weights = self.states[index], self.weights[index]
        if self.which is None or len(self.vectors) <= weights.size:
            return Bundle(states, self.vectors, None if self.which is None else self.which[index], weights)
        used, which = np.unique(self.which[index], return_inverse=True)
        return Bundle(states, self.vectors[used], which.reshape(weights.shape), weights)

    def products(self, other: Bundle, state_kernel: Kernel, action_kernel: Kernel) -> FloatArray:
        """The matrix of inner products of all elements with all elements of another bundle."""
        table = other._gathered(block(action_kernel, other.vectors, self.vectors))
        return block(state_kernel, self.states, other.states) * self._gathered(np.ascontiguousarray(table.T))

    def row_products(self, other: Bundle, state_kernel: Kernel, action_kernel: Kernel) -> FloatArray:
        """The inner product of each element with that of another bundle in the same row."""
        together, few = np.zeros(len(self.states)), len(self.vectors) * len(other.vectors) <= LARGEST_TABLE
        table = block(action_kernel, self.vectors, other.vectors) if few else None
        if table is not None and self.which is None and other.which is None:
            together += np.einsum("ib,ib->i", self.weights @ table, other.weights)
        else:
            for x, u in self._branches():
                for y, v in other._branches():
                    values = action_kernel.paired(self.vectors[x], other.vectors[y]) if table is None else table[x, y]
                    together += u * v * values
        return state_kernel.paired(self.states, other.states) * together

    def _branches(self) -> list[tuple[IntArray, FloatArray]]:
        """(which vector, weight) of every row, branch by branch."""
        columns = range(self.weights.shape[1])
        if self.which is None:
            return [(np.full(len(self.weights), b), self.weights[:, b]) for b in columns]
        return [(self.which[:, b], self.weights[:, b]) for b in columns]

    def _gathered(self, table: FloatArray) -> FloatArray:
        """sum_b weights[i, b] table[a_ib], (n, M) for a table (p, M)."""
        if self.which is None:
            return np.asarray(self.weights @ table)
        return np.asarray(sum(weights[:, None] * table[which] for which, weights in self._branches()))


def bundles_of(branches: Sequence[tuple[FloatArray, FloatArray]], states: int) -> tuple[Bundle, ...]:
    """Branches with the same states, one after the other, as one bundle; those with one action for all rows apart."""
    found: list[Bundle] = []
    groups: list[list[tuple[FloatArray, FloatArray]]] = []
    for points, weights in branches:
        same = bool(groups) and np.array_equal(groups[-1][0][0][:, :states], points[:, :states])
        groups[-1].append((points, weights)) if same else groups.append([(points, weights)])
    for group in groups:
        here = group[0][0][:, :states]
        actions = [points[:, states:] for points, _ in group]
        shared = [len(each) > 0 and bool((each == each[0]).all()) for each in actions]
        common = [b for b, one in enumerate(shared) if one]
        own = [b for b, one in enumerate(shared) if not one]
        if common:
            vectors = np.array([actions[b][0] for b in common])
            found.append(Bundle(here, vectors, None, np.column_stack([group[b][1] for b in common])))
        if own:
            listed = np.concatenate([actions[b] for b in own])
            first, which = distinct_rows(listed)
            weights = np.column_stack([group[b][1] for b in own])
            found.append(Bundle(here, listed[first], np.ascontiguousarray(which.reshape(len(own), -1).T), weights))
    return tuple(found)
