"""`anfbuild predict MODEL target=A,B quantization=X,Y`: what a model would cost, trained or not, with no recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.cli import targets
from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import print_event
from anfbuild.cli.console import Console
from anfbuild.cli.costing import Cost, cost
from anfbuild.cli.subject import COMMAND_LINE, SCHEME, TARGET, values_of_model
from anfbuild.cli.targets import Chip
from anfbuild.engine.run import Event
from anfbuild.errors import RecipeError

_KEYS = ("target", "quantization", "performance")
_NO_ENERGY = "energy is mostly DRAM traffic, which only the compiler tells"
_TOP = 10
"""Nodes of a prediction, the dearest first."""


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Predict for every target and scheme. Raises RecipeError for what cannot be, StepError for a bad model."""
    from anfbuild.qnn import unavailable
    from anfbuild.simulator.modes import mode_of
    from anfbuild.simulator.rates import read_rates

    (word,) = arguments.words
    model = project / word
    if not model.exists():
        raise RecipeError(f"there is no model {word!r}", where=COMMAND_LINE, remedy="Check the path.")
    values, inputs = values_of_model(arguments, _KEYS, word)
    chips = [targets.chip(name, project) for name in _list("target", values.get("target", TARGET))]
    words = _list("quantization", values.get("quantization", SCHEME))
    schemes = {word: targets.scheme(word, project) for word in words}
    mode = str(values.get("performance", "burst"))
    mode_of(mode)
    for chip in chips:
        read_rates(chip.values)
        for scheme in schemes.values():
            targets.check_scheme(scheme, chip)
    why = "the compiler was not asked" if "--no-compile" in arguments.options else unavailable()

    def notify(event: Event) -> None:
        print_event(event, console)

    rows = []
    for chip in chips:
        for named, scheme in schemes.items():
            found = cost(model, inputs, chip, scheme, project, notify, no_compile=why)
            rows.append({"model": model.stem, "target": chip.name, "quantization": named, **_row(found, chip, mode)})
    _print(rows, console)
    return 0, {"predictions": rows}


def _list(key: str, value: Any) -> list[str]:
    """The names in `A,B` or `[A,B]`, each once."""
    found = [str(name) for name in value] if isinstance(value, list) else str(value).split(",")
    names = list(dict.fromkeys(name.strip() for name in found))
    if not all(names):
        raise RecipeError(f"{key} names nothing", where=COMMAND_LINE, remedy=f"Write {key}=A,B.")
    return names


def _row(found: Cost, chip: Chip, mode: str) -> dict[str, Any]:
    """The figures of one prediction, with the reasons of those that there are none of."""
    import onnx

    from anfbuild import simulator
    from anfbuild.qnn.features import Features

    compiled = found.compiled
    features = None if compiled is None else Features.from_json(compiled["features"])
    off_htp = 0 if compiled is None else len(compiled["cpu_nodes"])
    predicted = simulator.predict(
        onnx.load_from_string(found.model), chip.values, mode, features=features, off_htp=off_htp
    )
    notes = list(predicted.notes)
    written = predicted.to_json(top=_TOP)
    memory, traffic = written["memory_mb"], written["traffic_model"]
    unknown = predicted.memory.reasons() if predicted.memory else {}
    reasons = {place: why for why in unknown.values() for place in ("/memory_mb", "/memory/peak")}
    reasons |= predicted.traffic_model.reasons() if predicted.traffic_model else {}
    if found.why_not is not None:
        notes.append(f"a structural estimate: {found.why_not}")
        reasons["/dram_mb"] = notes[-1]
    forecast = predicted.forecast
    if forecast is None:
        reasons["/energy_mj"] = reasons["/energy"] = _NO_ENERGY
    return {
        "performance_mode": mode,
        "latency_ms": round(predicted.total_ms, 6),
        "interval90": [round(bound, 6) for bound in predicted.interval90],
        "energy_mj": None if forecast is None else round(forecast.energy.total, 6),
        "energy": None if forecast is None else forecast.to_json(),
        "dram_mb": None if features is None else round((features.dram_read + features.dram_write) / 1e6, 6),
        "memory_mb": memory["peak"],
        "memory": memory,
        "blocks": len(traffic["blocks"]),
        "traffic_model": traffic,
        "calibrated": predicted.calibrated and compiled is not None,
        "source": "predicted",
        "compiled": compiled is not None,
        "nodes": written["nodes"],
        "operations": [
            {"name": name, "count": count, "reference_ms": round(ms, 6)}
            for name, count, ms in (compiled["operations"][:_TOP] if compiled else [])
        ],
        "notes": notes,
        "reasons": reasons,
    }


_COLUMNS: Mapping[str, tuple[str, str]] = {
    "DRAM MB": ("dram_mb", ".1f"),
    "mJ": ("energy_mj", ".3g"),
    "memory MB": ("memory_mb", ".1f"),
    "blocks": ("blocks", "d"),
}
"""Heading -> key of a row, and how its figure is written; a dash where there is none."""


def _print(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    cells = []
    for row in rows:
        low, high = row["interval90"]
        figures = ["-" if row[key] is None else format(row[key], form) for key, form in _COLUMNS.values()]
        named = row["target"], row["quantization"]
        told = f"{row['latency_ms']:.3g}", f"{low:.3g} to {high:.3g}", *figures, "yes" if row["calibrated"] else "no"
        cells.append((*named, *told))
    console.table(cells, headings=("target", "quantization", "ms", "90 %", *_COLUMNS, "calibrated"))
    for row in rows:
        console.print(f"\n{row['target']}, {row['quantization']}: dearest nodes, as a structural estimate")
        console.table([(node["name"], node["op_type"], f"{node['ms']:.3g} ms") for node in row["nodes"]])
        for note in row["notes"]:
            console.print(f"  {note}")
    for heading, (key, _) in _COLUMNS.items():
        for why in dict.fromkeys(row["reasons"][f"/{key}"] for row in rows if row[key] is None):
            console.print(f"{heading}: {why}")
    if any(row["energy_mj"] is not None for row in rows):
        from anfbuild.simulator.forecast import ASSUMPTION

        console.print(f"mJ are not calibrated: {ASSUMPTION}")
