"""What a package's manifest must say, and the page of README that is written from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from anfbuild.errors import StepError
from anfbuild.package.documents import canonical, check, load_schema

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
README = "README.md"
MODEL = ("tensors", "task", "source", "entry")
"""What a manifest says of each model."""

# Names that every file system takes, Windows with its device names included, and that mean one file on each.
_SEGMENT = re.compile(r"(?!\.{1,2}$)(?!(?i:con|prn|aux|nul|com\d|lpt\d)(\.|$))[A-Za-z0-9_.+-]{0,99}[A-Za-z0-9_+-]")


def check_names(names: Iterable[str], where: str) -> None:
    """Refuse (StepError) a member name that could leave its folder, or that another one equals on some file system."""
    seen: dict[str, str] = {}
    for name in names:
        if not all(_SEGMENT.fullmatch(segment) for segment in name.split("/")):
            raise StepError(
                f"member name {name!r} is not allowed",
                where=where,
                remedy="Use relative names of letters, digits and _ . + -, with '/' between folders.",
            )
        if (first := seen.get(name.casefold())) is not None:
            raise StepError(f"members {first!r} and {name!r} are one file where case does not matter", where=where)
        seen[name.casefold()] = name
    for folded, name in seen.items():
        parents = folded.split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            if (file := seen.get("/".join(parents[:depth]))) is not None:
                raise StepError(f"member {file!r} is a file and a folder of {name!r}", where=where)


def check_manifest(manifest: Mapping[str, Any], where: str) -> None:
    """Refuse (StepError) a manifest that breaks its schema, is of a newer one, or has an entry that is no member."""
    version = manifest.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise StepError(
            f"{MANIFEST} has schema_version {version}; this anfbuild reads up to {SCHEMA_VERSION}",
            where=where,
            remedy="Update anfbuild.",
        )
    if problems := check(manifest, load_schema("anfbuild.package", "manifest.schema.json")):
        raise StepError(f"{MANIFEST} is not valid: {'; '.join(problems[:5])}", where=where)
    top = [key for key in MODEL if key in manifest]
    if top != ([] if manifest.get("components") else list(MODEL)):
        raise StepError(
            f"{MANIFEST} is not valid: /: has neither {', '.join(MODEL)} of one model, nor the components of several",
            where=where,
        )
    for name, model in models(manifest).items():
        at = f"components.{name}." if "components" in manifest else ""
        for role, member in model["entry"].items():
            if member not in manifest["files"]:
                raise StepError(
                    f"{MANIFEST}: {at}entry.{role} names {member!r}, which is not in the package",
                    where=where,
                    choices=sorted(manifest["files"]),
                )


def models(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Component -> its tensors, task, source and entry; the only model of a package is `main`."""
    components: dict[str, Mapping[str, Any]] | None = manifest.get("components")
    return components or {"main": {key: manifest[key] for key in MODEL}}


def parse(data: bytes, where: str) -> dict[str, Any]:
    """The manifest in `data`. Only the canonical text is taken, so that a key given twice cannot hide another."""
    try:
        manifest = json.loads(data)
        if not isinstance(manifest, dict) or canonical(manifest) != data:
            raise ValueError("not a JSON object as anfbuild writes it")
    except (ValueError, RecursionError) as error:
        raise StepError(f"{MANIFEST} cannot be read: {error}", where=where) from error
    return manifest


def readme(manifest: Mapping[str, Any]) -> str:
    """README.md of the package: what it is, what it needs, how to load it. `manifest` obeys the schema."""
    target = manifest["target"]
    chip = f"{target['name']} ({target['soc']})" if "name" in target else target["soc"]
    vtcm = "the chip's own VTCM" if target["vtcm_mb"] is None else f"{target['vtcm_mb']} MB VTCM"
    several = manifest.get("components")
    task = "" if several else f" Task: {manifest['task']['kind']}."
    lines = [
        f"# {manifest['name']}",
        "",
        f"{f'{len(several)} models' if several else 'A model'} for the {manifest['backend'].upper()} of {chip}: "
        f"Hexagon {target['arch']}, {vtcm}, QNN soc_model {target['soc_model']}.{task}",
        "`manifest.json` says the same in JSON, with the SHA-256 of every file.",
        "",
        "## Versions",
        "",
        "| part | needed | built with |",
        "|---|---|---|",
        *(
            f"| {part} | {version['required'] or 'any'} | {version['built_with'] or 'not on the building host'} |"
            for part, version in sorted(manifest["versions"].items())
        ),
    ]
    for name, model in sorted(models(manifest).items()):
        if several:
            lines += ["", f"# Component {name}", "", f"Task: {model['task']['kind']}."]
        lines += _model(model)
    return "\n".join([*lines, ""])


def _model(model: Mapping[str, Any]) -> list[str]:
    """The lines of one model: its ends, how to load it, its licence."""
    entry, source = model["entry"], model["source"]
    lines = []
    for kind in ("inputs", "outputs"):
        tensors = model["tensors"][kind]
        lines += ["", f"## {kind.capitalize()}", ""]
        lines += [f"- `{name}`: {_tensor(tensor)}" for name, tensor in sorted(tensors.items())]
    lines += ["", "## Load", ""]
    if "context" in entry:
        lines += ["On the target, unpacked into a folder (the wrapper finds its context binary beside it):", ""]
        lines += ["```python", *_LOAD_CONTEXT, f'session = ort.InferenceSession("{entry["context"]}", options)']
        lines += ["session.disable_fallback()  # an error must not end on the CPU unseen", "```", ""]
    else:
        lines += ["The building host had no compiler for the target: there is no context binary in this package.", ""]
    lines += ["Anywhere else, the quantized model on the CPU:", ""]
    lines += ["```python", *_LOAD_QDQ]
    lines += [f'session = ort.InferenceSession("{entry["qdq"]}", options, providers=["CPUExecutionProvider"])', "```"]
    licence = f"Model: {source['license'] or 'not stated'}; source SHA-256 `{source['sha256']}`."
    return [*lines, "", "## Licence", "", licence]


_LOAD_CONTEXT = (
    "import onnxruntime as ort",
    "import onnxruntime_qnn",
    "",
    'ort.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())',
    'devices = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"]',
    "options = ort.SessionOptions()",
    'options.add_provider_for_devices(devices, {"backend_path": onnxruntime_qnn.get_qnn_htp_path()})',
)
_LOAD_QDQ = (
    "import onnxruntime as ort",
    "",
    "options = ort.SessionOptions()",
    "# Without it, x86 CPUs that lack VNNI saturate 8-bit sums.",
    'options.add_session_config_entry("session.x64quantprecision", "1")',
)


def _tensor(tensor: Mapping[str, Any]) -> str:
    words = [f"{tensor['dtype']} {tensor['shape']}"]
    if tensor.get("layout"):
        words.append(tensor["layout"])
    normalization = tensor.get("normalization") or {}
    if given := [f"{key} {value}" for key, value in sorted(normalization.items()) if value is not None]:
        words.append("normalization (x * scale, then (x - mean) / std): " + ", ".join(given))
    if encoding := tensor.get("encoding"):
        words.append(f"inside {encoding['dtype']}, scale {encoding['scale']}, zero point {encoding['zero_point']}")
    return "; ".join(words)
