from __future__ import annotations

import copy
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from cotenant.bench import Run, UnsupportedError, session
from cotenant.bench.arguments import parse
from cotenant.bench.facts import without_effect
from cotenant.errors import CotenantError
from tasks import loading
from tasks.loading import losses

PLACE = "reinforcement/atari"
SMALL: dict[str, Any] = {"batch_size": 2, "num_steps": 8}
ONE_UPDATE: dict[str, Any] = {"ppo_epoch": 1, "num_mini_batch": 1}


def built(main: Any, **parameters: Any) -> tuple[Any, Run]:
    return loading.built(main.Atari, **SMALL | parameters)


@pytest.fixture(scope="module")
def ppo(main: Any) -> SimpleNamespace:
    """A rollout with the frames and actions of its play, and the losses of fifteen updates on it."""
    benchmark, run = built(main, **ONE_UPDATE)
    played, step = [], benchmark.games.step

    def watched(actions: np.ndarray) -> Any:
        played.append((benchmark.seen_nfhw.copy(), actions))
        return step(actions)

    benchmark.games.step = watched
    before, rollout = copy.deepcopy(benchmark.policy), benchmark.play(run)
    losses = [benchmark.learn(run, rollout).item() for _ in range(15)]
    return SimpleNamespace(
        metrics=run.metrics, policy=benchmark.policy, before=before, played=played, rollout=rollout, losses=losses
    )


def test_an_item_is_as_many_steps_as_a_rollout_has(ppo: SimpleNamespace) -> None:
    assert ppo.metrics == {"env_steps_per_item": 8}


def test_the_loss_falls_on_a_fixed_rollout(ppo: SimpleNamespace) -> None:
    assert ppo.losses[-1] < ppo.losses[0] - 0.01


def test_updates_move_every_weight(ppo: SimpleNamespace) -> None:
    assert still(ppo.before, ppo.policy) == []


@pytest.mark.slow
def test_a_step_in_bf16_moves_every_weight(main: Any) -> None:
    benchmark, run = built(main, precision="bf16", **ONE_UPDATE)
    before = copy.deepcopy(benchmark.policy)
    run.precision.around(benchmark.step)(run, None)
    assert still(before, benchmark.policy) == []


def still(before: Any, after: Any) -> list[str]:
    """Return the names of the weights that are the same in both policies."""
    old = before.state_dict()
    return [name for name, weight in after.named_parameters() if torch.equal(weight, old[name])]


@pytest.mark.usefixtures("two_threads")
def test_the_seed_decides_what_a2c_loses(main: Any) -> None:
    first, again, other = (
        losses(*built(main, algo="a2c", batch_size=1, num_steps=5, seed=seed), 3) for seed in (5, 5, 6)
    )
    assert first == again != other


@pytest.mark.parametrize(("name", "actions", "sticky"), [("PongNoFrameskip-v4", 6, 0.0), ("ALE/Breakout-v5", 4, 0.25)])
def test_games_go_by_all_their_names(
    main: Any, monkeypatch: pytest.MonkeyPatch, name: str, actions: int, sticky: float
) -> None:
    from ale_py import vector_env

    asked: dict[str, Any] = {}
    real = vector_env.AtariVectorEnv
    monkeypatch.setattr(
        vector_env, "AtariVectorEnv", lambda *args, **named: asked.update(named) or real(*args, **named)
    )
    benchmark, _ = built(main, env_name=name, batch_size=1)
    assert benchmark.policy.actor.out_features == actions
    assert asked["repeat_action_probability"] == sticky


@pytest.mark.usefixtures("ppo")  # torch's own thread comes with the first step
@pytest.mark.parametrize("processors", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_threads_are_as_many_as_the_slices_processors(
    main: Any, monkeypatch: pytest.MonkeyPatch, processors: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(processors))
    before = {*Path("/proc/self/task").iterdir()}  # Those of an earlier benchmark may end meanwhile.
    benchmark, _ = built(main, batch_size=2)
    assert benchmark.games.num_envs == 2
    assert len({*Path("/proc/self/task").iterdir()} - before) == min(processors, 2)


@pytest.mark.parametrize("name", ["PongNoFramskip-v4", "CartPole-v1"])
def test_what_is_no_game_is_named(main: Any, name: str) -> None:
    with pytest.raises(CotenantError, match=f"ale-py has no game {name}"):
        built(main, env_name=name)


def test_a_rollout_is_what_was_played(ppo: SimpleNamespace) -> None:
    rollout = ppo.rollout
    assert len(ppo.played) == 8
    frames, actions = (torch.from_numpy(np.concatenate(part)) for part in zip(*ppo.played, strict=True))
    assert frames.shape == (16, 4, 84, 84)
    assert torch.equal(rollout.frames_bfhw, frames)
    assert torch.equal(rollout.actions_b, actions)
    log_probabilities, values = ppo.before(frames)
    torch.testing.assert_close(rollout.log_probabilities_b, log_probabilities.gather(1, actions[:, None]).squeeze(1))
    torch.testing.assert_close(rollout.values_b, values)
    assert abs(rollout.advantages_b.mean()) < 1e-5
    assert not any(part.requires_grad for part in rollout)


def test_the_ratio_is_one_before_the_first_update(ppo: SimpleNamespace) -> None:
    """Normalised advantages add up to zero, so that the first loss consists of value and entropy alone."""
    value = (ppo.rollout.values_b - ppo.rollout.returns_b).square().mean() / 2
    entropy = torch.tensor(6.0).log()
    assert ppo.losses[0] == pytest.approx((0.5 * value - 0.01 * entropy).item(), abs=1e-3, rel=1e-3)


@pytest.mark.parametrize("decay", [0.95, 1.0])
def test_advantages_are_sums_of_discounted_surprises(main: Any, decay: float) -> None:
    random = np.random.default_rng(0)
    rewards, values = random.normal(size=(6, 3)), random.normal(size=(7, 3))
    goes_on = (random.random((6, 3)) < 0.7).astype(float)
    gamma = 0.99
    expected = np.zeros((6, 3))
    for n in range(3):
        for t in range(6):
            weight = 1.0
            for later in range(t, 6):
                surprise = rewards[later, n] + gamma * goes_on[later, n] * values[later + 1, n] - values[later, n]
                expected[t, n] += weight * surprise
                weight *= gamma * decay * goes_on[later, n]
    np.testing.assert_allclose(main.advantages_of(rewards, goes_on, values, gamma, decay), expected)


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        ("--gae-lambda 0.9 --num-env-steps 5000", []),
        ("--no-use-gae", []),
        ("--no-use-gae --gae-lambda 0.9", ["--gae-lambda"]),
        ("--no-use-linear-lr-decay --num-env-steps 5000", ["--num-env-steps"]),
        ("--alpha 0.9", ["--alpha"]),
        ("--algo a2c --alpha 0.9 --ppo-epoch 2 --gae-lambda 0.9 --eps 0.1", ["--ppo-epoch", "--gae-lambda"]),
        ("--algo a2c --use-gae --gae-lambda 0.9 --num-mini-batch 2", ["--num-mini-batch"]),
    ],
)
def test_what_is_switched_off_has_no_parameters(main: Any, words: str, listed: list[str]) -> None:
    parsed = parse(main.Atari, ["--no-cuda", *words.split()])
    assert without_effect(parsed, Run(main.Atari(**parsed.values))) == listed


def test_each_algorithm_has_its_usual_defaults(main: Any) -> None:
    for words, numbers in (
        ("", (128, 2.5e-4, True)),
        ("--algo a2c", (5, 7e-4, False)),
        ("--algo a2c --num-steps 7 --lr 0.1 --use-gae", (7, 0.1, True)),
    ):
        benchmark = main.Atari(**parse(main.Atari, ["--no-cuda", *words.split()]).values)
        assert (benchmark.num_steps, benchmark.lr, benchmark.use_gae) == numbers


def test_acktr_is_unsupported(main: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert session.run_benchmark(main.Atari, ["--no-cuda", "--algo", "acktr"]) == 1
    assert "ACKTR is not built here" in capfd.readouterr().err
    with pytest.raises(UnsupportedError, match="Use --algo ppo or --algo a2c"):
        main.Atari(algo="acktr")


def test_an_a2c_step_is_one_rmsprop_update_on_n_step_returns(main: Any) -> None:
    """The weights after it equal those of the plain formulas of Mnih et al. (2016), and further ones learn the values.

    The rest of its loss is weighted by the values' errors, so that the loss as a whole need not fall.
    """
    benchmark, run = built(main, algo="a2c", use_linear_lr_decay=False)
    rollouts, play = [], benchmark.play
    benchmark.play = lambda run: rollouts.append(play(run)) or rollouts[-1]
    plain = copy.deepcopy(benchmark.policy)
    benchmark.step(run, None)
    assert (run.updates, len(rollouts)) == (1, 1)
    frames, actions, _, old_values, returns, advantages = rollouts[0]
    torch.testing.assert_close(advantages, returns - old_values)  # A2C does not normalise them.
    log_probabilities, values = plain(frames)
    policy_loss = -(log_probabilities[range(16), actions] * (returns - values).detach()).mean()
    entropy = torch.distributions.Categorical(logits=log_probabilities).entropy().mean()
    (policy_loss + 0.5 * (returns - values).square().mean() - 0.01 * entropy).backward()
    torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
    torch.optim.RMSprop(plain.parameters(), lr=7e-4, alpha=0.99, eps=1e-5).step()
    for ours, theirs in zip(benchmark.policy.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)
    for _ in range(15):
        benchmark.learn_at_once(run, rollouts[0])
    assert (benchmark.policy(frames)[1] - returns).square().mean() < 0.2 * (old_values - returns).square().mean()


def test_actions_are_drawn_by_their_probability(main: Any) -> None:
    torch.manual_seed(0)
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    drawn = main.sample(probabilities.log().expand(20_000, 4))
    assert drawn.shape == (20_000, 1)
    torch.testing.assert_close(drawn.flatten().bincount() / 20_000, probabilities, atol=0.02, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("decays", [True, False])
def test_the_learning_rate_falls_to_zero(main: Any, decays: bool) -> None:
    benchmark, run = built(main, use_linear_lr_decay=decays, num_env_steps=2 * 8 * 2)
    rates = []
    for _ in range(4):
        benchmark.step(run, None)
        rates.append(benchmark.optimizer.param_groups[0]["lr"])
    expected = [1.0, 0.5, 0.0, 0.0] if decays else [1.0] * 4
    assert rates == pytest.approx([2.5e-4 * part for part in expected])


def test_fewer_rows_than_minibatches(main: Any) -> None:
    benchmark, run = built(main, batch_size=1, num_steps=3)
    assert benchmark.step(run, None).isfinite()
