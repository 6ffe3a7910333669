"""The data in conformance/ through the Python SDK, from the files' own text."""

from __future__ import annotations

import json
import pathlib

import pytest
from conftest import ROOT

from holdpoint import _core

DATA = ROOT / "conformance"
POSTURES = ("monitor", "shield", "guard", "strict")


def members(text: str) -> dict[str, str]:
    """The members of an object, each as the text that it is written in."""
    scan = json.JSONDecoder().scan_once
    found, at = {}, text.index("{") + 1
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "}":
            return found
        name, at = scan(text, at)
        at = text.index(":", at) + 1
        while text[at] in " \t\r\n":
            at += 1
        _, end = scan(text, at)
        found[name], at = text[at:end], end


def drift_cases():
    for path in sorted((DATA / "drift").rglob("*.json")):
        case = json.loads(path.read_text())
        if not case.get("library_only"):
            yield pytest.param(path, case["expect"], id=str(path.relative_to(DATA / "drift")))


@pytest.mark.parametrize(("path", "expect"), list(drift_cases()))
def test_drift(path: pathlib.Path, expect):
    texts = members(path.read_text())
    for posture in POSTURES:
        found = json.loads(_core.diff(texts["old"], texts["new"], posture))
        assert found["verdict"] == expect["verdict"][posture], posture
        entries = {(entry["type"], entry["key"]): entry for entry in found["entries"]}
        wanted = {(entry["type"], entry["key"]): entry for entry in expect["entries"]}
        assert set(entries) == set(wanted)
        for key, entry in wanted.items():
            findings = entries[key]["findings"]
            assert sorted({finding["kind"] for finding in findings}) == entry["kinds"]
            if "paths" in entry:
                assert sorted({finding["path"] for finding in findings}) == sorted(entry["paths"])
        if posture in expect.get("deferred", {}):
            assert any(entry["deferred"] for entry in found["entries"]) == expect["deferred"][posture]


def test_there_are_cases():
    assert len(list(drift_cases())) > 150


@pytest.mark.parametrize("name", ["numbers", "strings", "sets", "refused"])
def test_canonical(name: str):
    for case in json.loads((DATA / "canonical" / f"{name}.json").read_text()):
        if "inputHex" in case:
            with pytest.raises(UnicodeDecodeError):
                bytes.fromhex(case["inputHex"]).decode()
            continue
        position = case.get("position", "plain")
        if "canonical" in case:
            assert _core.canonical(case["input"], position) == case["canonical"], case
        else:
            with pytest.raises(ValueError, match=f"^{case['error']}$"):
                _core.canonical(case["input"], position)


def soundness_cases():
    return json.loads((DATA / "soundness" / "cases.json").read_text())


def test_soundness():
    scan = json.JSONDecoder().scan_once
    text, at = (DATA / "soundness" / "cases.json").read_text(), 1
    count = 0
    while True:
        at = text.find("{", at)
        if at < 0:
            break
        _, end = scan(text, at)
        case = members(text[at:end])
        tool = '{{"tools":[{{"name":"t","inputSchema":{}}}]}}'
        found = json.loads(_core.diff(tool.format(case["old"]), tool.format(case["new"]), "guard"))
        classes = {finding["class"] for entry in found["entries"] for finding in entry["findings"]}
        assert classes & {"breaking", "fail-safe"}, case["name"]
        count, at = count + 1, end
    assert count == len(soundness_cases())


def entry(place: str, text: str) -> str:
    def tool(extra=None, prop=None):
        return {"name": "add", **(extra or {}), "inputSchema": {"type": "object", "properties": prop or {}}}

    entries = {
        "description": tool({"description": text}),
        "title": tool({"title": text}),
        "_meta": tool({"_meta": {"example.org/note": [text]}}),
        "annotations-title": tool({"annotations": {"title": text}}),
        "output-schema": tool({"outputSchema": {"properties": {"a": {"description": text}}}}),
        "parameter-description": tool(None, {"a": {"description": text}}),
        "parameter-name": tool(None, {text: {}}),
        "enum-value": tool(None, {"a": {"enum": ["b", text]}}),
        "const": tool(None, {"a": {"const": text}}),
        "default": tool(None, {"a": {"default": {"x": text}}}),
        "prompt-text": {"name": "p", "description": text},
        "instructions": text,
    }
    return json.dumps(entries[place])


def test_markers():
    for case in json.loads((DATA / "markers" / "hostile.json").read_text()):
        found = json.loads(_core.markers(entry(case["place"], case["text"]), ""))
        assert case["class"] in {marker["class"] for marker in found}, case["name"]
    for case in json.loads((DATA / "markers" / "benign.json").read_text()):
        found = json.loads(_core.markers(entry(case.get("place", "description"), case["text"]), case.get("tools", "")))
        assert found == [], case.get("name", case["text"])


def test_a_capture_has_the_hash_that_the_binary_prints(tmp_path):
    import subprocess

    from conftest import BINARY

    path = DATA / "drift" / "battery" / "added_required.json"
    texts = members(path.read_text())
    for name in ("old", "new"):
        capture = tmp_path / f"{name}.json"
        capture.write_text(texts[name])
        printed = subprocess.run([BINARY, "hash", str(capture), "--json"], capture_output=True, text=True, check=True).stdout
        assert json.loads(_core.hash(texts[name]))["surface_hash"] == json.loads(printed)["surface_hash"]
