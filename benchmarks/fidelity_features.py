"""Writes benchmarks/data/fidelity/features.csv: what the compiler makes of the graphs of the measured models.

python benchmarks/fidelity_features.py GRAPHS [MODEL ...]    GRAPHS holds MODEL.onnx; weights may be missing

Every model and precision of measured.csv is compiled for one chip, a Snapdragon 8 Gen 3: other chips' own compiles tell
little more. Rows that are there are kept, unless the model is named. A compile that does not end leaves no row.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import sys
import tempfile
from pathlib import Path

from anfbuild import qnn
from anfbuild.errors import StepError
from anfbuild.graph import clean_in_place
from anfbuild.graph.model import parse
from anfbuild.graph.untrained import fill_weights
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.features import Features, summarise
from anfbuild.quantization.rough import quantize_roughly

DATA = Path(__file__).parent / "data" / "fidelity"
FILE = DATA / "features.csv"
SCHEMES = {"w8a8": "int8_per_channel", "w8a16": "a16w8_per_channel", "float": None}
COLUMNS = [field.name for field in dataclasses.fields(Features) if field.name != "unlisted"]
_SECONDS, _MEMORY_GB = 900.0, 14.0


def compiled(graph: Path, scheme: str | None) -> Features:
    """Features of the graph in that scheme; None is half precision. Raises StepError where the compile fails."""
    model = parse(graph)
    fill_weights(model)
    clean_in_place(model, {}, None)
    if scheme is not None:
        model = quantize_roughly(model, scheme)
    options = qnn.Options(soc_model=57, arch="v75", vtcm_mb=8, fp16=scheme is None)
    with tempfile.TemporaryDirectory() as folder:
        found = compile_context(
            model.SerializeToString(), options, Path(folder) / "context", timeout_s=_SECONDS, memory_gb=_MEMORY_GB
        )
    if found.operations is None:
        raise StepError("the compiler left no schematic on this host")
    return summarise(found.operations)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("graphs", type=Path)
    options.add_argument("models", nargs="*")
    asked = options.parse_args()
    with (DATA / "measured.csv").open(encoding="utf-8", newline="") as file:
        pairs = sorted({(row["model"], row["precision"]) for row in csv.DictReader(file)})
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = {(row["model"], row["precision"]): row for row in csv.DictReader(file)}
    failed = 0
    for model, precision in pairs:
        if (model, precision) in rows and model not in asked.models:
            continue
        try:
            found = compiled(asked.graphs / f"{model}.onnx", SCHEMES[precision])
        except StepError as error:
            failed += 1
            print(f"{model} {precision}: {error}", file=sys.stderr)
            continue
        rows[model, precision] = {
            **{"model": model, "precision": precision},
            **{name: str(getattr(found, name)) for name in COLUMNS},
        }
        with FILE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["model", "precision", *COLUMNS], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[pair] for pair in sorted(rows))
        print(f"{model} {precision}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
