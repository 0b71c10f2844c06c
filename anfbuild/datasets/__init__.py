"""Sets of samples on disk: images with their ground truth, written once and read by every step that needs data.

Calibration and evaluation sets never share an image, or the photo behind one.
"""

from anfbuild.datasets.registry import KINDS, check, write
from anfbuild.datasets.samples import INDEX, SPLITS, Entry, Sample, read, write_index

__all__ = ["INDEX", "KINDS", "SPLITS", "Entry", "Sample", "check", "read", "write", "write_index"]
