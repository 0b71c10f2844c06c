"""One streaming pass over the samples, which leaves what every range estimator needs.

Memory does not depend on the number of samples: extremes and a histogram for each observed tensor.
"""

from __future__ import annotations

import json
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import onnx

from anfbuild.errors import StepError
from anfbuild.graph.execute import Session, run_each
from anfbuild.quantization.histogram import Histogram, TensorStatistics
from anfbuild.quantization.probes import Probed, with_probes
from anfbuild.quantization.topology import Topology, analyse

_FORMAT = 1
_BATCH = 8
"""Samples whose probes are counted together: the cost of a call is shared, memory stays bounded."""
_ARRAYS = ("low", "high", "first_edge", "bin_width", "zeros", "bins", "counts")


@dataclass(frozen=True)
class Statistics:
    """The statistics of a model's observed tensors over a number of samples."""

    tensors: dict[str, TensorStatistics]
    samples: int

    def save(self, path: Path) -> None:
        """Write an .npz: the same statistics give the same bytes."""
        parts = list(self.tensors.values())
        header = json.dumps({"format": _FORMAT, "samples": self.samples, "tensors": list(self.tensors)})
        np.savez(
            path,
            header=np.frombuffer(header.encode(), np.uint8),
            low=np.array([part.low for part in parts], np.float64),
            high=np.array([part.high for part in parts], np.float64),
            first_edge=np.array([part.first_edge for part in parts], np.float64),
            bin_width=np.array([part.bin_width for part in parts], np.float64),
            zeros=np.array([part.zeros for part in parts], np.int64),
            bins=np.array([len(part.counts) for part in parts], np.int64),
            counts=np.concatenate([part.counts for part in parts]) if parts else np.zeros(0, np.int64),
        )

    @classmethod
    def load(cls, path: Path) -> Statistics:
        """Read what `save` wrote. Raises StepError naming the file when it is something else or damaged."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in _ARRAYS}
                header = json.loads(archive["header"].tobytes())
            if header["format"] != _FORMAT:
                raise ValueError(f"format {header['format']}, expected {_FORMAT}")
            names: list[str] = header["tensors"]
            if any(len(arrays[name]) != len(names) for name in _ARRAYS[:-1]):
                raise ValueError("arrays of unequal length")
            if arrays["bins"].sum() != len(arrays["counts"]):
                raise ValueError("counts of another length than their bins")
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise StepError(
                f"not a statistics file: {error}", where=str(path), remedy="Run the calibrate step again."
            ) from error
        counts = np.split(arrays["counts"], np.cumsum(arrays["bins"])[:-1])
        low, high, first_edge, bin_width, zeros = (arrays[name].tolist() for name in _ARRAYS[:5])
        parts = map(TensorStatistics, low, high, first_edge, bin_width, counts, zeros)
        return cls(dict(zip(names, parts, strict=True)), int(header["samples"]))


def collect(model: onnx.ModelProto, samples: Iterable[tuple[str, Mapping[str, np.ndarray]]]) -> Statistics:
    """Run every sample (its name, input name -> array) once through the float `model`.

    Raises StepError when there is no sample, a sample does not fit the model's inputs, or a tensor holds NaN or Inf
    (naming the sample and the first such tensor).
    """
    topology = analyse(model)
    probed = with_probes(model, topology)
    histograms = {name: Histogram() for name in probed.probes}
    count = 0
    started: deque[tuple[str, Mapping[str, np.ndarray]]] = deque()
    results = run_each(probed.model, _noting(samples, started))
    while values := list(islice(results, _BATCH)):
        for found in values:
            sample, feeds = started.popleft()
            if not _is_finite(probed, found):
                _refuse_non_finite(model, topology, sample, feeds)
        for name, probe in probed.probes.items():
            stack = np.stack([found[probe.output] for found in values])
            minima, maxima = stack[:, : probe.rows], stack[:, probe.rows : 2 * probe.rows]
            sampled = stack[:, 2 * probe.rows :]
            if not probe.rows:
                minima = maxima = sampled
            elif probe.falling:
                minima, maxima = maxima, minima
            histograms[name].add(sampled, minima, maxima, probe.stride)
        count += len(values)
    if not count:
        raise StepError("there is no calibration sample", remedy="Set dataset.samples to at least 1.")
    return Statistics({name: histogram.statistics() for name, histogram in histograms.items()}, count)


def _noting(
    samples: Iterable[tuple[str, Mapping[str, np.ndarray]]], started: deque[tuple[str, Mapping[str, np.ndarray]]]
) -> Iterator[Mapping[str, np.ndarray]]:
    """The feeds of `samples`; each sample is appended to `started` when its feeds are taken."""
    for sample in samples:
        started.append(sample)
        yield sample[1]


def _is_finite(probed: Probed, values: Mapping[str, np.ndarray]) -> bool:
    outputs = (*(probe.output for probe in probed.probes.values()), *probed.sums)
    return bool(np.isfinite(np.concatenate([values[output] for output in outputs])).all())


def _refuse_non_finite(
    model: onnx.ModelProto, topology: Topology, sample: str, feeds: Mapping[str, np.ndarray]
) -> None:
    """Raise for the first tensor with NaN or Inf. Where there is none, the sum of finite values had overflowed."""
    inputs = {value.name for value in model.graph.input}
    values = dict(feeds)
    values |= Session(model, outputs=[name for name in topology.activations if name not in inputs]).run(feeds)
    for name in topology.activations:
        if not np.isfinite(values[name]).all():
            kind = "NaN" if np.isnan(values[name]).any() else "Inf"
            raise StepError(
                f"tensor {name!r} holds {kind}: its range cannot be estimated",
                where=f"calibration sample {sample}",
                remedy="Mend the sample, or clamp the values inside the model (a mask of -inf to about -50).",
            )
