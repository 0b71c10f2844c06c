"""Several components in one results.json: totals where a total means something, else the worst, and each on its own.

The components run one after the other. So times and traffic add up, nodes too; the bounds of a predicted latency add up
as well, since what the cost model has wrong of a chip it has wrong of all that runs there. Accuracy and agreement do
not add up: the whole shows those of the component that loses most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anfbuild.placement import UNITS, share
from anfbuild.report.gates import GATES, Verdict, judge
from anfbuild.report.results import INFINITE, NAN, Limits, explain_nulls, results, validate
from anfbuild.report.words import one_or_all

GROUPS = (
    "quantization", "placement", "accuracy", "agreement", "traffic", "traffic_model", "latency_ms", "memory_mb",
    "package", "calibration",
)  # fmt: skip
"""What results.json has of each component."""

_WORST = {"accuracy": "drop_abs", "agreement": "rms_lsb"}
"""Group that does not add up -> the figure that says which component is the worst; more is worse."""

_ADDED: dict[str, Callable[[Sequence[Any]], Any]] = {
    "partitions": max,
    "calibrated": all,
    "blocks": lambda lists: [block for each in lists for block in each],
    "suspects": lambda lists: [suspect for each in lists for suspect in each],
}
"""How figures come together that are no sums: a model's own pieces are what a gate means."""

_NOT_FINITE = "the figure is not a finite number"

_BY_COMPONENT = {name for name, gate in GATES.items() if gate.pointer.split("/")[1] in _WORST} | {"partitions"}
"""Gates that every component has to hold; the others judge totals."""


@dataclass(frozen=True)
class Component:
    """What the report of one component says: its results.json, the rows of its placement, how figures came about, and
    its multiply-accumulates by unit, None where nothing is known of its nodes."""

    results: Mapping[str, Any]
    placement: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    macs: Mapping[str, int] | None = None


def join(
    recipe: str, components: Mapping[str, Component], *, package: Mapping[str, Any], gates: Limits
) -> dict[str, Any]:
    """The document that `results.schema.json` describes, of a package of `components`.

    `package` is that of all, `gates` judge the whole: totals, or each component where figures do not add up, of which
    the verdict is the worst. Those of a component were judged with its own results. Raises StepError, RecipeError as
    `results` does.
    """
    documents = {name: component.results for name, component in components.items()}
    one = next(iter(documents.values()))
    reasons = {pointer: why for pointer, why in one["reasons"].items() if pointer.startswith("/versions/")}
    worst = {group: _worst(group, documents) for group in _WORST}
    calibrations = [document["calibration"] for document in documents.values()]
    document = results(
        recipe=recipe,
        target=one["target"],
        backend=one["backend"],
        performance_mode=one["performance_mode"],
        quantization=one_or_all([document["quantization"] for document in documents.values()]),
        placement=_placement(components, documents, reasons),
        accuracy=_shown(worst["accuracy"], "accuracy", documents, reasons),
        agreement=_shown(worst["agreement"], "agreement", documents, reasons),
        traffic=_total("traffic", documents, reasons),
        traffic_model=_saved(_total("traffic_model", documents, reasons)),
        latency_ms=_total("latency_ms", documents, reasons),
        memory_mb=_total("memory_mb", documents, reasons),
        package=package,
        calibration={
            "samples": min(calibration["samples"] for calibration in calibrations),
            "estimator": one_or_all([calibration["estimator"] for calibration in calibrations]),
            "dataset": one_or_all([calibration["dataset"] for calibration in calibrations]),
            "synthetic": any(calibration["synthetic"] for calibration in calibrations),
        },
        versions=one["versions"],
        gates={},
        reasons=reasons,
    )
    for group, name in worst.items():
        document[group]["component"] = name
    document["components"] = {name: {group: own[group] for group in GROUPS} for name, own in documents.items()}
    document["gates"] = [*_of_whole(document, documents, gates), *_of_components(documents)]
    known = {
        f"/components/{name}{pointer}": why
        for name, own in documents.items()
        for pointer, why in own["reasons"].items()
    }
    known |= {f"/gates/{index}": gate.get("reason", _NOT_FINITE) for index, gate in enumerate(document["gates"])}
    document["reasons"] = explain_nulls(document, document["reasons"], known)
    validate(document)
    return document


def _worst(group: str, documents: Mapping[str, Mapping[str, Any]]) -> str:
    """The component that has the most of what is bad; the first where nothing is known of any."""
    figures = {name: document[group][_WORST[group]] for name, document in documents.items()}
    known = {name: figure for name, figure in figures.items() if figure is not None}
    return max(known, key=lambda name: known[name]) if known else next(iter(documents))


def _shown(
    name: str, group: str, documents: Mapping[str, Mapping[str, Any]], reasons: dict[str, str]
) -> Mapping[str, Any]:
    """A group of one component, in place of a total; why its nulls are goes to `reasons`."""
    for pointer, why in documents[name]["reasons"].items():
        if pointer.startswith(f"/{group}/"):
            reasons[pointer] = f"{name}: {why}"
    own: Mapping[str, Any] = documents[name][group]
    return own


def _total(group: str, documents: Mapping[str, Mapping[str, Any]], reasons: dict[str, str]) -> dict[str, Any]:
    """A group whose figures come together; why one cannot be had goes to `reasons`."""
    own = {name: document[group] for name, document in documents.items()}
    sources = {part["source"] for part in own.values() if part["source"] is not None}
    if len(sources) > 1:
        return {"reason": f"the figures of the components do not have one source, but {', '.join(sorted(sources))}"}
    total: dict[str, Any] = {"source": next(iter(sources), None)}
    for figure in next(iter(own.values())):
        values = [part[figure] for part in own.values()]
        if figure in ("share", "unlisted", "time_source") or (figure == "source" and sources):
            continue
        if None in values:
            name = list(own)[values.index(None)]
            reasons[f"/{group}/{figure}"] = f"{name}: {documents[name]['reasons'][f'/{group}/{figure}']}"
        elif isinstance(values[0], list) and figure not in _ADDED:
            total[figure] = [sum(ends) for ends in zip(*values, strict=True)]
        else:
            total[figure] = _ADDED.get(figure, sum)(values)
    return total


def _saved(total: dict[str, Any]) -> dict[str, Any]:
    """The total with the saving of all, which is no sum."""
    if total.get("unfused_mb") and total.get("fused_mb") is not None:
        total["saving"] = 1 - total["fused_mb"] / total["unfused_mb"]
    return total


def _placement(
    components: Mapping[str, Component], documents: Mapping[str, Mapping[str, Any]], reasons: dict[str, str]
) -> dict[str, Any]:
    """The group of the whole: shares are those of all work and of all time, names stand behind their component's."""
    total = _total("placement", documents, reasons)
    own = {name: document["placement"] for name, document in documents.items()}
    unlisted = [(name, placement["unlisted"]) for name, placement in own.items()]
    unknown = next((name for name, nodes in unlisted if nodes is None), None)
    if unknown is None:
        total["unlisted"] = [f"{name}: {node}" for name, nodes in unlisted for node in nodes]
    else:
        reasons["/placement/unlisted"] = f"{unknown}: {documents[unknown]['reasons']['/placement/unlisted']}"
    time = _share_of_time(documents, reasons)
    return {
        **total,
        "share": {"macs": _share(components, reasons), "time": time},
        "time_source": next(iter(own.values()))["time_source"] if time else None,
    }


def _share(components: Mapping[str, Component], reasons: dict[str, str]) -> dict[str, float | None]:
    """Unit -> its share of the multiply-accumulates of all components."""
    work = dict.fromkeys(UNITS, 0)
    for name, component in components.items():
        if component.macs is None:
            why = component.results["reasons"].get("/placement/share/macs/htp", "nothing is known of its nodes")
            reasons["/placement/share/macs"] = f"{name}: {why}"
            return {}
        for unit, macs in component.macs.items():
            work[unit] += macs
    shares = share(work)
    if shares["htp"] is None:
        reasons["/placement/share/macs"] = "the components have no multiplication"
    return shares


def _share_of_time(documents: Mapping[str, Mapping[str, Any]], reasons: dict[str, str]) -> dict[str, float | None]:
    """Unit -> its share of the predicted time of all components, where that is known of each."""
    spent = dict.fromkeys(UNITS, 0.0)
    for name, document in documents.items():
        shares, total = document["placement"]["share"]["time"], document["latency_ms"]["total"]
        if shares["htp"] is None or total is None:
            pointer = "/placement/share/time/htp" if shares["htp"] is None else "/latency_ms/total"
            reasons["/placement/share/time"] = reasons["/placement/time_source"] = (
                f"{name}: {document['reasons'][pointer]}"
            )
            return {}
        for unit in UNITS:
            spent[unit] += shares[unit] * total
    return share(spent)


def _of_whole(
    document: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]], gates: Limits
) -> list[dict[str, Any]]:
    """What became of the gates of the whole."""
    verdicts: list[dict[str, Any]] = []
    for verdict in judge(document, gates):
        if verdict["name"] in _BY_COMPONENT:
            limits = {verdict["name"]: {verdict["direction"]: verdict["limit"]}}
            judged = [{**_counted(judge(own, limits)[0]), "component": name} for name, own in documents.items()]
            verdicts.append(min(judged, key=_soundness))
        else:
            verdicts.append(_counted(verdict))
    return verdicts


def _of_components(documents: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**gate, "component": name} for name, own in documents.items() for gate in own["gates"]]


def _counted(verdict: Verdict) -> dict[str, Any]:
    """The verdict; a figure that is no finite number, and so became null in the results judged, misses every limit."""
    found: dict[str, Any] = dict(verdict)
    if found.get("reason", "").endswith((NAN, INFINITE)):
        found |= {"passed": False}
        del found["reason"]
    return found


def _soundness(verdict: Mapping[str, Any]) -> tuple[int, float]:
    """Less is worse: what is missed, then what is not judged, then what holds; of these, what is nearest the limit."""
    value = verdict["value"]
    distance = 0.0 if value is None else value - verdict["limit"]
    return [False, None, True].index(verdict["passed"]), distance if verdict["direction"] == "min" else -distance
