"""Secret values are hidden wherever words and arguments are kept or shown; equal ones stay equal."""

from __future__ import annotations

import shlex

import pytest

from cotenant.confidential import arguments_without, by_new_key, is_confidential, words_without
from cotenant.results.identity import unique_id
from cotenant.suite.foreign import Foreign
from results.made import ARGUMENTS, a_part, a_record


@pytest.mark.parametrize(
    ("name", "confidential"),
    [
        *((name, True) for name in ("--hf-token", "API_KEY", "PGPASSWORD", "--pass", "authToken", "db_secret")),
        *((name, False) for name in ("--tokens", "--max-tokens", "bypass", "--keys", "KEYRING", "--passes", "compass")),
    ],
)
def test_a_name_tells(name: str, confidential: bool) -> None:
    assert is_confidential(name, "S") is confidential


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--input-key jpg", True),
        ("--pad-token '<|reserved_special_token_250|>'", True),
        ("--pad-token=50256", True),
        ("SORT_KEY=input_ids", True),
        ("--wandb-key 0123456789abcdef0123456789abcdef01234567", False),
        ("env WANDB_KEY=sk-abcDEF0123456789 python", False),
    ],
)
def test_ambiguous_names_hide_only_values_that_look_random(words: str, shown: bool) -> None:
    command = ["python", "main.py", *shlex.split(words)]
    assert (words_without(command) == command) is shown
    assert (words_without(["sh", "-c", words]) == ["sh", "-c", words]) is shown
    other = [word.replace("jpg", "png").replace("0", "1").replace("ids", "mask") for word in command]
    ids = {unique_id("vae", "", Foreign(tuple(each)).arguments) for each in (command, other)}
    assert len(ids) == 2
    secret = [unique_id("vae", "", Foreign(("x", "--hf-token", each)).arguments) for each in ("S1", "S2")]
    assert secret[0] == secret[1]


def test_words_of_every_form_are_hidden_and_no_others() -> None:
    words = ["run.sh", "--hf-token", "S1", "--api-key=S2", "HF_TOKEN=S3", "--use-token", "--seed", "1", "--tokens", "5"]
    words += ["sh -c 'x --secret S4 --lr 1 PASSWORD=S5'", "--pass", "-S6", "--note", "key words"]
    shown = words_without(words)
    assert shown == [
        *("run.sh", "--hf-token", "(hidden)", "--api-key=(hidden)", "HF_TOKEN=(hidden)"),
        *("--use-token", "--seed", "1", "--tokens", "5"),
        *("sh -c 'x --secret (hidden) --lr 1 PASSWORD=(hidden)'", "--pass", "(hidden)", "--note", "key words"),
    ]
    arguments = {"token": "S", "key": 7, "secret": "", "lr": "S"}
    assert arguments_without(arguments) == arguments | {"token": "(hidden)"}


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("export API_KEY=S1; python main.py", "export API_KEY=(hidden) python main.py"),
        ("env HF_TOKEN=S1 python main.py", "env HF_TOKEN=(hidden) python main.py"),
        ("docker run -e HF_TOKEN=S1 image", "docker run -e HF_TOKEN=(hidden) image"),
        ("mysql -u root -password S1", "mysql -u root -password (hidden)"),
        ("main.py -v --token token=S1 --token S2\\ S3 -x", "main.py -v --token (hidden) --token (hidden) -x"),
        ("--env=API_KEY=S1", "--env=API_KEY=(hidden)"),
        ("--passphrase=S1 S2", "--passphrase=(hidden)"),
        ("main.py --use-token --seed 1 --tokens=5", "main.py --use-token --seed 1 --tokens=5"),
    ],
)
def test_a_line_hides_every_value_after_any_name_prefix(word: str, shown: str) -> None:
    assert words_without(["sh", "-c", word]) == ["sh", "-c", shown]


def test_hidden_values_are_equal_only_under_the_same_key() -> None:
    one, other = by_new_key(), by_new_key()
    assert one("a") == one("a") != one("b")
    assert one("a") != other("a")
    assert "a-token-of-mine" not in one("a-token-of-mine")


def test_a_record_holds_no_secret_and_ignores_it_in_its_id() -> None:
    conceal = by_new_key()
    made = []
    for secret in ("S1", "S1", "S2"):
        told = {"part": a_part(arguments=ARGUMENTS | {"hf_token": secret})}
        made.append(a_record({"command": ["run.sh", "--hf-token", secret]}, told, {"conceal": conceal}))
    held = [(record.arguments["hf_token"], record.command[2]) for record in made]
    assert held[0] == held[1] == (conceal("S1"),) * 2 != held[2]
    assert made[0].unique_id == made[2].unique_id
    assert unique_id("vae", "1", {"hf_token": "x"}) == unique_id("vae", "1", {"hf_token": "y"})
