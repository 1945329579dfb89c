"""Decision trees and forests as arrays: scikit-learn trains them, compiled code asks them (thesis 6.2.2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import PenstockError
from penstock.kernel.compiling import compiled
from penstock.plan.tables import Floats, Ints

LEAF = -1


@dataclass(frozen=True)
class Forest:
    """Trees, one behind the other.

    Attributes:
        roots: (K,) the first node of each tree.
        features: (M,) which feature a node asks about, LEAF if none.
        limits: (M,) go left if the feature is at most this.
        left: (M,) the next node then.
        right: (M,) and else.
        values: (M,) what a leaf says.
    """

    roots: Ints
    features: Ints
    limits: Floats
    left: Ints
    right: Ints
    values: Floats

    @classmethod
    def trained(cls, features: Floats, labels: Floats, weights: Floats, *, trees: int, depth: int, seed: int) -> Forest:
        """Train on rows of features with their utilities.

        Args:
            features: (n, F).
            labels: (n,) utilities, equation 6.3.
            weights: (n,) how often each row was observed.
            trees: 1 is a decision tree, more are a random forest.
            depth: the deepest that a tree may be: it bounds the memory and the time.
            seed: of the forest.
        """
        model = _learner(trees, depth, seed).fit(features, labels, sample_weight=weights)
        return cls.joined([each.tree_ for each in (model.estimators_ if trees > 1 else [model])])

    @classmethod
    def joined(cls, trees: list[Any]) -> Forest:
        """Return trees of scikit-learn as one."""
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
        lefts = [np.where(tree.children_left >= 0, tree.children_left + start, LEAF)
                 for tree, start in zip(trees, starts, strict=True)]  # fmt: skip
        rights = [np.where(tree.children_right >= 0, tree.children_right + start, LEAF)
                  for tree, start in zip(trees, starts, strict=True)]  # fmt: skip
        features = [np.where(tree.children_left >= 0, tree.feature, LEAF) for tree in trees]
        return cls(
            starts.astype(np.int64),
            np.concatenate(features).astype(np.int64),
            np.concatenate([tree.threshold for tree in trees]),
            np.concatenate(lefts).astype(np.int64),
            np.concatenate(rights).astype(np.int64),
            np.concatenate([tree.value[:, 0, 0] for tree in trees]),
        )

    @property
    def depth(self) -> int:
        """How many nodes are asked at most, in all trees."""
        total = 0
        for root in self.roots:
            level, nodes = 0, [int(root)]
            while nodes := [n for node in nodes if self.features[node] != LEAF
                            for n in (int(self.left[node]), int(self.right[node]))]:  # fmt: skip
                level += 1
            total += level + 1
        return total

    def predict(self, features: Floats) -> Floats:
        """Return the utility of each row, the mean over the trees."""
        result = np.zeros(len(features))
        _predict(self.roots, self.features, self.limits, self.left, self.right, self.values, features, result)
        return result


@compiled
def _predict(
    roots: Ints, features: Ints, limits: Floats, left: Ints, right: Ints, values: Floats, rows: Floats, result: Floats
) -> None:
    for k in range(len(rows)):
        total = 0.0
        for root in roots:
            node = root
            while features[node] >= 0:
                node = left[node] if rows[k, features[node]] <= limits[node] else right[node]
            total += values[node]
        result[k] = total / len(roots)


def _learner(trees: int, depth: int, seed: int) -> Any:
    try:
        from sklearn.ensemble import RandomForestRegressor
        from sklearn.tree import DecisionTreeRegressor
    except ImportError as error:
        raise PenstockError(
            "decision trees are trained by scikit-learn, which is not installed\n  fix: pip install 'penstock[lab]'"
        ) from error
    if trees == 1:
        return DecisionTreeRegressor(max_depth=depth, min_samples_leaf=5, random_state=seed)
    return RandomForestRegressor(n_estimators=trees, max_depth=depth, min_samples_leaf=5, random_state=seed)
