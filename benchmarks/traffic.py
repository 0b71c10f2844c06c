"""How far the predicted DRAM traffic is from what the compiler reports, on a zoo of seeded networks and three chips.

python benchmarks/traffic.py --cache FOLDER              the table; compiles what the folder does not hold (an hour)
python benchmarks/traffic.py --cache FOLDER --graphs G   models of a folder too, weights made up where they lie outside

The constants of `anfbuild.simulator.blocks` were chosen on the seeds of `TUNED`; those of `HELD` were looked at
afterwards.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from traffic_zoo import networks

from anfbuild import qnn
from anfbuild.errors import AnfbuildError
from anfbuild.graph import clean, load, save
from anfbuild.graph.untrained import fill_weights
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.compiled import Compiled
from anfbuild.quantization.rough import quantize_roughly
from anfbuild.simulator.blocks import traffic_model
from anfbuild.simulator.tiling import Flow, flow
from anfbuild.soc import find

TUNED, HELD = (0, 1, 2, 3), (4, 5)
CHIPS = {"qcs6490": 93, "sm7750": 86, "sm8650": 57}
"""Of 2, 4 and 8 MB VTCM, and of three architectures."""
SCHEME = "int8_per_channel"
_SECONDS, _MEMORY_GB = 90.0, 6.0


@dataclasses.dataclass(frozen=True)
class Row:
    """A network on a chip: MB of one inference, the compiler's and predicted."""

    name: str
    chip: str
    compiled_mb: float
    compiled_spill_mb: float
    predicted_mb: float
    predicted_spill_mb: float
    saving: float

    @property
    def error(self) -> float:
        return abs(self.predicted_mb / self.compiled_mb - 1)

    @property
    def is_right(self) -> bool:
        """Whether it is told right if anything spills."""
        return (self.compiled_spill_mb > 0) == (self.predicted_spill_mb > 0)


def rows(models: Iterator[tuple[str, Path]], cache: Path) -> list[Row]:
    """A row for each model and chip that the compiler took."""
    found = []
    for name, path in models:
        shape: Flow | None = None
        for chip, soc_model in CHIPS.items():
            compiled = _compiled(path, cache / f"{name}.{chip}.json", soc_model)
            if compiled is None or compiled.traffic is None:
                continue
            shape = shape or flow(load(path))
            predicted = traffic_model(shape, find(soc_model).vtcm_mb * 2**20)
            moved = compiled.traffic.read + compiled.traffic.write
            amounts = moved, compiled.traffic.spill, predicted.fused, predicted.spilled
            found.append(Row(name, chip, *(amount / 1e6 for amount in amounts), predicted.saving or 0.0))
    return found


def zoo(seeds: Sequence[int], cache: Path) -> Iterator[tuple[str, Path]]:
    """The quantized networks of these seeds, as files in the cache."""
    for network in networks(seeds):
        path = cache / f"{network.name}.onnx"
        if not path.exists():
            _quantize(network.build(), path)
        yield network.name, path


def graphs(folder: Path, cache: Path) -> Iterator[tuple[str, Path]]:
    """The models of a folder, quantized, as files in the cache."""
    for source in sorted(folder.glob("*.onnx")):
        path = cache / f"graph-{source.stem}.onnx"
        if not path.exists():
            model = onnx.load(source, load_external_data=False)
            fill_weights(model)
            try:
                _quantize(model, path)
            except AnfbuildError as error:
                print(f"{source.stem}: left out: {error.what}")
                continue
        yield source.stem, path


def _quantize(model: onnx.ModelProto, path: Path) -> None:
    shapes = {v.name: [dim.dim_value for dim in v.type.tensor_type.shape.dim] for v in model.graph.input}
    constants = {tensor.name for tensor in model.graph.initializer}
    cleaned = clean(model, {name: shape for name, shape in shapes.items() if name not in constants}).model
    save(quantize_roughly(cleaned, SCHEME), path)


def _compiled(model: Path, record: Path, soc_model: int) -> Compiled | None:
    """What the compiler made of the model, from the cache where it is there; None where it did not take it in time."""
    if not record.exists():
        options = qnn.Options(soc_model, find(soc_model).arch)
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = compile_context(
                    model.read_bytes(), options, Path(folder) / "c", timeout_s=_SECONDS, memory_gb=_MEMORY_GB
                )
                document = found.to_json()
            except AnfbuildError as error:
                document = {"error": error.what}
        record.write_text(json.dumps(document), encoding="utf-8")
    document = json.loads(record.read_text(encoding="utf-8"))
    if "error" in document:
        print(f"{record.stem}: not compiled: {document['error'].splitlines()[0][:100]}")
        return None
    return Compiled.from_json({key: value for key, value in document.items() if key != "seconds"})


def table(title: str, found: Sequence[Row], misses: bool = True) -> None:
    """Print the errors of all rows, of those that spill and of those that do not, and every wrong verdict."""
    if not found:
        return
    spilling = [row for row in found if row.compiled_spill_mb > 0]
    still = [row for row in found if row.compiled_spill_mb == 0]
    print(f"\n{title}: {len({row.name for row in found})} models, {len(found)} compiles")
    for name, part in (("all", found), ("spill", spilling), ("no spill", still)):
        if part:
            errors = np.array([row.error for row in part])
            right = sum(row.is_right for row in part)
            print(
                f"  {name:9} {len(part):4}  total bytes off by {np.median(errors):6.1%} median, "
                f"{np.quantile(errors, 0.9):6.1%} p90   "
                f"spill told right {right} of {len(part)} ({right / len(part):.0%})"
            )
    savings = np.array([row.saving for row in found])
    print(f"  predicted saving: {np.quantile(savings, 0.1):.0%} / {np.median(savings):.0%} / "
          f"{np.quantile(savings, 0.9):.0%} (p10 / median / p90)")  # fmt: skip
    for row in found if misses else ():
        if not row.is_right or row.error > 0.5:
            print(
                f"    {row.name:20} {row.chip:8} compiled {row.compiled_mb:7.2f} MB, spill {row.compiled_spill_mb:6.2f}"
                f"; predicted {row.predicted_mb:7.2f}, spill {row.predicted_spill_mb:6.2f}"
                f"{'' if row.is_right else '   wrong verdict'}"
            )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cache", type=Path, required=True, help="folder of models and of what the compiler said")
    options.add_argument("--graphs", type=Path, help="a folder of ONNX models to judge too")
    asked = options.parse_args()
    asked.cache.mkdir(parents=True, exist_ok=True)
    table("tuned on", rows(zoo(TUNED, asked.cache), asked.cache))
    table("held out", rows(zoo(HELD, asked.cache), asked.cache))
    if asked.graphs is not None:
        table("models given", rows(graphs(asked.graphs, asked.cache), asked.cache))


if __name__ == "__main__":
    main()
