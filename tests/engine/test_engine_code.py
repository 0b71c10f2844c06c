"""The code digest follows imports, lazy ones too, and nothing but imports."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.engine.code import CodeIndex
from anfbuild.engine.memo import Memo

FILES = {
    "__init__.py": '"""A package."""\nVERSION = "1"\n',
    "step.py": "def run():\n    from pk.room import tool\n    import numpy\n    return tool\n",
    "room/__init__.py": '"""A door."""\nfrom pk.room.a import tool\nfrom pk.room.b import other\n__all__ = ["tool"]\n',
    "room/a.py": "import os\nWORKER = 'pk.worker'\ndef tool(): ...\n",
    "room/b.py": "import onnx\ndef other(): ...\n",
    "worker.py": "from PIL import Image\nimport no_such_package\n",
    "unrelated.py": "import doit\n",
}


def make(root: Path, changes: dict[str, str] | None = None) -> CodeIndex:
    for name, text in {**FILES, **(changes or {})}.items():
        path = root / "pk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return CodeIndex("pk", root / "pk", Memo(root / "memo.json"))


def test_a_closure_follows_doors_to_the_defining_module_and_workers_by_name(tmp_path: Path) -> None:
    files, external = make(tmp_path).closure("pk.step")
    assert sorted(files) == ["room/__init__.py:tool", "room/a.py", "step.py", "worker.py"]
    assert external == ["PIL", "no_such_package", "numpy"]


def test_versions_are_of_distributions_and_say_what_is_absent(tmp_path: Path) -> None:
    versions = make(tmp_path).versions("pk.step")
    assert set(versions) == {"pillow", "numpy", "no_such_package"}
    assert versions["no_such_package"] == "absent"
    assert versions["numpy"] == __import__("numpy").__version__


@pytest.mark.parametrize(
    ("file", "changes_digest"),
    [("step.py", True), ("room/a.py", True), ("worker.py", True), ("room/b.py", False), ("unrelated.py", False)],
)
def test_only_reached_code_changes_the_digest(tmp_path: Path, file: str, changes_digest: bool) -> None:
    before = make(tmp_path).digest("pk.step")
    after = make(tmp_path, {file: FILES[file] + "# edited\n"}).digest("pk.step")
    assert (before != after) is changes_digest


def test_data_beside_a_reached_module_belongs_to_it(tmp_path: Path) -> None:
    before = make(tmp_path).digest("pk.step")
    assert make(tmp_path, {"room/table.csv": "1,2"}).digest("pk.step") != before


def test_a_door_that_does_more_is_code(tmp_path: Path) -> None:
    busy = FILES["room/__init__.py"] + "STATE = {}\n"
    files, _ = make(tmp_path, {"room/__init__.py": busy}).closure("pk.step")
    assert "room/__init__.py" in files
    assert "room/b.py" in files


def test_a_door_that_hands_out_another_thing_under_the_name_changes_the_digest(tmp_path: Path) -> None:
    files = {"room/a.py": FILES["room/a.py"] + "def spare(): ...\n"}
    other = FILES["room/__init__.py"].replace("import tool", "import spare as tool")
    before = make(tmp_path, files).digest("pk.step")
    assert make(tmp_path, {**files, "room/__init__.py": other}).digest("pk.step") != before


@pytest.mark.parametrize("text", ["import numpy\nnumpy.pi = 3\n", "print()\n", "if True:\n    from pk.room import b\n"])
def test_what_a_package_does_on_the_way_to_a_reached_module_is_code(tmp_path: Path, text: str) -> None:
    step = {"step.py": "from pk.deep.er import tool\n", "deep/er.py": "tool = 1\n", "deep/__init__.py": text}
    assert {"deep/__init__.py", "deep/er.py", "step.py"} <= set(make(tmp_path, step).closure("pk.step")[0])


@pytest.mark.parametrize(
    "text",
    ["from . import room_b as b", "from .room import b", "from .room.b import other", "from pk.room import b"],
)
def test_relative_imports_are_imports(tmp_path: Path, text: str) -> None:
    spare = {"room_b.py": "from .room import b\n"}
    index = make(tmp_path, {**spare, "step.py": f"def run():\n    {text}\n"})
    files, external = index.closure("pk.step")
    assert "room/b.py" in files
    assert external == ["onnx"]
    nested = {"room/a.py": "from ..worker import x\nfrom . import b\n"}
    assert {"worker.py", "room/b.py"} <= set(make(tmp_path, nested).closure("pk.room.a")[0])


IMPORTS = (
    "import pk.{module}",
    "from pk.{module} import value",
    "from pk import {module}",
    "from . import {module}",
    "from .{module} import value",
    "def late():\n    from pk.{module} import value",
    "NAME = 'pk.{module}'",
    "from pk.door import value_{module}",
)
MODULES = "abcdef"
GRAPHS = st.dictionaries(
    st.sampled_from(MODULES), st.dictionaries(st.sampled_from(MODULES), st.sampled_from(IMPORTS)), min_size=2
)


@settings(max_examples=60, deadline=None)
@given(GRAPHS, st.sampled_from(MODULES), st.sampled_from(MODULES))
def test_an_edit_changes_the_digests_of_what_reaches_it_and_no_other(
    graph: dict[str, dict[str, str]], start: str, edited: str
) -> None:
    reached, pending = set(), [start]
    while pending:
        if (name := pending.pop()) not in reached:
            reached.add(name)
            pending += graph.get(name, {})
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "pk")
        root.mkdir()
        (root / "__init__.py").touch()
        (root / "door.py").write_text("".join(f"from pk.{m} import value as value_{m}\n" for m in MODULES))
        for name in MODULES:
            lines = [line.format(module=module) for module, line in graph.get(name, {}).items()]
            (root / f"{name}.py").write_text("\n".join([*lines, "value = 0", ""]))
        before = CodeIndex("pk", root, Memo(Path(folder, "memo"))).digest(f"pk.{start}")
        with (root / f"{edited}.py").open("a") as file:
            file.write("value = 1\n")
        after = CodeIndex("pk", root, Memo(Path(folder, "memo"))).digest(f"pk.{start}")
    assert (before != after) is (edited in reached)


def test_what_an_older_analysis_remembered_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 60_000_000_000)  # files are old enough to be remembered
    memo = Memo(tmp_path / "memo.json")
    make(tmp_path)
    for path in (tmp_path / "pk").rglob("*.py"):
        memo.get(path, lambda _: {"sha256": "x", "internal": [], "external": [], "exports": {}, "door": False})
        memo.get(path, lambda _: "of another question", "sha256")
    assert sorted(CodeIndex("pk", tmp_path / "pk", memo).closure("pk.step")[0])[1:] == [
        "room/a.py",
        "step.py",
        "worker.py",
    ]


def test_the_digest_is_the_same_in_another_folder(tmp_path: Path) -> None:
    assert make(tmp_path / "a").digest("pk.step") == make(tmp_path / "b").digest("pk.step")


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    async def g():\n        import numpy\n",
        "class C:\n    import numpy\n",
        "if a:\n    pass\nelif b:\n    import numpy\n",
        "for a in b:\n    pass\nelse:\n    import numpy\n",
        "while a:\n    import numpy\n",
        "with a:\n    import numpy\n",
        "try:\n    pass\nexcept E:\n    import numpy\n",
        "try:\n    pass\nfinally:\n    from numpy import array\n",
        "try:\n    pass\nexcept* E:\n    import numpy\n",
        "match a:\n    case 1:\n        import numpy.linalg\n",
    ],
)
def test_imports_are_found_wherever_a_statement_may_stand(tmp_path: Path, text: str) -> None:
    assert make(tmp_path, {"step.py": text}).closure("pk.step")[1] == ["numpy"]


def test_imports_for_type_checkers_are_none_but_what_stands_beside_them_is(tmp_path: Path) -> None:
    text = "if TYPE_CHECKING:\n    import onnx\n    from pk.room import other\nelse:\n    import numpy\n"
    files, external = make(tmp_path, {"step.py": text}).closure("pk.step")
    assert (sorted(files), external) == (["step.py"], ["numpy"])


def test_a_distribution_has_one_name_however_it_is_imported(tmp_path: Path) -> None:
    text = "import importlinter\nimport typing_extensions\n"  # found by its metadata, and by its own name
    versions = make(tmp_path, {"step.py": text}).versions("pk.step")
    assert set(versions) == {"import-linter", "typing-extensions"}
