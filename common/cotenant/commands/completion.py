"""`completion bash|zsh|fish`: a script that completes commands, flags, their choices and shipped jobs."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cotenant.checkout import PROGRAM
from cotenant.commands import COMMANDS
from cotenant.commands.flags import Parser
from cotenant.commands.output import tell
from cotenant.errors import EXIT_PASSED
from cotenant.suite.jobfile import shipped_jobs, shipped_suites

BASH = """\
_cotenant() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD - 1]}}" command=run offered= i
    case " {commands} " in *" ${{COMP_WORDS[1]}} "*) command="${{COMP_WORDS[1]}}" ;; esac
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [ "${{COMP_WORDS[i]}}" = -- ]; then return; fi
    done
    case "$command $previous" in
{choices}
    esac
    if [ -z "$offered" ]; then
        case "$COMP_CWORD:$command:$current" in
{flags}
        1:*) offered='{commands}' ;;
        esac
    fi
    if [ -n "$offered" ]; then COMPREPLY=($(compgen -W "$offered" -- "$current")); fi
}}
complete -o default -F _cotenant cotenant run.sh
"""
ZSH = f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{BASH}"
"""zsh reads bash's script by its own `bashcompinit`."""
FISH = """\
function __cotenant
    set -l words (commandline -opc)
    set -l command run
    if contains -- -- $words
        complete -C "'' "(commandline -ct)
        return
    end
    if set -q words[2]; and contains -- $words[2] {commands}
        set command $words[2]
    end
    switch "$command $words[-1]"
{choices}
    end
    switch "$command:"(commandline -ct)
{flags}
    end
    if test (count $words) -eq 1
        printf '%s\\n' {commands}
    else
        complete -C "'' "(commandline -ct)
    end
end
complete -c cotenant -c run.sh -f -a '(__cotenant)'
"""


@dataclass(frozen=True)
class _Script:
    """A shell's script with gaps for lines: those on the choices `behind` some words, and on the flags of a command."""

    whole: str
    choices: str
    flags: str


OF_BASH = _Script(BASH, "    {behind}) offered={words} ;;", "        *:{command}:-*) offered={words} ;;")
SCRIPTS = {
    "bash": OF_BASH,
    "zsh": replace(OF_BASH, whole=ZSH),
    "fish": _Script(
        FISH,
        "        case {behind}\n            string split ' ' -- {words}\n            return",
        "        case '{command}:-*'\n            string split ' ' -- {words}\n            return",
    ),
}


def main(argv: Sequence[str]) -> int:
    """Print the script of a shell. Returns 0; raises CotenantError for another shell."""
    given = parser().parse_words(argv)
    tell(script(SCRIPTS[given.shell]))
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `completion`."""
    parser = Parser(
        "completion",
        "Print a script by which a shell completes commands, flags and jobs.",
        f'eval "$({PROGRAM} completion bash)" takes it into bash, {PROGRAM} completion fish | source into fish; '
        "docs/commands.md has more.",
    )
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help="bash, zsh or fish")
    return parser


def script(shell: _Script) -> str:
    """Return the script of a shell, with the flags of every command's parser."""
    commands = " ".join([*(name for name in COMMANDS if name != "run"), "help"])
    flags = {command: _flags(command) for command in COMMANDS}
    choices = {
        "completion completion": list(SCRIPTS),
        "help help": list(COMMANDS),
    } | {f"{command} {flag}": words for command in flags for flag, words in flags[command].items() if words}
    return shell.whole.format(
        commands=commands,
        choices="\n".join(
            shell.choices.format(behind=shlex.quote(behind), words=_quoted(words)) for behind, words in choices.items()
        ),
        flags="\n".join(shell.flags.format(command=command, words=_quoted(words)) for command, words in flags.items()),
    )


def _flags(command: str) -> dict[str, list[str]]:
    """Return a command's flags with the words that complete them, also words from files.

    A command whose package is left out has none.
    """
    try:
        module = importlib.import_module(f"cotenant.commands.{command.replace('-', '_')}")
    except ModuleNotFoundError:
        return {}
    flags: dict[str, list[str]] = module.parser().flags()
    known = dict.fromkeys(("--name", "--job", "--exclude", "--mix", "--pairs"), shipped_jobs())
    known["--jobs"] = shipped_suites()
    if command == "mlbench-report":  # Its --name is that of a suite, as in the original.
        del known["--name"]
    return flags | {flag: words for flag, words in known.items() if flag in flags}


def _quoted(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))
