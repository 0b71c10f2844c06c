"""`anfbuild predict MODEL target=A,B quantization=X,Y`: what a model would cost, trained or not, with no recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import print_event
from anfbuild.cli.console import Console
from anfbuild.cli.costing import Costing
from anfbuild.cli.targets import Chip, check_scheme, chip
from anfbuild.errors import RecipeError, StepError, did_you_mean

_DEFAULTS = {"target": "sm8650", "quantization": "int8_per_channel", "performance": "burst"}
_SHAPE = re.compile(r"model\.inputs\.(.+)\.shape")
_REASONS = {
    "/memory_mb": "the cost model does not follow memory yet",
    "/blocks": "the cost model sees one block, on the HTP",
}
_NO_ENERGY = "energy is mostly DRAM traffic, which only the compiler tells"
_NOT_COMPILED = "a structural estimate: the compiler was not asked"


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Predict for every target and scheme. Raises RecipeError for what cannot be, StepError for a bad model."""
    model = project / arguments.words[0]
    if not model.is_file():
        raise RecipeError(f"there is no model file {arguments.words[0]!r}", where="MODEL", remedy="Check the path.")
    chosen, shapes = _read(arguments.overrides)
    targets = [chip(name, project) for name in chosen["target"]]
    for target in targets:
        for scheme in chosen["quantization"]:
            check_scheme(scheme, target)
    ask = "--no-compile" not in arguments.options
    rows = [
        _predict(model, shapes, target, scheme, chosen["performance"][0], project, console, compile_it=ask)
        for target in targets
        for scheme in chosen["quantization"]
    ]
    _print(rows, console)
    return 0, {"predictions": rows}


def _read(overrides: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, list[int]]]:
    """The choices by their key, and the shapes by input."""
    chosen = {key: [value] for key, value in _DEFAULTS.items()}
    shapes: dict[str, list[int]] = {}
    for override in overrides:
        key, _, value = override.partition("=")
        shape = _SHAPE.fullmatch(key)
        if shape is not None:
            shapes[shape[1].strip("'\"")] = _sizes(key, value)
        elif key in chosen and value:
            chosen[key] = value.split(",")
        else:
            known = [*_DEFAULTS, "model.inputs.NAME.shape"]
            raise RecipeError(
                f"{did_you_mean(key, known)}'predict' takes no {override!r}", where="command line", choices=known
            )
    if len(chosen["performance"]) != 1:
        raise RecipeError("one performance mode at a time", where="performance", remedy="Name one mode.")
    return chosen, shapes


def _sizes(key: str, value: str) -> list[int]:
    words = value.strip("[]").split(",")
    if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
        raise RecipeError(f"{value!r} is not a shape", where=key, remedy=f"Write '{key}=[1,3,224,224]'.")
    return [int(word) for word in words]


def _predict(
    model: Path,
    shapes: Mapping[str, Sequence[int]],
    target: Chip,
    scheme: str,
    mode: str,
    project: Path,
    console: Console,
    *,
    compile_it: bool,
) -> dict[str, Any]:
    import onnx

    from anfbuild import simulator
    from anfbuild.qnn import unavailable
    from anfbuild.qnn.features import Features

    why = _NOT_COMPILED if not compile_it else unavailable()
    compiled: dict[str, Any] | None = None
    costing = Costing(model, shapes, target, scheme, project, lambda event: print_event(event, console))
    try:
        clean = costing.model()
        if why is None:
            try:
                compiled = costing.compiled()
            except StepError as error:
                why = f"a structural estimate: {error.what}"
    finally:
        costing.close()
    features = Features.from_json(compiled["features"]) if compiled else None
    found = simulator.predict(onnx.load_from_string(clean), target.values, mode, features=features)
    written = found.to_json(top=10)
    notes = [*found.notes, *([] if why is None else [why])]
    if compiled and compiled["cpu_nodes"]:
        notes.append(f"{len(compiled['cpu_nodes'])} nodes do not run on the HTP and are not costed")
    return {
        "model": model.stem,
        "target": target.name,
        "quantization": scheme,
        "performance_mode": mode,
        "latency_ms": round(found.total_ms, 6),
        "interval90": [round(bound, 6) for bound in found.interval90],
        "energy_mj": None if found.forecast is None else round(found.forecast.energy.total, 6),
        "energy": None if found.forecast is None else found.forecast.to_json(),
        "dram_mb": None if features is None else round((features.dram_read + features.dram_write) / 1e6, 6),
        "memory_mb": None,
        "blocks": None,
        "calibrated": found.calibrated and why is None,
        "source": "predicted",
        "compiled": features is not None,
        "nodes": written["nodes"],
        "operations": [
            {"name": name, "count": count, "reference_ms": round(ms, 6)}
            for name, count, ms in (compiled["operations"][:10] if compiled else [])
        ],
        "notes": notes,
        "reasons": {**_REASONS, **({} if features is not None else _unknown(why or ""))},
    }


def _unknown(why: str) -> dict[str, str]:
    """What only a compile tells."""
    return {"/dram_mb": why, "/energy_mj": f"{_NO_ENERGY}; {why}", "/energy": f"{_NO_ENERGY}; {why}"}


def _print(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    console.table(
        [
            (
                row["target"],
                row["quantization"],
                f"{row['latency_ms']:.3g}",
                f"{row['interval90'][0]:.3g} to {row['interval90'][1]:.3g}",
                "-" if row["dram_mb"] is None else f"{row['dram_mb']:.1f}",
                "-" if row["energy_mj"] is None else f"{row['energy_mj']:.3g}",
                "yes" if row["calibrated"] else "no",
            )
            for row in rows
        ],
        headings=("target", "quantization", "ms", "90 %", "DRAM MB", "mJ", "calibrated"),
    )
    if len(rows) == 1:
        console.print("\ndearest nodes, as a structural estimate")
        console.table([(node["name"], node["op_type"], f"{node['ms']:.3g} ms") for node in rows[0]["nodes"]])
    if any(row["energy_mj"] is not None for row in rows):
        from anfbuild.simulator.forecast import ASSUMPTION

        console.print(f"mJ are not calibrated: {ASSUMPTION}")
    for row in rows:
        for note in row["notes"]:
            console.print(f"{row['target']}, {row['quantization']}: {note}")
