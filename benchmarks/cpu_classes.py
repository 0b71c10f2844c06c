"""Whether CPUs of different classes build the same bytes: `python benchmarks/cpu_classes.py [--model tiny|detector]`.

One recipe is built on this machine and, in an emulator of whole processors (qemu-user), on a CPU with AVX2 and on one
without AVX. Vendor code in the worker process is emulated too: the interpreter that a build starts is replaced by one
that runs in the emulator, and each process writes down what it runs in. Prints a Markdown table: step by step, whether
the files are equal to the last bit. What is downloaded is downloaded once, outside the emulator. `tiny` takes about two
minutes, `detector` (the text detector at 160×160) about ten.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from crash import projects
from project import BUILT, table

import anfbuild
from anfbuild.engine.store import Store

QEMU = "qemu-x86_64"
CPUS = {"max": "AVX2, FMA", "Nehalem": "SSE4.2, no AVX"}
"""qemu's name of a CPU -> what it has of what numeric libraries choose their code by."""

MODELS = {"tiny": ("+recipe=mine",), "detector": projects.SMALL}
FETCHED = ("fetch", "assets")

INTERPRETER = """\
#!/bin/sh
exec {qemu} -cpu {cpu} {python} "$@"
"""
SITE = """\
import os
import sys
from pathlib import Path

sys.executable = {interpreter!r}
with open({log!r}, "a") as log:
    log.write(Path(f"/proc/{{os.getpid()}}/comm").read_text())
"""


@dataclasses.dataclass(frozen=True)
class Built:
    """What a CPU made: step -> file -> SHA-256, the exported package, and what its processes ran in."""

    steps: dict[str, dict[str, str]]
    package: bytes
    processes: list[str]


def build(root: Path, model: str, cpu: str | None, fetched: Path | None) -> Built:
    """Build in a new project below `root`, on the CPU `cpu` of the emulator or, for None, on this one."""
    folder, store = root / "project", root / "store"
    projects.write_tiny(folder)
    if fetched is not None:
        shutil.copytree(fetched, store)
    interpreter, log = sys.executable, root / "processes"
    path = [str(Path(anfbuild.__file__).parents[1])]
    if cpu is not None:
        interpreter = str(root / "python")
        Path(interpreter).write_text(INTERPRETER.format(qemu=QEMU, cpu=cpu, python=sys.executable), encoding="utf-8")
        Path(interpreter).chmod(0o755)
        (root / "site").mkdir()
        site = SITE.format(interpreter=interpreter, log=str(log))
        (root / "site" / "sitecustomize.py").write_text(site, encoding="utf-8")
        path.insert(0, str(root / "site"))
    done = subprocess.run(
        [interpreter, "-m", "anfbuild", *MODELS[model], "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "ANFBUILD_CACHE": str(store)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in BUILT:
        raise SystemExit(f"on {cpu or 'this CPU'} the build ended with {done.returncode}:\n{done.stderr}")
    document = json.loads(done.stdout)
    steps = {}
    for step in document["steps"]:
        result = Store(store).lookup(step["key"])
        assert result is not None
        steps[step["step"]] = {file: sha for file, (sha, _) in result.files.items()}
    (package,) = Path(document["folder"]).glob("*.anf")
    return Built(steps, package.read_bytes(), log.read_text(encoding="utf-8").split() if cpu is not None else [])


def fetch(root: Path, model: str) -> Path:
    """A store that holds what has to be downloaded, and no more."""
    folder, store = root / "project", root / "store"
    projects.write_tiny(folder)
    for goal in FETCHED:
        ran = projects.Project(folder, store).run(*MODELS[model], f"goal={goal}")
        if ran.code:
            raise SystemExit(ran.err)
    return store


def compared(step: str, made: dict[str, Built]) -> list[str]:
    """A row: the step, its files, and for each emulated CPU what differs from this machine's."""
    native = made["this machine"].steps[step]
    cells = []
    for name, other in made.items():
        if name == "this machine":
            continue
        files = [
            file for file in sorted({*native, *other.steps[step]}) if native.get(file) != other.steps[step].get(file)
        ]
        cells.append("differs: " + ", ".join(files) if files else "equal")
    return [step, str(len(native)), *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="tiny")
    model = parser.parse_args().model
    if shutil.which(QEMU) is None:
        raise SystemExit(f"there is no {QEMU}: install qemu-user")
    with tempfile.TemporaryDirectory(prefix="anfbuild-cpus-") as name:
        root = Path(name).resolve()
        store = fetch(root / "fetched", model) if model == "detector" else None
        made: dict[str, Built] = {}
        for label, cpu in (("this machine", None), *((f"{cpu} ({has})", cpu) for cpu, has in CPUS.items())):
            (root / str(cpu)).mkdir()
            made[label] = build(root / str(cpu), model, cpu, store)
    rows = [compared(step, made) for step in made["this machine"].steps]
    native = made["this machine"].package
    emulated = [other for name, other in made.items() if name != "this machine"]
    rows.append(["**the package**", "1", *("equal" if other.package == native else "differs" for other in emulated)])
    print(table(["step", "files", *(f"{name}, against this machine" for name in made if name != "this machine")], rows))
    for cpu, other in zip(CPUS, emulated, strict=True):
        inside = sum(QEMU.startswith(process) for process in other.processes)
        print(f"{cpu}: {inside} of {len(other.processes)} processes ran in the emulator")


if __name__ == "__main__":
    main()
