"""The hashes of tens of thousands of captures, made up and real, are the same in Python and in the program's own code. The
TypeScript SDK compares itself with the same captures."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import ROOT

from holdpoint import _core

MAKER = ROOT / "sdk/typescript/test/surfaces.mjs"
NATIVE = [ROOT / "target" / profile / "examples/hashes" for profile in ("debug", "release")]
COUNT = "100000" if os.environ.get("HOLDPOINT_SDK_LONG") else "20000"


def hashes(line: str) -> str:
    try:
        return _core.hash(line)
    except ValueError as error:
        return f"!{error}"


def test_hashes_are_the_same_in_both_languages(tmp_path: pathlib.Path):
    native = next((path for path in NATIVE if path.exists()), None)
    if native is None or shutil.which("node") is None or not MAKER.exists():
        pytest.skip("needs node, and cargo build -p holdpoint-sdk-core --example hashes")
    surfaces = tmp_path / "surfaces.jsonl"
    subprocess.run(["node", str(MAKER), str(surfaces), COUNT], check=True)
    with open(surfaces, "rb") as file:
        theirs = subprocess.run([str(native)], stdin=file, capture_output=True, check=True).stdout.decode().split("\n")
    lines = surfaces.read_text().split("\n")[:-1]
    assert len(lines) >= int(COUNT)
    refused = 0
    for line, expected in zip(lines, theirs, strict=False):
        found = hashes(line)
        assert found == expected, line[:200]
        refused += found.startswith("!")
    assert 0 < refused < len(lines) / 2


def test_what_an_application_sees_has_the_hash_of_what_came():
    """A capture that went through `json`, as the library's messages do, hashes as its own text does."""
    cases = sorted((ROOT / "conformance/drift").rglob("*.json"))
    compared = 0
    for path in cases:
        case = json.loads(path.read_text())
        if case.get("library_only"):
            continue
        for side in ("old", "new"):
            text = json.dumps(case[side], ensure_ascii=compared % 2 == 0)
            assert _core.hash(text) == _core.hash(json.dumps(json.loads(text)))
            compared += 1
    assert compared > 300
