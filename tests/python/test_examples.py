"""The examples run, and the documents show the same code."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_exclusive_file(tmp_path):
    program = ROOT / "examples" / "exclusive_file.py"
    answer = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    got, expected = (part.split()[-1] for part in answer.stdout.split(","))
    assert got == expected
    assert list(tmp_path.iterdir()) == []


def test_global_array():
    program = ROOT / "examples" / "global_array.py"
    answer = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert "process 0 holds it; norm 708.2" in answer.stdout


def test_procedures():
    program = ROOT / "examples" / "procedures.py"
    answer = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    got, expected = (part.split()[-1] for part in answer.stdout.strip().split(","))
    assert got == expected


def test_documents_show_the_example():
    source = (ROOT / "examples" / "exclusive_file.py").read_text()
    code = source.partition('"""\n\n')[2].rstrip()
    assert f"```python\n{code}\n```" in (ROOT / "docs" / "program" / "exclusive-file.md").read_text()


def test_disk_array(tmp_path):
    program = ROOT / "examples" / "disk_array.py"
    answer = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    got, expected = (part.split()[-1] for part in answer.stdout.split(","))
    assert got == expected
    assert list(tmp_path.iterdir()) == []


def test_shared_file():
    program = ROOT / "examples" / "shared_file.py"
    answer = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    got, expected = (part.split()[-1] for part in answer.stdout.split("; ")[1].split(","))
    assert got == expected
    assert (
        program.read_text().partition('"""\n\n')[2]
        in (ROOT / "docs" / "program" / "shared-file.md").read_text()
    )
