"""Sets of samples on disk: images or texts with their ground truth, written once and read by
every step that needs data.

Calibration and evaluation sets never share an image, or the photo behind one.
"""

from anfbuild.datasets.registry import KINDS, OF_TEXTS, check, write
from anfbuild.datasets.samples import INDEX, SPLITS, Entry, Sample, read, write_index

__all__ = ["INDEX", "KINDS", "OF_TEXTS", "SPLITS", "Entry", "Sample", "check", "read", "write", "write_index"]
