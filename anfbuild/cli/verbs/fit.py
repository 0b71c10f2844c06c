"""`anfbuild fit TARGET FILE`: the costs of a chip from measured latencies, written to conf/target of the project."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anfbuild.atomic import replacing
from anfbuild.cli import targets
from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import print_event
from anfbuild.cli.console import Console
from anfbuild.cli.costing import cost
from anfbuild.cli.measurements import SCHEMES, Measurement, read_measurements
from anfbuild.cli.subject import COMMAND_LINE
from anfbuild.cli.targets import Chip
from anfbuild.errors import AnfbuildError, RecipeError, StepError
from anfbuild.recipe.files import shipped

if TYPE_CHECKING:
    from anfbuild.simulator.fit import Sample

_FAR = 50.0
"""Times by which no chip is slower or faster than another, but seconds than milliseconds are."""
_ROOFLINE = {"conv_tmac_s": -1, "weight_gb_s": -1, "fixed_ms": 1}
"""Rate of the structural estimate -> the power of a time that it is."""
_DIGITS = 4


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Fit, and write the file. Raises RecipeError for rows that are wrong, StepError for a model that is."""
    name, file = arguments.words
    if arguments.overrides:
        raise RecipeError(f"'fit' takes no {arguments.overrides[0]!r}", where=COMMAND_LINE, remedy="Leave it out.")
    from anfbuild.qnn import unavailable
    from anfbuild.simulator.fit import LEAST, fit

    target, base = _target(name, arguments.options.get("--like"), project)
    output = _output(arguments, target, project)
    table = project / file
    models = project / arguments.options["--models"] if "--models" in arguments.options else table.parent
    measured = read_measurements(table, models, target, LEAST)
    reason = unavailable()
    if reason is not None:
        raise RecipeError(
            f"this host cannot compile the measured models: {reason}", remedy="Fit on a host that has the compiler."
        )
    samples = [_sample(row, table, target, project, console) for row in measured.rows]
    prior = base.rates["compiled"]
    factor = _factor(samples, prior)
    if not 1 / _FAR < factor < _FAR:
        raise RecipeError(
            f"the latencies are {factor:.3g} times those of {base.name}",
            where=str(table),
            remedy="Give milliseconds; if they are, start with --like TARGET from a chip that is nearer.",
        )
    costs = fit(samples, prior)
    error = _error(samples, prior)
    written = _document(target, base, costs, factor, samples)
    hides = _hides(output, target)
    _write(output, written, f"Written by anfbuild fit {target.name}: {len(samples)} measurements, from {base.name}.")
    document = {
        "target": target.name,
        "measurements": len(samples),
        "passed_over": measured.passed_over,
        "base": base.name,
        "error": error,
        "costs": costs,
        "file": str(output),
        "hides_shipped": hides,
        "reasons": {} if error is not None else {"/error": f"fewer than {LEAST + 1} models: none can be left out"},
    }
    _tell(document, console)
    return 0, document


def _target(name: str, like: str | None, project: Path) -> tuple[Chip, Chip]:
    """The chip to fit, and the one whose costs the fit starts from: itself if it has any, else the nearest that has."""
    try:
        target = targets.chip(name, project)
    except RecipeError as error:
        if like is None or targets.exists(name, project):
            error.remedy = f"{error.remedy or ''} For a chip under a name of your own, add --like TARGET."
            raise
        values = {key: value for key, value in targets.chip(like, project).values.items() if key != "rates"}
        target = Chip(name, {**values, "name": name}, None)
    if like is not None:
        base = targets.chip(like, project)
        if not base.rates.get("compiled"):
            raise RecipeError(
                f"the target {like!r} has no costs to start from", where="--like", remedy="Name one that was fitted."
            )
        return target, base
    if target.rates.get("compiled"):
        return target, target
    others = [targets.chip(other, project) for other in targets.names("target", project)]
    fitted = [chip for chip in others if chip.rates.get("compiled") and chip.rates.get("fitted")]
    return target, min(fitted, key=lambda chip: (_distance(chip, target), chip.name))


def _distance(chip: Chip, other: Chip) -> tuple[int, int]:
    """Generations of the HTP between two chips, then MB of VTCM."""
    generations = [int(str(one.values["arch"]).removeprefix("v")) for one in (chip, other)]
    return abs(generations[0] - generations[1]), abs(chip.values["vtcm_mb"] - other.values["vtcm_mb"])


def _output(arguments: Arguments, target: Chip, project: Path) -> Path:
    """Where to write. Raises RecipeError for a file that is there, unless it is the project's own of this target."""
    own = project / "conf" / "target" / f"{target.name}.yaml"
    output = project / arguments.options["--output"] if "--output" in arguments.options else own
    ours = shipped() in output.resolve().parents
    if output.exists() and (output != own or ours) and "--overwrite" not in arguments.options:
        raise RecipeError(
            f"{output} is {'a target that anfbuild ships' if ours else 'there already'}",
            where="--output",
            remedy="Name another file with --output FILE, or add --overwrite.",
        )
    return output


def _sample(row: Measurement, table: Path, target: Chip, project: Path, console: Console) -> Sample:
    from anfbuild.qnn.features import Features
    from anfbuild.simulator.fit import Sample

    scheme = SCHEMES[row.precision]
    try:
        found = cost(row.model, {}, target, scheme, project, lambda event: print_event(event, console))
        if found.compiled is None:
            raise StepError(f"{target.name}, {scheme}: {found.why_not}")
    except AnfbuildError as error:
        place = f"{table}:{row.line}, {row.model.name}"
        raise type(error)(
            error.what,
            where=place if error.where in (None, str(row.model)) else f"{place}, {error.where}",
            choices=error.choices,
            remedy="Give a float model with fixed shapes that the chip takes, or remove the row.",
        ) from error
    features = Features.from_json(found.compiled["features"])
    return Sample(str(row.model), row.family, row.precision, features, row.latency_ms)


def _factor(samples: Sequence[Sample], prior: Mapping[str, float]) -> float:
    """How much longer the models take than the costs of another chip say: the median."""
    import statistics

    from anfbuild.simulator.compiled import latency_ms

    return statistics.median(sample.latency_ms / latency_ms(sample.features, prior) for sample in samples)


def _error(samples: Sequence[Sample], prior: Mapping[str, float]) -> dict[str, Any] | None:
    """Of latencies predicted by fits that saw nothing alike: a family is left out at a time, or a model where what is
    left of the families would be too little to fit; None where that is too little too."""
    import numpy as np

    from anfbuild.simulator.fit import LEAST, cross_validate

    def can_leave_out(groups: Sequence[str]) -> bool:
        return all(len(groups) - groups.count(group) >= LEAST for group in groups)

    kinds = {kind: [getattr(sample, kind) for sample in samples] for kind in ("family", "model")}
    if len(set(kinds["family"])) == len(set(kinds["model"])):
        del kinds["family"]  # each model is one of its own
    left_out = next((kind for kind, groups in kinds.items() if can_leave_out(groups)), None)
    if left_out is None:
        return None
    grouped = [dataclasses.replace(sample, family=getattr(sample, left_out)) for sample in samples]
    off = np.abs(np.array(cross_validate(grouped, prior)) - 1)
    precisions = np.array([sample.precision for sample in samples])

    def spread(chosen: Any) -> dict[str, Any]:
        return {
            "rows": len(chosen),
            "median": round(float(np.median(chosen)), _DIGITS),
            "p90": round(float(np.quantile(chosen, 0.9)), _DIGITS),
        }

    by_precision = {precision: spread(off[precisions == precision]) for precision in sorted(set(precisions.tolist()))}
    return {"left_out": left_out, **spread(off), "by_precision": by_precision}


def _document(
    target: Chip, base: Chip, costs: Mapping[str, float], factor: float, samples: Sequence[Sample]
) -> dict[str, Any]:
    """The target with its new costs. What was fitted to it before stays, since the fit started from there; the rates of
    the structural estimate, where it has none of its own, are those of `base`, all slower by one factor."""
    from anfbuild.simulator.rates import PRECISIONS, read_rates

    own = target.rates
    rough = {key: own.get(key) or _rounded(base.rates[key] * factor**power) for key, power in _ROOFLINE.items()}
    measured = {sample.precision for sample in samples} | set(own.get("fitted", ()))
    estimate = own.get("estimate", any(not own.get(key) for key in _ROOFLINE))
    rates = {
        **rough,
        "estimate": estimate,
        "fitted": [precision for precision in PRECISIONS if precision in measured],
        "compiled": {name: _rounded(value) for name, value in costs.items()},
    }
    document = {**target.values, "name": target.values.get("name", target.name), "rates": rates}
    read_rates(document)
    return document


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _hides(output: Path, target: Chip) -> bool:
    """Whether a project's file stands before one that anfbuild ships under the same name."""
    theirs = shipped() / "conf" / "target" / f"{target.name}.yaml"
    return output.name == theirs.name and theirs.is_file() and output.resolve() != theirs


def _write(path: Path, document: Mapping[str, Any], heading: str) -> None:
    import yaml

    text = yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(f"# {heading}\n{text}", encoding="utf-8")
    except OSError as error:
        raise StepError(
            f"the target cannot be written: {error.strerror or error}",
            where=str(path),
            remedy="Name another file with --output FILE.",
        ) from error


def _tell(document: Mapping[str, Any], console: Console) -> None:
    for why, count in document["passed_over"].items():
        console.print(f"passed over: {count} rows, {why}")
    console.print(f"{document['measurements']} measurements; the fit started from the costs of {document['base']}")
    error = document["error"]
    if error is None:
        console.print(f"error: not known, {document['reasons']['/error']}")
    else:
        console.print(f"error with one {error['left_out']} left out at a time:")
        rows = [("all", error), *error["by_precision"].items()]
        told = [(name, str(one["rows"]), f"{one['median']:.0%}", f"{one['p90']:.0%}") for name, one in rows]
        console.table(told, headings=("precision", "rows", "median", "p90"))
    console.print(f"written: {document['file']}")
    if document["hides_shipped"]:
        console.print(f"in this project target={document['target']} now means that file, not the one anfbuild ships")
