"""Shell completion: commands, and the options of each, as a script for bash, zsh or fish.

The script contains the words, so that completion starts no Python; a new version of Outcore needs a new script.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from outcore.base.errors import OutcoreError

SHELLS = ("bash", "zsh", "fish")


def script(shell: str, options: Mapping[str, Mapping[str, str]], summaries: Mapping[str, str]) -> str:
    """The script of a shell. `options`: for each command, its options with their meanings."""
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return make[shell](options, summaries)


def target(shell: str, home: Path) -> tuple[Path, str]:
    """The path where a shell looks for the script, and a text about what its user still has to do, if anything."""
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = {
        "bash": (data / "bash-completion" / "completions" / "outcore", "needs the package bash-completion"),
        "zsh": (home / ".zfunc" / "_outcore", "needs 'fpath+=~/.zfunc; autoload -U compinit; compinit' in .zshrc"),
        "fish": (config / "fish" / "completions" / "outcore.fish", ""),
    }  # fmt: skip
    return places[shell]


def chosen(shell: str | None) -> str:
    """The shell that was named, or that of the user. Raises OutcoreError for one that is not known."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise OutcoreError(
            errno.EINVAL, f"completion for the shell '{name}'", detail=f"name one of {', '.join(SHELLS)}"
        )
    return name


def install(shell: str, text: str) -> str:
    """Writes the script, and returns a message for the user."""
    path, rest = target(shell, Path.home())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise OutcoreError(error.errno or errno.EIO, "install completion", path=path) from error
    return f"completion of {shell} is in {path}; it takes effect in the next shell" + (
        f"; {rest}" if rest else ""
    )


def _cases(options: Mapping[str, Mapping[str, str]], line: str) -> str:
    return "\n".join(
        f"    {name}) " + line.format(words=" ".join(each)) + " ;;" for name, each in options.items()
    )


def _bash(options: Mapping[str, Mapping[str, str]], summaries: Mapping[str, str]) -> str:
    cases = _cases(options, 'words="{words}"')
    return f"""_outcore() {{
  local now=${{COMP_WORDS[COMP_CWORD]}} words=
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(summaries)} --help --version" -- "$now"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  case $now in
    -*) COMPREPLY=($(compgen -W "$words" -- "$now")) ;;
    *) COMPREPLY=($(compgen -f -- "$now")) ;;
  esac
}}
complete -o filenames -F _outcore outcore
"""


def _zsh(options: Mapping[str, Mapping[str, str]], summaries: Mapping[str, str]) -> str:
    commands = "\n".join(f"    {shlex.quote(f'{name}:{text}')}" for name, text in summaries.items())
    cases = _cases(options, "compadd -- {words}")
    return f"""#compdef outcore
_outcore() {{
  local -a commands
  commands=(
{commands}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  if [[ $words[CURRENT] != -* ]]; then
    _files
    return
  fi
  case $words[2] in
{cases}
  esac
}}
_outcore "$@"
"""


def _fish(options: Mapping[str, Mapping[str, str]], summaries: Mapping[str, str]) -> str:
    lines = [
        f"complete -c outcore -n __fish_use_subcommand -f -a {name} -d {shlex.quote(text)}"
        for name, text in summaries.items()
    ]
    for name, each in options.items():
        seen = shlex.quote(f"__fish_seen_subcommand_from {name}")
        for option, text in each.items():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"complete -c outcore -n {seen} {kind} -d {shlex.quote(text)}")
    return "\n".join(lines) + "\n"
