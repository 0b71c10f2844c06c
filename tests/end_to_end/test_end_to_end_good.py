"""A good recipe is built, exported and found again; a missed gate leaves a report and no package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from projects import SMALL, Project, write_tiny

from anfbuild import package, qnn
from anfbuild.package import check, load_schema

needs_compiler = pytest.mark.skipif(qnn.unavailable() is not None, reason=str(qnn.unavailable()))


def exported(project: Project, name: str) -> Path:
    return project.folder / "artifacts" / "builds" / name / "latest"


def nulls(value: Any, pointer: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from nulls(item, f"{pointer}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nulls(item, f"{pointer}/{index}")
    elif value is None:
        yield pointer


def assert_complete(results: dict[str, Any]) -> None:
    assert check(results, load_schema("anfbuild.report", "results.schema.json")) == []
    assert [pointer for pointer in nulls(results) if not results["reasons"].get(pointer)] == []


@needs_compiler
def test_the_detector_at_480_holds_what_is_claimed(tmp_path: Path, store: Path) -> None:
    project = Project(tmp_path, store)
    overrides = ["+recipe=ocr_detect", "dataset.size=480", "model.inputs.x.shape=[1,3,480,480]"]
    ran = project.run(*overrides, "--json")
    assert ran.code == 0, ran.err
    results = ran.document["results"]
    assert_complete(results)
    assert results["accuracy"]["samples"]["quantized"] == 16
    assert results["accuracy"]["drop_abs"] <= 0.03
    assert results["accuracy"]["float"] > 0.5
    assert results["placement"]["share"]["macs"]["htp"] == 1.0
    assert results["placement"]["partitions"] == 1
    assert {gate["name"] for gate in results["gates"]} >= {"accuracy_drop", "agreement_lsb", "htp_macs", "latency_ms"}
    assert all(gate["passed"] for gate in results["gates"])

    folder = exported(project, "ocr_detect")
    assert json.loads((folder / "results.json").read_bytes()) == results
    packed = package.read(folder / "ocr_detect.anf")
    assert packed.manifest["target"]["soc"] == results["target"]["soc"] == "sm8650"
    assert packed.manifest["entry"]["context"] in packed.names
    assert sorted(path.name for path in folder.iterdir()) == [
        "encodings.json",
        "ocr_detect.anf",
        "placement.csv",
        "report.html",
        "results.json",
        "run.json",
    ]

    again = project.run(*overrides, "--json")
    assert (again.code, again.steps_run) == (0, [])
    assert again.document["results"] == results


def test_a_second_build_runs_nothing_and_exports_the_same(detector: Project) -> None:
    folder = exported(detector, "ocr_detect")
    names = ["ocr_detect.anf", "results.json", "report.html", "encodings.json"]
    before = [(folder / name).read_bytes() for name in names]
    again = detector.run(*SMALL, "--json")
    assert (again.code, again.steps_run) == (0, [])
    assert [(folder / name).read_bytes() for name in names] == before
    assert_complete(again.document["results"])
    assert json.loads((folder / "run.json").read_bytes())["recipe"] == "ocr_detect"


def test_a_corrected_truth_reruns_what_judges_and_nothing_that_feeds_the_model(tiny: Project) -> None:
    assert tiny.run("+recipe=mine").code == 0
    truth = {f"{index}.png": {"quads": [[[3, 3], [30, 3], [30, 13], [3, 13]]]} for index in range(9)}
    (tiny.folder / "data" / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    assert set(tiny.run("+recipe=mine", "--json").steps_run) <= {"dataset", "evaluate", "report"}


def test_a_folder_without_truth_is_judged_by_the_float_model(tiny: Project) -> None:
    (tiny.folder / "data" / "truth.json").unlink()
    ran = tiny.run("+recipe=mine", "--json")
    assert ran.code == 0, ran.err
    accuracy = ran.document["results"]["accuracy"]
    assert (accuracy["metric"], accuracy["reference"], accuracy["float"]) == ("hmean against float", "float", None)
    assert accuracy["quantized"] == 1.0 - accuracy["drop_abs"]
    assert_complete(ran.document["results"])
    assert {gate["name"]: gate["passed"] for gate in ran.document["results"]["gates"]}["accuracy_drop"] is True
    assert "nothing of how good they are" in (exported(tiny, "mine") / "report.html").read_text(encoding="utf-8")


def test_a_goal_stops_there_and_exports_what_it_made(tiny: Project) -> None:
    ran = tiny.run("+recipe=mine", "goal=quantize", "--json")
    assert ran.code == 0, ran.err
    steps = {step["step"] for step in ran.document["steps"]}
    assert "quantize" in steps
    assert not steps & {"prepare", "emulate", "package", "report"}
    folder = Path(ran.document["folder"])
    assert (folder / "quantize" / "model.onnx").is_file()
    assert not list(folder.glob("*.anf"))
    assert exported(tiny, "mine").resolve() != folder  # `latest` is a whole build


def test_a_missed_gate_leaves_the_report_and_no_package(tiny: Project) -> None:
    assert tiny.run("+recipe=mine").code == 0
    assert (exported(tiny, "mine") / "mine.anf").is_file()
    ran = tiny.run("+recipe=mine", "+gates.accuracy={min: 0.5}", "--json")
    assert ran.code == 3
    for word in ("accuracy is 0.0", "limit min 0.5", "report.html", "No package was exported"):
        assert word in ran.err
    assert (exported(tiny, "mine") / "report.html").is_file()
    assert not (exported(tiny, "mine") / "mine.anf").exists()
    assert ran.document["exit_code"] == 3
    assert tiny.run("+recipe=mine", "--json").steps_run == []


def test_a_model_that_finds_nothing_is_told_so(tiny: Project) -> None:
    ran = tiny.run("+recipe=mine")
    assert ran.code == 0
    (row,) = [line for line in ran.out.splitlines() if line.startswith("gate accuracy_drop")]
    assert "not judged: the float model scores 0" in row
    assert "check scale, mean, std" in row


def test_json_is_all_that_is_on_stdout(tiny: Project) -> None:
    for arguments, code in (
        (["+recipe=mine"], 0),
        (["+recipe=mine", "source.path=models"], 1),
        (["+recipe=nope"], 2),
        (["+recipe=mine", "versions.onnxruntime='>=99'"], 4),
        (["-m", "+recipe=mine", "target=sm8650,nope"], 2),
    ):
        ran = tiny.run(*arguments, "--json")
        assert ran.code == code, ran.err
        assert ran.document["exit_code"] == code


def test_a_sweep_goes_on_past_a_failing_job(tiny: Project) -> None:
    ran = tiny.run("-m", "+recipe=mine", "source.path=models,models/mine.onnx", "quantization=int8,a16w9", "--json")
    assert ran.code == 2
    jobs = ran.document["jobs"]
    assert [job["exit_code"] for job in jobs] == [1, 2, 0, 2]
    assert "is a folder" in jobs[0]["error"]["what"]
    assert jobs[2]["results"]["recipe"] == "mine"
    (folder,) = (tiny.folder / "artifacts" / "sweeps").iterdir()
    assert [(path.parent.name[:3]) for path in folder.rglob("mine.anf")] == ["002"]
    assert not (tiny.folder / "artifacts" / "builds").exists()  # `latest` belongs to single builds


def test_a_path_with_spaces_and_letters_beyond_ascii(tmp_path: Path) -> None:
    folder = tmp_path / "mein Projekt" / "模型 – é"
    write_tiny(folder)
    project = Project(folder, folder / "a store")
    ran = project.run("+recipe=mine", LC_ALL="C")
    assert ran.code == 0, ran.err
    again = project.run("+recipe=mine", "--json")
    assert (again.code, again.steps_run) == (0, [])
    bad = project.run("+recipe=mine", "source.path='模型.onnx'")
    assert bad.code == 2
    assert "模型.onnx does not exist" in bad.err


def test_the_same_bytes_in_another_folder_and_store(alone: Project, tmp_path: Path) -> None:
    write_tiny(tmp_path / "else" / "where")
    other = Project(tmp_path / "else" / "where", alone.store.with_name("another store"))
    assert alone.run("+recipe=mine", PYTHONHASHSEED="1").code == 0
    assert other.run("+recipe=mine", PYTHONHASHSEED="2").code == 0
    for name in ("mine.anf", "results.json", "report.html"):
        assert (exported(alone, "mine") / name).read_bytes() == (exported(other, "mine") / name).read_bytes()


@pytest.mark.parametrize("arguments", [["+recipe=mine"], ["+recipe=mine", "--json"]])
def test_a_reader_that_goes_away_does_not_end_the_build(tiny: Project, arguments: list[str]) -> None:
    process = tiny.start(*arguments)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert (exported(tiny, "mine") / "results.json").is_file()


def test_the_report_of_a_machine_without_a_network_names_no_address(detector: Project) -> None:
    page = (exported(detector, "ocr_detect") / "report.html").read_text(encoding="utf-8")
    assert "<script src" not in page
    assert "<link" not in page


def test_help_needs_no_store(tmp_path: Path) -> None:
    ran = Project(tmp_path, tmp_path / "store").run("--help")
    assert ran.code == 0
    assert "exit codes" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_exports_that_cannot_be_written(tiny: Project) -> None:
    artifacts = tiny.folder / "artifacts"
    artifacts.touch()
    for arguments, what in ((["+recipe=mine"], "files cannot be written"), (["-m", "+recipe=mine"], "cannot be made")):
        ran = tiny.run(*arguments)
        assert ran.code == 1
        for word in (what, str(artifacts), "Not a directory"):
            assert word in ran.err
        assert "Traceback" not in ran.err
    artifacts.unlink()
    (artifacts / "builds" / "mine" / "latest").mkdir(parents=True)
    ran = tiny.run("+recipe=mine")
    assert ran.code == 1
    assert "a folder" in ran.err
    assert str(artifacts / "builds" / "mine" / "latest") in ran.err
