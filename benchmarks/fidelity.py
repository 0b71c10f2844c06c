"""How far predicted latencies are from measured ones, each family of models predicted by a fit that never saw it.

python benchmarks/fidelity.py            the table, from the shipped features and measurements; compiles nothing
python benchmarks/fidelity.py --write    fit the costs of all chips again and write them into conf/target
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from anfbuild.qnn.features import Features
from anfbuild.simulator.compiled import RESIDUAL90
from anfbuild.simulator.fit import Sample, cross_validate, fit, pooled

DATA = Path(__file__).parent / "data" / "fidelity"
TARGETS = Path(__file__).parents[1] / "conf" / "target"

CHIPS = {
    "qualcomm-qcs6490": "qcs6490",
    "qualcomm-snapdragon-8gen1": "sm8450",
    "qualcomm-qcs8550-proxy": "sm8550",
    "qualcomm-snapdragon-8gen3": "sm8650",
    "qualcomm-snapdragon-8-elite-for-galaxy": "sm8750",
    "qualcomm-snapdragon-8-elite-gen5-for-galaxy": "sm8850",
    "qualcomm-snapdragon-x-elite": "sc8380xp",
    "qualcomm-sa8295p": "sa8295p",
    "qualcomm-sa8775p": "sa8775p",
    "qualcomm-qcs9075": "qcs9075",
    "qualcomm-qcs8275": "qcs8275",
    "qualcomm-qcm6690": "qcm6690",
    "qualcomm-snapdragon-7gen4": "sm7750",
    "qualcomm-sa7255p": "sa7255p",
}
"""AI Hub's name of a chip -> its file in conf/target."""
NEAREST = {
    "sm8350": "sm8450",
    "sm8475": "sm8450",
    "qcs8550": "sm8550",
    "sc8480xp": "sm8850",
    "sa8797": "sm8850",
    "sa8255p": "sa8775p",
}
"""A chip that was never measured -> the one whose costs stand in."""
SMALL_MS = 0.5
_MARK = "  # Costs of compiled work"


def load() -> dict[str, list[Sample]]:
    """Samples by AI Hub's name of the chip."""
    with (DATA / "features.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    compiled = {(row.pop("model"), row.pop("precision")): _features(row) for row in rows}
    samples: dict[str, dict[tuple[str, str], Sample]] = defaultdict(dict)
    with (DATA / "measured.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = row["model"], row["precision"]
            if key in compiled and row["chipset"] in CHIPS:
                sample = Sample(*key[:1], row["family"], key[1], compiled[key], float(row["latency_ms"]))
                samples[row["chipset"]].setdefault(key, sample)
    return {chip: list(found.values()) for chip, found in samples.items()}


def _features(row: Mapping[str, str]) -> Features:
    numbers = {name: float(text) if name == "reference_ms" else int(text) for name, text in row.items()}
    return Features.from_json(numbers)


def table(samples: Mapping[str, Sequence[Sample]], prior: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Print the table; give the 90 % interval of measured over predicted by precision."""
    ratios: dict[str, list[float]] = defaultdict(list)
    small: dict[str, list[float]] = defaultdict(list)
    ranks: dict[str, list[float]] = defaultdict(list)
    for of_chip in samples.values():
        by_precision: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for sample, ratio in zip(of_chip, cross_validate(of_chip, prior), strict=True):
            ratios[sample.precision].append(ratio)
            by_precision[sample.precision].append((sample.latency_ms, ratio * sample.latency_ms))
            if sample.latency_ms < SMALL_MS:
                small[sample.precision].append(ratio)
        for precision, pairs in by_precision.items():
            ranks[precision].append(rank_correlation(np.array(pairs)))
    intervals, lines = {}, []
    for precision in sorted(ratios):
        found = np.array(ratios[precision])
        low, high = (float(np.quantile(1 / found, share)) for share in (0.05, 0.95))
        intervals[precision] = low, high
        shipped = RESIDUAL90[precision]
        covered = np.mean((found >= 1 / shipped[1]) & (found <= 1 / shipped[0]))
        lines.append(
            (
                precision,
                len(found),
                _error(found),
                _error(np.array(small[precision])) if small[precision] else "-",
                f"{np.median(ranks[precision]):.3f}",
                f"{covered:.0%}",
                f"{(shipped[1] - shipped[0]) / 2:.0%}",
            )
        )
    heading = ("precision", "rows", "median / p90", f"under {SMALL_MS} ms", "rank", "in interval", "half width")
    for line in (heading, *lines):
        print("  ".join(f"{cell!s:>16}" for cell in line))
    return intervals


def _error(ratios: np.ndarray) -> str:
    off = np.abs(ratios - 1) * 100
    return f"{np.median(off):.1f} / {np.quantile(off, 0.9):.1f} %"


def rank_correlation(pairs: np.ndarray) -> float:
    """Spearman's, of the two columns."""
    ranks = np.argsort(np.argsort(pairs, axis=0), axis=0)
    return float(np.corrcoef(ranks.T)[0, 1])


def write(samples: Mapping[str, Sequence[Sample]], prior: Mapping[str, float]) -> None:
    """Put the costs of each chip into its file."""
    costs = {CHIPS[chip]: (fit(of_chip, prior), f"{len(of_chip)} measurements") for chip, of_chip in samples.items()}
    costs |= {chip: (costs[near][0], f"those of {near}: an estimate") for chip, near in NEAREST.items()}
    for chip, (found, source) in costs.items():
        _write_costs(TARGETS / f"{chip}.yaml", found, source)


def _write_costs(path: Path, costs: Mapping[str, float], source: str) -> None:
    text = path.read_text(encoding="utf-8").partition(_MARK)[0]
    lines = [f"{_MARK}, ms a unit; benchmarks/fidelity.py --write, from {source}", "  compiled:"]
    lines += [f"    {name}: {cost:.3e}" for name, cost in costs.items()]
    path.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true")
    asked = options.parse_args()
    samples = load()
    prior = pooled(samples)
    intervals = table(samples, prior)
    if asked.write:
        write(samples, prior)
        print(f"PRIOR (anfbuild/simulator/fit.py): { ({name: float(f'{cost:.3g}') for name, cost in prior.items()}) }")
        print(f"RESIDUAL90 (anfbuild/simulator/compiled.py): {intervals}")


if __name__ == "__main__":
    main()
