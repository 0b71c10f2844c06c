"""The page, the sentences and the terminal's rows: well-formed, escaped, self-contained, and honest."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from anfbuild.errors import StepError
from anfbuild.report import summary, verdict
from anfbuild.report.html import html
from anfbuild.report.results import results
from anfbuild.report.words import gates_sentence

HOSTILE = "<script>alert('x')</script>\"&"
VOID = {"meta"}


class Page(HTMLParser):
    """Text, tags and attributes of a page; fails where an element is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def rows(name: str = "Conv_1") -> list[dict[str, Any]]:
    return [
        {
            **{"node": name, "op_type": "Conv", "unit": "HTP", "macs": 1000, "ms": "0.25", "became": name},
            **{"reason": "", "compiler": ""},
        },
        {
            **{
                "node": "Nms_1",
                "op_type": "NonMaxSuppression",
                "unit": "CPU",
                "macs": None,
                "ms": "",
                "became": "Nms_1",
            },
            **{"reason": "no such operator", "compiler": "Operators of type NMS are not supported"},
        },
    ]


def test_the_page_has_every_section_and_needs_nothing_else(parts: dict[str, Any]) -> None:
    steps = [{"step": "convert", "key": "ab12", "about": "62 BatchNorm folded"}]
    text = html(results(**parts), placement=rows(), steps=steps, notes=["Costs are of one frame."])
    page = Page(text)
    titles = ("What it comes to", "Gates", "Accuracy", "Agreement", "Placement", "Latency", "traffic", "Versions")
    details = (
        "How it was built",
        "62 BatchNorm folded",
        "ab12",
        "no such operator",
        "compiler: Operators of type NMS",
        "Costs are of one frame.",
    )
    assert [words for words in titles + details if words not in page.text] == []
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    assert not {name for name, _ in page.attributes} & {"src", "href", "onclick", "onload"}
    assert not re.search(r"https?:|url\(|@import", text)
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def poison(value: Any) -> Any:
    """Every string of `value` with a hostile tail."""
    if isinstance(value, dict):
        return {key: poison(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poison(item) for item in value]
    return value + HOSTILE if isinstance(value, str) else value


@pytest.mark.parametrize("bare", [False, True])
def test_every_string_is_escaped(parts: dict[str, Any], bare_parts: dict[str, Any], bare: bool) -> None:
    chosen = bare_parts if bare else parts
    poisoned = {key: value if key == "gates" else poison(value) for key, value in chosen.items()}
    poisoned["package"] = parts["package"]
    poisoned["accuracy"]["reference"] = parts["accuracy"]["reference"]
    if not bare:
        poisoned["placement"]["time_source"] = parts["placement"]["time_source"]
    steps = [{"step": HOSTILE, "key": HOSTILE, "about": HOSTILE}]
    page = Page(html(results(**poisoned), placement=poison(rows()), steps=steps, notes=[HOSTILE]))
    clean = Page(html(results(**chosen), placement=rows(), steps=[{"step": "s", "key": "k"}], notes=["n"]))
    assert page.tags == clean.tags
    assert HOSTILE in page.text
    assert {name for name, _ in page.attributes} == {name for name, _ in clean.attributes}


def test_the_page_of_a_bare_host_gives_reasons(bare_parts: dict[str, Any]) -> None:
    text = Page(html(results(**bare_parts))).text
    for title in ("Agreement of HTP and CPU", "Placement", "DRAM traffic of one inference"):
        assert f"{title}Not known: onnxruntime-qnn has no wheel for macOS." in text
    assert "LatencyNot known: there is no placement to cost." in text
    assert "not judged" in text


def test_a_document_that_is_not_valid_has_no_page(parts: dict[str, Any]) -> None:
    with pytest.raises(StepError, match="lacks 'placement'"):
        html({key: value for key, value in results(**parts).items() if key != "placement"})


def test_sentences_name_sources_ranges_and_doubts(parts: dict[str, Any]) -> None:
    text = " ".join(verdict(results(**parts)))
    assert "2 of 3 gates hold. Missed: partitions is 2, at most 1." in text
    assert "predicted by the cost model to take 12.3 ms, 9 to 16.5 ms at 90 % confidence" in text
    assert "not calibrated" in text
    assert "quantization costs 0.027 (cost -0.01 to 0.06 at 95 % confidence), which these samples cannot tell" in text
    assert "88 of 90 nodes run on the HTP with 99.8 % of the multiply-accumulates" in text
    assert "in 2 partitions, reported by the compiler" in text
    assert "On the HTP emulator it is 0.9 on 1 sample." in text
    assert "differs by 2 LSB rms between emulator and CPU QDQ (at most 7 LSB" in text
    assert "32 samples are few" in text


def test_doubts_go_where_there_are_none(parts: dict[str, Any]) -> None:
    parts["latency_ms"]["calibrated"] = True
    parts["accuracy"]["interval95"] = [0.01, 0.04]
    text = " ".join(verdict(results(**parts)))
    assert "not calibrated" not in text
    assert "cannot tell" not in text
    parts["latency_ms"] |= {"source": "measured_device", "calibrated": True}
    assert "takes 12.3 ms (measured on the device)" in " ".join(verdict(results(**parts)))


def test_a_gain_is_called_a_gain(parts: dict[str, Any]) -> None:
    parts["accuracy"] |= {"drop_abs": -0.02, "drop_rel": -0.02}
    assert "quantization gains 0.02" in " ".join(verdict(results(**parts)))


def test_sentences_say_what_is_not_known(bare_parts: dict[str, Any]) -> None:
    text = " ".join(verdict(results(**bare_parts)))
    assert "Latency on Snapdragon 8 Gen 3 is not known: there is no placement to cost." in text
    assert "1 of 4 gates holds. Not judged: agreement_lsb (onnxruntime-qnn has no wheel for macOS); latency_ms" in text
    assert "None" not in text
    assert ".." not in text


def test_agreement_with_float_is_not_called_accuracy(parts: dict[str, Any]) -> None:
    parts["accuracy"] |= {"metric": "hmean against float", "reference": "float", "float": None}
    document = results(**parts, reasons={"/accuracy/float": "the data has no ground truth"})
    said = " ".join(verdict(document))
    assert "hmean against float is 0.85 quantized on 16 samples" in said
    assert "nothing of how good they are" in said
    assert "in float" not in said
    assert "hmean against float 0.85 (no ground truth), drop 0.027" in summary(document)[0][1]
    assert "the data has no ground truth" in Page(html(document)).text


def test_rows_for_the_terminal(parts: dict[str, Any]) -> None:
    table = {label: (value, source) for label, value, source in summary(results(**parts))}
    assert table["accuracy"] == (
        "hmean 0.85 (float 0.877), drop 0.027 [-0.01 to 0.06]",
        "measured on the building host",
    )
    assert table["latency"] == ("12.3 ms [9 to 16.5], not calibrated", "predicted by the cost model")
    assert table["placement"] == ("HTP 88, CPU 2 of 90 nodes, partitions 2", "reported by the compiler")
    assert table["package"] == ("9.4 MB", "")
    assert table["gate partitions"] == ("MISSED: 2, at most 1", "reported by the compiler")
    assert table["gate latency_ms"] == ("holds: 12.3, at most 25 ms", "predicted by the cost model")


def test_rows_of_a_bare_host(bare_parts: dict[str, Any]) -> None:
    table = {label: value for label, value, _ in summary(results(**bare_parts))}
    assert table["latency"] == "not known: there is no placement to cost"
    assert table["gate agreement_lsb"] == "not judged: onnxruntime-qnn has no wheel for macOS"
    assert "None" not in str(table)


def test_the_page_says_what_fusion_saves_and_what_holds_memory(parts: dict[str, Any]) -> None:
    page = html(results(**parts))
    assert "30 MB to and from DRAM against 90 MB node by node: 66.67 % stays on chip, 1 MB does not fit" in page
    assert "<code>conv</code> to <code>relu</code>" in page
    assert "skip: 2.00 MB held from node &lt;a&gt; to node b, over 9 nodes" in page


def test_a_missed_memory_gate_names_what_holds_it(parts: dict[str, Any]) -> None:
    document = results(**{**parts, "gates": {"memory_mb": {"max": 50}}})
    (gate,) = document["gates"]
    assert (gate["value"], gate["passed"]) == (60.0, False)
    assert "memory_mb is 60, at most 50 MB; skip: 2.00 MB held" in gates_sentence(document)
    (held,) = results(**{**parts, "gates": {"memory_mb": {"max": 61}}})["gates"]
    assert held["passed"]
    assert "suspects" not in held
