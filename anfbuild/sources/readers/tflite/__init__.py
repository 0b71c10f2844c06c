"""The reader of TensorFlow Lite models: source.py parses, nodes.py and builder.py write, operators/ convert.

The flatbuffers schema is that of the package `tflite`; no TensorFlow is needed.
"""

from anfbuild.sources.readers.tflite.reader import read_tflite

__all__ = ["read_tflite"]
