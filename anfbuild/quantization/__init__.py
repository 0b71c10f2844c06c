"""Static post-training quantization: one pass of statistics, range estimators, encodings, and the QDQ model.

`collect` (statistics.py) runs the samples once; `estimate` (ranges.py) turns what it saw into ranges by any estimator;
`quantize` (quantize.py) writes the QDQ model and its encodings. Only what needs no heavy library is handed out here,
because the schemes are checked at start-up: import the rest from its own module.
"""

from anfbuild.quantization.schemes import AS_IS, FP16, SCHEMES, Scheme, check

__all__ = ["AS_IS", "FP16", "SCHEMES", "Scheme", "check"]
