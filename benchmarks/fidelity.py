"""How far predicted latencies are from measured ones, each family of models predicted by a fit that never saw it.

python benchmarks/fidelity.py            the table, from the shipped features and measurements; compiles nothing
python benchmarks/fidelity.py --write    fit all costs again, and write anfbuild/simulator/prior.py and conf/target
python benchmarks/fidelity.py --check    exit 1 where what is shipped, or what README.md says, is not what comes out

benchmarks/fidelity_features.py makes the features.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from anfbuild.qnn.features import Features
from anfbuild.simulator import prior as shipped
from anfbuild.simulator.compiled import COSTS, latency_ms
from anfbuild.simulator.fit import Sample, common, fit

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data" / "fidelity"
TARGETS = ROOT / "conf" / "target"
PRIOR_FILE = Path(shipped.__file__)

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
ANCHORS = 10
TARGET = {"w8a8": "15 / 45", "w8a16": "20 / 55", "float": "15 / 45"}
_MARK = "  # Costs of compiled work"
_CLOSE = 0.02
"""How far apart two fits of the same data may be on two machines, as a ratio."""

Samples = Mapping[str, Sequence[Sample]]
"""By chip, named as its file in conf/target."""


class Row(NamedTuple):
    """One prediction of what its fit had not seen."""

    chip: str
    sample: Sample
    predicted: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.sample.latency_ms


def load() -> dict[str, list[Sample]]:
    with (DATA / "features.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    compiled = {(row.pop("model"), row.pop("precision")): features(row) for row in rows}
    samples: dict[str, dict[tuple[str, str], Sample]] = defaultdict(dict)
    with (DATA / "measured.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = row["model"], row["precision"]
            if key in compiled and row["chipset"] in CHIPS:
                sample = Sample(key[0], row["family"], key[1], compiled[key], float(row["latency_ms"]))
                samples[CHIPS[row["chipset"]]].setdefault(key, sample)
    return {chip: list(found.values()) for chip, found in samples.items()}


def features(row: Mapping[str, str]) -> Features:
    return Features.from_json({**{name: int(text) for name, text in row.items()}, "unlisted": {}})


def where(samples: Samples, keep: Callable[[Sample], bool]) -> dict[str, list[Sample]]:
    return {chip: [sample for sample in of_chip if keep(sample)] for chip, of_chip in samples.items()}


def outside(samples: Samples, left_out: Collection[str]) -> dict[str, list[Sample]]:
    return where(samples, lambda sample: sample.family not in left_out)


def families(samples: Samples) -> list[str]:
    return sorted({sample.family for of_chip in samples.values() for sample in of_chip})


def predict(chip: str, samples: Iterable[Sample], costs: Mapping[str, float]) -> list[Row]:
    return [Row(chip, sample, latency_ms(sample.features, costs)) for sample in samples]


def family_out(samples: Samples, never: Collection[str] = ()) -> list[Row]:
    """Each family predicted by a fit that saw neither it nor the families in `never`."""
    rows: list[Row] = []
    for family in families(samples):
        if family in never:
            continue
        seen = outside(samples, {family, *never})
        prior = common(list(seen.values()))
        for chip, of_chip in samples.items():
            rows += predict(chip, (s for s in of_chip if s.family == family), fit(seen[chip], prior))
    return rows


def chip_out(samples: Samples) -> list[Row]:
    """Each chip predicted from ten of its own measurements and the costs that the other chips have in common."""
    rows: list[Row] = []
    for chip, of_chip in samples.items():
        prior = common([others for name, others in samples.items() if name != chip])
        anchors = random.Random(chip).sample(range(len(of_chip)), ANCHORS)
        costs = fit([of_chip[index] for index in anchors], prior)
        rows += predict(chip, (s for index, s in enumerate(of_chip) if index not in anchors), costs)
    return rows


def stand_in(samples: Samples) -> float:
    """How far off, as a factor, a chip's costs are on another one of its architecture and VTCM: the 90th percentile."""
    kind = {chip: tuple(map(target(chip).get, ("arch", "vtcm_mb"))) for chip in samples}
    costs = {chip: fit(of_chip) for chip, of_chip in samples.items()}
    factors = []
    for chip, of_chip in samples.items():
        for other in samples:
            if other != chip and kind[other] == kind[chip]:
                factors.append(abs(math.log(np.median([row.ratio for row in predict(chip, of_chip, costs[other])]))))
    return math.exp(np.quantile(factors, 0.9))


def intervals(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Measured over predicted time, 5th and 95th percentile, by precision."""
    found = {}
    for precision in sorted({row.sample.precision for row in rows}):
        ratios = [1 / row.ratio for row in rows if row.sample.precision == precision]
        found[precision] = float(np.quantile(ratios, 0.05)), float(np.quantile(ratios, 0.95))
    return found


def nested(samples: Samples, rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """(share of measurements in the interval, median half width over the prediction) by precision.

    The interval of a family is made of the errors on the other families, of fits that saw neither.
    """
    inside: dict[str, list[bool]] = defaultdict(list)
    widths: dict[str, list[float]] = defaultdict(list)
    for family in families(samples):
        bounds = intervals(family_out(samples, never=[family]))
        for row in rows:
            if row.sample.family == family:
                low, high = bounds[row.sample.precision]
                inside[row.sample.precision].append(low <= 1 / row.ratio <= high)
                widths[row.sample.precision].append((high - low) / 2)
    return {name: (float(np.mean(inside[name])), float(np.median(widths[name]))) for name in inside}


def error(rows: Sequence[Row]) -> tuple[float, float]:
    """Median and 90th percentile of the absolute error, in percent."""
    off = [abs(row.ratio - 1) * 100 for row in rows]
    return float(np.median(off)), float(np.quantile(off, 0.9))


def rank(rows: Sequence[Row]) -> float:
    """Spearman's correlation within a chip, the middle one of the chips."""
    found = []
    for chip in {row.chip for row in rows}:
        pairs = np.array([(row.predicted, row.sample.latency_ms) for row in rows if row.chip == chip])
        found.append(np.corrcoef(np.argsort(np.argsort(pairs, axis=0), axis=0).T)[0, 1])
    return float(np.median(found))


def print_table(rows: Sequence[Row], held: Mapping[str, tuple[float, float]]) -> None:
    heading = ("precision", "rows", "median / p90 %", "target", f"under {SMALL_MS} ms %", "rank", "in interval", "half")
    print("  ".join(f"{cell:>15}" for cell in heading))
    for precision, aim in TARGET.items():
        of = [row for row in rows if row.sample.precision == precision]
        small = [row for row in of if row.sample.latency_ms < SMALL_MS]
        interval = [f"{share:.0%}" for share in held[precision]] if precision in held else ["-", "-"]
        cells = (
            *(precision, len(of), "{:.1f} / {:.1f}".format(*error(of)), aim),
            *(f"{error(small)[0]:.1f}" if small else "-", f"{rank(of):.3f}", *interval),
        )
        print("  ".join(f"{cell!s:>15}" for cell in cells))


def readme_row(samples: Samples, rows: Sequence[Row]) -> str:
    """The row of README.md that says how good this is."""
    of = {name: [row for row in rows if row.sample.precision == name] for name in TARGET}
    figures = "; ".join("{:.0f} / {:.0f} %".format(*error(found)) for found in of.values())
    count = sum(map(len, samples.values()))
    return (
        f"against {count} measurements on {len(samples)} chips, families left out, median / p90: w8a8; w8a16; float: "
        + (f"all missed | {figures} |")
    )


def target(chip: str) -> dict[str, object]:
    return dict(yaml.safe_load((TARGETS / f"{chip}.yaml").read_text(encoding="utf-8")))


def all_costs(samples: Samples, prior: Mapping[str, float]) -> dict[str, tuple[dict[str, float], str]]:
    """By chip: the costs, and of what they are."""
    costs = {chip: (fit(of_chip, prior), f"{len(of_chip)} measurements") for chip, of_chip in samples.items()}
    return costs | {chip: (costs[near][0], f"those of {near}: an estimate") for chip, near in NEAREST.items()}


def write(path: Path, costs: Mapping[str, float], source: str) -> None:
    """Put the costs of a chip into its file."""
    text = path.read_text(encoding="utf-8").partition(_MARK)[0]
    lines = [f"{_MARK}, ms a unit; benchmarks/fidelity.py --write, from {source}", "  compiled:"]
    lines += [f"    {name}: {cost:.3e}" for name, cost in costs.items()]
    path.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


def write_prior(prior: Mapping[str, float], bounds: Mapping[str, tuple[float, float]], factor: float) -> None:
    """Replace the numbers of prior.py; its words stay."""
    text = PRIOR_FILE.read_text(encoding="utf-8")
    values = "".join(f'    "{name}": {prior[name]:.3e},\n' for name in COSTS)
    text = _between(text, "PRIOR: Mapping[str, float] = {\n", "}\n", values)
    pairs = "".join(f'    "{name}": ({low:.3f}, {high:.3f}),\n' for name, (low, high) in bounds.items())
    text = _between(text, "RESIDUAL90: Mapping[str, tuple[float, float]] = {\n", "}\n", pairs)
    text = _between(text, "\nNEVER_FITTED = ", "\n", f"{factor:.3f}")
    PRIOR_FILE.write_text(text, encoding="utf-8")


def _between(text: str, before: str, after: str, new: str) -> str:
    start = text.index(before) + len(before)
    return text[:start] + new + text[text.index(after, start) :]


def differences(
    prior: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float]],
    factor: float,
    costs: Mapping[str, tuple[Mapping[str, float], str]],
) -> list[str]:
    """The names of shipped numbers that are not what was fitted."""
    found = {f"prior.py: {name}": (shipped.PRIOR.get(name, 0.0), prior[name]) for name in COSTS}
    for precision, pair in bounds.items():
        for index, bound in enumerate(pair):
            found[f"prior.py: RESIDUAL90 {precision}"] = (shipped.RESIDUAL90[precision][index], bound)
    found["prior.py: NEVER_FITTED"] = (shipped.NEVER_FITTED, factor)
    for chip, (fitted, _) in costs.items():
        rates = target(chip)["rates"]
        kept = rates.get("compiled", {}) if isinstance(rates, dict) else {}
        found |= {f"{chip}.yaml: {name}": (float(kept.get(name, 0.0)), cost) for name, cost in fitted.items()}
    return [name for name, (old, new) in found.items() if not math.isclose(old, new, rel_tol=_CLOSE)]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true")
    options.add_argument("--check", action="store_true")
    asked = options.parse_args()
    samples = load()
    prior = common(list(samples.values()))
    costs = all_costs(samples, prior)
    rows = family_out(samples)
    bounds, factor = intervals(rows), stand_in(samples)
    print(f"a family left out; intervals from the others' errors ({len(rows)} rows)")
    print_table(rows, nested(samples, rows))
    print(f"\na chip left out, {ANCHORS} of its models fitted, the rest predicted")
    print_table(chip_out(samples), {})
    print(f"\na chip never fitted, costs of another of its architecture and VTCM: within a factor of {factor:.2f}")
    row = readme_row(samples, rows)
    print(f"\nREADME.md: {row}")
    if asked.write:
        write_prior(prior, bounds, factor)
        for chip, (found, source) in costs.items():
            write(TARGETS / f"{chip}.yaml", found, source)
    if asked.check:
        wrong = differences(prior, bounds, factor, costs)
        wrong += [] if row in (ROOT / "README.md").read_text(encoding="utf-8") else ["README.md: its row"]
        print("\n".join(["", *(f"not what comes out: {name}" for name in wrong)]))
        return int(bool(wrong))
    return 0


if __name__ == "__main__":
    sys.exit(main())
