"""Range estimators: from the statistics of one tensor to the range [lo, hi] that its encoding spans.

One file an estimator; `registry.py` knows their names without importing them.
"""

from anfbuild.quantization.estimators.registry import ESTIMATORS, check

__all__ = ["ESTIMATORS", "check"]
