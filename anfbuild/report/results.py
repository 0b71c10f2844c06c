"""results.json: what a build found, put together from what its steps left. A pure function of its parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anfbuild.errors import StepError
from anfbuild.package import check, load_schema
from anfbuild.report.gates import judge

SCHEMA_VERSION = 1

Limits = Mapping[str, Mapping[str, float | None]]

# Every figure of a group, and where the group's figures come from unless the part says otherwise. A figure's meaning
# and unit stand in results.schema.json.
_FIGURES: dict[str, dict[str, Any]] = {
    "placement": {
        "nodes": None,
        "htp": None,
        "gpu": None,
        "cpu": None,
        "partitions": None,
        "share": {
            "macs": {"htp": None, "gpu": None, "cpu": None},
            "time": {"htp": None, "gpu": None, "cpu": None},
        },
        "unlisted": None,
        "source": "compiled",
        "time_source": None,
    },
    "accuracy": {
        "metric": None,
        "reference": None,
        "higher_is_better": None,
        "samples": {"float": None, "quantized": None, "emulated": None},
        "float": None,
        "quantized": None,
        "emulated": None,
        "drop_abs": None,
        "drop_rel": None,
        "interval95": None,
        "source": "measured_host",
        "emulated_source": "emulated",
    },
    "agreement": {
        "between": None,
        "tensor": None,
        "sqnr_db": None,
        "rms_lsb": None,
        "max_lsb": None,
        "source": "emulated",
    },
    "traffic": {"dram_read_mb": None, "dram_write_mb": None, "spill_mb": None, "fill_mb": None, "source": "compiled"},
    "traffic_model": {
        "fused_mb": None,
        "unfused_mb": None,
        "spill_mb": None,
        "saving": None,
        "blocks": None,
        "calibrated": None,
        "source": "predicted",
    },
    "latency_ms": {
        "total": None,
        "htp": None,
        "gpu": None,
        "cpu": None,
        "transfer": None,
        "preprocess": None,
        "interval90": None,
        "calibrated": None,
        "source": "predicted",
    },
    "memory_mb": {
        "weights": None,
        "spill": None,
        "io": None,
        "peak": None,
        "suspects": None,
        "calibrated": None,
        "source": "predicted",
    },
    "package": {"bytes": None, "sha256": None},
}
_ENOUGH = 300

NAN, INFINITE = "the figure is not a number (NaN)", "the figure is infinite"
"""The reasons of a null that was no finite number when it was judged."""


def results(
    *,
    recipe: str,
    target: Mapping[str, Any],
    backend: str,
    performance_mode: str,
    quantization: str,
    placement: Mapping[str, Any],
    accuracy: Mapping[str, Any],
    agreement: Mapping[str, Any],
    traffic: Mapping[str, Any],
    traffic_model: Mapping[str, Any],
    latency_ms: Mapping[str, Any],
    memory_mb: Mapping[str, Any],
    package: Mapping[str, Any],
    calibration: Mapping[str, Any],
    versions: Sequence[Mapping[str, Any]],
    gates: Limits,
    reasons: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The document that `results.schema.json` describes, gates judged.

    - `target`: soc, name, soc_model, arch, vtcm_mb. `quantization`: the scheme's name.
    - `placement` ... `package`: the figures of the group of that name in the schema; other keys are left aside. One
      that is absent or None becomes null, for the part's own `reason` (so that a step's `{"available": false, "reason":
      ...}` is a part as it stands) or for the one that `reasons` has for its JSON pointer or for a pointer above it,
      which goes first. `source` is optional.
    - `calibration`: samples (count), estimator, dataset (its kind), synthetic (bool).
    - `versions`: part, required (never None), found, verified, and `reason` where one of these two is None.
    - `gates`: {name: {min | max: limit}}.

    NaN and infinite figures are judged as they are, then become null, with that as the reason. Raises StepError where a
    null has no reason or a figure has the wrong type, RecipeError for gates that cannot be judged.
    """
    given = dict(reasons or {})
    parts = {
        "placement": placement,
        "accuracy": accuracy,
        "agreement": agreement,
        "traffic": traffic,
        "traffic_model": traffic_model,
        "latency_ms": latency_ms,
        "memory_mb": memory_mb,
        "package": package,
    }
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "recipe": recipe,
        "target": {key: target.get(key) for key in ("soc", "name", "soc_model", "arch", "vtcm_mb")},
        "backend": backend,
        "performance_mode": performance_mode,
        "quantization": quantization,
        **{name: _group(part, _FIGURES[name]) for name, part in parts.items()},
        "calibration": _calibration(calibration),
        "versions": [{key: version.get(key) for key in _VERSION} for version in versions],
    }
    own = {f"/{name}": part["reason"] for name, part in parts.items() if part.get("reason")}
    own |= {f"/versions/{index}": part["reason"] for index, part in enumerate(versions) if part.get("reason")}
    document["reasons"] = explain_nulls(document, given, own)
    document["gates"] = judge(document, gates)
    for index, verdict in enumerate(document["gates"]):
        if "reason" in verdict:
            own[f"/gates/{index}"] = verdict["reason"]
    infinite = {pointer: _not_finite(value) for pointer, value in _leaves(document) if _not_finite(value)}
    document = _finite(document)
    document["reasons"] = explain_nulls(document, infinite, given, own)
    validate(document)
    return document


def validate(document: Mapping[str, Any]) -> None:
    """Refuse (StepError) a document that breaks `results.schema.json` or holds a null without a reason."""
    problems = check(document, load_schema("anfbuild.report", "results.schema.json"))
    reasons = document.get("reasons", {})
    problems += [f"{pointer}: is null without a reason" for pointer in _nulls(document) if not reasons.get(pointer)]
    if problems:
        raise StepError(f"results.json is not valid: {'; '.join(problems[:8])}")


_VERSION = ("part", "required", "found", "verified")


def _group(part: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    group: dict[str, Any] = {}
    for key, default in figures.items():
        value = part.get(key)
        if isinstance(default, Mapping):
            group[key] = _group(value if isinstance(value, Mapping) else {}, default)
        elif value is None:
            group[key] = default
        else:
            group[key] = list(value) if isinstance(value, tuple) else value
    if "source" in group and all(value is None for pointer, value in _leaves(group) if pointer != "/source"):
        group["source"] = None
    return group


def _calibration(part: Mapping[str, Any]) -> dict[str, Any]:
    samples, synthetic = part["samples"], part["synthetic"]
    enough = samples >= _ENOUGH
    if not samples:
        note = (
            "The source model is quantized already and keeps its encodings: nothing was calibrated, and what is called "
            "float is that model as it comes, so that no drop says what its quantization has cost."
        )
    elif enough:
        note = f"{samples} samples; 300 to 1000 of the real scene are recommended."
    else:
        note = (
            f"{samples} {'sample is' if samples == 1 else 'samples are'} few: 300 to 1000 of the real scene are "
            "recommended. Ranges of rare content may be clipped; the accuracy holds for the evaluation set only."
        )
    if synthetic:
        note += " The data is synthetic, which is not the real scene."
    return {
        "samples": samples,
        "estimator": part["estimator"],
        "dataset": part["dataset"],
        "synthetic": synthetic,
        "enough": enough,
        "note": note,
    }


def _leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{pointer}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{pointer}/{index}")
    else:
        yield pointer, value


def _nulls(document: Mapping[str, Any]) -> list[str]:
    return [pointer for pointer, value in _leaves(document) if value is None]


def explain_nulls(document: Mapping[str, Any], *reasons: Mapping[str, str]) -> dict[str, str]:
    """The reason of every null that has one: the first of `reasons` that knows its pointer or the nearest above it."""
    found: dict[str, str] = {}
    for pointer in _nulls(document):
        places = [pointer.rsplit("/", up)[0] for up in range(pointer.count("/"))]
        reason = next((known[place] for known in reasons for place in places if known.get(place)), None)
        if reason is not None:
            found[pointer] = " ".join(reason.split()).rstrip(".")  # it stands inside sentences and table cells
    return dict(sorted(found.items()))


def _not_finite(value: object) -> str:
    if not isinstance(value, float) or math.isfinite(value):
        return ""
    return NAN if math.isnan(value) else INFINITE


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if _not_finite(value) else value
