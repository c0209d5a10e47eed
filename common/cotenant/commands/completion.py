"""`completion bash|zsh`: a script that completes commands, flags, their choices and the jobs that come with us."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterable, Sequence

from cotenant.checkout import PROGRAM
from cotenant.commands import COMMANDS
from cotenant.commands.flags import Parser
from cotenant.commands.output import tell
from cotenant.errors import EXIT_PASSED
from cotenant.suite.jobfile import shipped_jobs, shipped_suites

SCRIPT = """\
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
HEADS = {"bash": "", "zsh": "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"}
"""What comes before the script; zsh reads bash's by its own `bashcompinit`."""


def main(argv: Sequence[str]) -> int:
    """Print the script of a shell. Returns 0; raises CotenantError for another shell."""
    given = parser().parse_words(argv)
    tell(HEADS[given.shell] + script())
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `completion`."""
    parser = Parser(
        "completion",
        "Print a script by which a shell completes commands, flags and jobs.",
        f'eval "$({PROGRAM} completion bash)" takes it into a shell; docs/commands.md has more.',
    )
    parser.add_argument("shell", metavar="SHELL", choices=tuple(HEADS), help="bash or zsh")
    return parser


def script() -> str:
    """Return bash's script, with the flags of every command's parser."""
    commands = " ".join([*(name for name in COMMANDS if name != "run"), "help"])
    choices = {
        "history history": ["add", "show"],
        "fleet fleet": ["run", "report"],
        "completion completion": list(HEADS),
        "help help": list(COMMANDS),
    }
    flags = {}
    for command in COMMANDS:
        of_command = _flags(command)
        flags[command] = of_command
        choices |= {f"{command} {flag}": words for flag, words in of_command.items() if words}
    return SCRIPT.format(
        commands=commands,
        choices="\n".join(
            f"    {shlex.quote(behind)}) offered={_quoted(words)} ;;" for behind, words in choices.items()
        ),
        flags="\n".join(f"        *:{command}:-*) offered={_quoted(words)} ;;" for command, words in flags.items()),
    )


def _flags(command: str) -> dict[str, list[str]]:
    """Return a command's flags with the words that complete them, also those that its parser takes from files."""
    module = importlib.import_module(f"cotenant.commands.{command.replace('-', '_')}")
    parsers = module.parsers().values() if hasattr(module, "parsers") else [module.parser()]
    flags = {flag: words for parser in parsers for flag, words in parser.flags().items()}
    known = dict.fromkeys(("--name", "--job", "--exclude", "--mix", "--pairs"), shipped_jobs())
    known["--jobs"] = shipped_suites()
    if command == "mlbench-report":  # There --name is a suite's, as in the original.
        del known["--name"]
    return flags | {flag: words for flag, words in known.items() if flag in flags}


def _quoted(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))
