"""Completion of commands and options by the shell."""

import shutil
import subprocess

import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import completion
from outcore.cli import main as cli

OPTIONS = {"scf": {"--basis": "Basis set", "-q": "Print little"}, "doctor": {"--json": "Write it's result"}}
SUMMARIES = {"scf": "Hartree-Fock", "doctor": "what Outcore finds"}


def complete(line):
    """The completions that bash offers at the end of a command line."""
    text = completion.script("bash", OPTIONS, SUMMARIES)
    words = line.split(" ")
    empty = " ''" if line.endswith(" ") else ""
    setup = f"COMP_WORDS=({line}{empty}); COMP_CWORD={len(words) - 1}; _outcore"
    answer = subprocess.run(
        ["bash", "-c", f'{text}\n{setup}; echo "${{COMPREPLY[*]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split()


def test_bash_completes_commands_and_the_options_of_each():
    assert complete("outcore s") == ["scf"]
    assert complete("outcore scf --b") == ["--basis"]
    assert complete("outcore doctor --") == ["--json"]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_accepts_its_script(shell):
    text = completion.script(shell, OPTIONS, SUMMARIES)
    assert "scf" in text and "basis" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_the_script_has_every_command_and_option(capsys):
    assert cli.run(["--show-completion", "bash"]) == 0
    text = capsys.readouterr().out
    assert all(f"    {name}) " in text for name in cli.SUBCOMMANDS)
    assert "--triples" in text and "--roots" in text


def test_install_writes_where_the_shell_looks(tmp_path, monkeypatch, capsys):
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert cli.run(["--install-completion"]) == 0
    assert (tmp_path / ".config/fish/completions/outcore.fish").read_text().startswith("complete -c outcore")
    assert "outcore.fish" in capsys.readouterr().out


def test_another_shell_is_refused():
    with pytest.raises(OutcoreError, match=r"the shell 'csh'.*name one of bash, zsh, fish"):
        completion.chosen("csh")
