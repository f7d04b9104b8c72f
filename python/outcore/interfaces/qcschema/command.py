"""`outcore run input.json` for a QCSchema AtomicInput."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from outcore.base import extras, plain_file
from outcore.cli import main
from outcore.interfaces import job
from outcore.interfaces.qcschema import answer, translate
from outcore.job import launch, preflight

_ATTEMPTED = "write an AtomicResult"
_WITHOUT_RESULT = ("--estimate", "--write-input", "--no-solve", "--help", "-h")


def run(path: Path, given: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Answers with an AtomicResult, or writes a FailedOperation and raises the error. The answer has the version of
    the input; it goes to standard output, or into the file of `--json`. Other options in `arguments` follow those
    of the keywords. Collective."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--json", type=Path)
    target, more = parser.parse_known_args(arguments)
    for each in more:
        if each.partition("=")[0] in _WITHOUT_RESULT:
            raise main.UsageError(f"{path}: {each} has no effect for a QCSchema input, which is answered")
    preflight.check_file(target.json, _ATTEMPTED)
    version = 1
    try:
        model, version = translate.parse(given)
        request = translate.translate(model, version)
        command = request.method.command
        main.start_processes(command, [*job.words(command, request.options), *more])
        done = job.compute(command, request.options, request.geometry, more)
        result = answer.result(request, done)
    except Exception as error:
        if not extras.is_missing(error):
            _write(answer.failed(dict(given), error), version, target.json)
        raise
    _write(result, version, target.json)
    return 0


def _write(model: Any, version: int, target: Path | None) -> None:
    member = launch.launched()
    if member is not None and member.rank != 0:
        return
    plain = model if version == 2 else model.convert_v(1)
    text = json.dumps(json.loads(plain.serialize("json")), indent=2)
    if target is None:
        print(text)
    else:
        plain_file.write_text(target, _ATTEMPTED, text + "\n")
