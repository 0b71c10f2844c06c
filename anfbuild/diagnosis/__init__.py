"""Where a build goes wrong: each stage compared with the one before, and the first node that departs.

`diagnose` runs source -> converted -> conditioned -> QDQ -> emulated on the same samples. A stage past its bound
(stages.py) is searched by exposing inner tensors (bisect.py, locate.py), and the node found is joined with the rules of
lint (rules.py).
"""

from anfbuild.diagnosis.words import remedy, share, stage_sentences

__all__ = ["remedy", "share", "stage_sentences"]
"""What is heavy (onnx, the emulator) is in `diagnose.py`: import it from there."""
