"""Actor-critic learning of Atari's Pong: play on the processors, learn on the device.

By proximal policy optimisation (Schulman et al. 2017), or by advantage actor-critic, the synchronous form of A3C
(Mnih et al. 2016).

python main.py --env-name PongNoFrameskip-v4 --num-processes 16 --num-steps 128 [--algo a2c]
"""

import itertools
import os
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from model import SIDE, STACK, ActorCritic, sample

from cotenant.bench import Benchmark, Run, UnsupportedError, flag, main
from cotenant.errors import CotenantError, did_you_mean

GAE_LAMBDA, NUM_ENV_STEPS = 0.95, 10_000_000
USUAL = {
    "ppo": {"num_steps": 128, "lr": 2.5e-4, "use_gae": True},
    "a2c": {"num_steps": 5, "lr": 7e-4, "use_gae": False},
}
"""Default arguments that differ between the algorithms as published."""
OF_PPO = {"ppo_epoch": 4, "num_mini_batch": 4, "clip_param": 0.1}
OF_A2C = {"alpha": 0.99}


class Rollout(NamedTuple):
    """The steps that were played, a row per environment step, on the device."""

    frames_bfhw: torch.Tensor
    actions_b: torch.Tensor
    log_probabilities_b: torch.Tensor
    values_b: torch.Tensor
    returns_b: torch.Tensor
    advantages_b: torch.Tensor


class Atari(Benchmark):
    """One step = `num-steps` actions in every environment, then 4 epochs of 4 minibatches (A2C: one update)."""

    item = "process x update"
    same_shapes = True

    batch_size: int = flag(16, "--num-processes", "--batch-size", "-b", help="environments played at the same time")
    env_name: str = flag("PongNoFrameskip-v4", help="a game, by any of its names in gymnasium; 4 frames per step")
    num_steps: int | None = flag(None, help="steps of every environment per update; unsaid 128, of a2c 5")
    algo: Literal["ppo", "a2c", "acktr"] = flag("ppo", help="the algorithm; acktr is not built")
    ppo_epoch: int = flag(OF_PPO["ppo_epoch"], help="passes over what was played; ppo")
    num_mini_batch: int = flag(OF_PPO["num_mini_batch"], help="minibatches of a pass; ppo")
    clip_param: float = flag(OF_PPO["clip_param"], help="how far ratio and value may move in one update; ppo")
    value_loss_coef: float = flag(0.5, help="weight of the value's loss")
    entropy_coef: float = flag(0.01, help="weight of the policy's entropy")
    max_grad_norm: float = flag(0.5, help="the gradient's norm is clipped to it")
    use_gae: bool | None = flag(None, help="generalised advantage estimation; unsaid: with ppo, not with a2c")
    gae_lambda: float = flag(GAE_LAMBDA, help="its decay")
    gamma: float = flag(0.99, help="discount of later rewards")
    lr: float | None = flag(None, help="learning rate; unsaid 2.5e-4, of a2c 7e-4")
    eps: float = flag(1e-5, help="of Adam, or of a2c's RMSprop")
    alpha: float = flag(OF_A2C["alpha"], help="decay of RMSprop's mean square; a2c")
    use_linear_lr_decay: bool = flag(True, help="let the learning rate fall to zero over --num-env-steps")
    num_env_steps: int = flag(NUM_ENV_STEPS, help="steps of a whole training; it only sets the decay's pace")

    def __init__(self, **parameters: Any) -> None:
        algo = parameters.get("algo", "ppo")
        if algo not in USUAL:
            raise UnsupportedError(
                "ACKTR is not built here: torch has no optimizer by Kronecker factors (Wu et al. 2017).",
                "Use --algo ppo or --algo a2c.",
            )
        for name, usual in USUAL[algo].items():
            if parameters.get(name) is None:
                parameters[name] = usual
        # A switched-off part and the other algorithm's flags are no parameters of this run.
        self.fixed = {**self.fixed, **(OF_A2C if algo == "ppo" else OF_PPO)}
        if not parameters["use_gae"]:
            self.fixed = {**self.fixed, "gae_lambda": GAE_LAMBDA}
        if not parameters.get("use_linear_lr_decay", True):
            self.fixed = {**self.fixed, "num_env_steps": NUM_ENV_STEPS}
        super().__init__(**parameters)

    def build(self, run: Run) -> None:
        # Imported here, so that their absence is reported as a missing package.
        import gymnasium
        from ale_py.vector_env import AtariVectorEnv

        games = {name: spec.kwargs for name, spec in gymnasium.registry.items() if "game" in spec.kwargs}
        if self.env_name not in games:
            raise CotenantError(f"ale-py has no game {self.env_name}.", did_you_mean(self.env_name, games))
        # Threads in C++: nothing is pickled and no step enters Python. By default they would be as many as the
        # machine has processors, even in a smaller slice.
        self.games = AtariVectorEnv(
            games[self.env_name]["game"],
            self.batch_size,
            num_threads=min(self.batch_size, len(os.sched_getaffinity(0))),
            repeat_action_probability=games[self.env_name]["repeat_action_probability"],
            stack_num=STACK,
            img_height=SIDE,
            img_width=SIDE,
            autoreset_mode="SameStep",
        )
        self.seen_nfhw, _ = self.games.reset(seed=run.seed)
        self.policy = run.place(ActorCritic(self.games.single_action_space.n))
        if self.algo == "ppo":
            self.optimizer = run.adam(self.policy.parameters(), lr=self.lr, eps=self.eps)
        else:
            self.optimizer = torch.optim.RMSprop(self.policy.parameters(), self.lr, self.alpha, self.eps, foreach=True)
        self.frames_tnfhw = torch.empty(self.num_steps, *self.seen_nfhw.shape, dtype=torch.uint8, device=run.device)
        self.env_steps = 0
        run.metrics["env_steps_per_item"] = self.num_steps

    def batches(self, run: Run) -> Iterator[None]:
        return itertools.repeat(None)

    def items(self, batch: None) -> int:
        return self.batch_size

    def step(self, run: Run, batch: None) -> torch.Tensor:
        if self.use_linear_lr_decay:
            self.optimizer.param_groups[0]["lr"] = self.lr * max(0.0, 1 - self.env_steps / self.num_env_steps)
        self.env_steps += self.num_steps * self.batch_size
        rollout = self.play(run)
        # Some versions of torch reuse the 16-bit copies of weights made without a gradient, and learning needs one.
        torch.clear_autocast_cache()
        return self.learn(run, rollout) if self.algo == "ppo" else self.learn_at_once(run, rollout)

    @torch.no_grad()
    def play(self, run: Run) -> Rollout:
        """Let the policy act `num_steps` times in every environment."""
        steps, games = self.num_steps, self.batch_size
        chosen_t3n = np.empty((steps, 3, games), np.float32)
        rewards_tn, goes_on_tn = np.empty((2, steps, games), np.float32)
        for t in range(steps):
            self.frames_tnfhw[t].copy_(torch.from_numpy(self.seen_nfhw), non_blocking=True)
            log_probabilities_na, values_n = self.policy(self.frames_tnfhw[t])
            actions_n1 = sample(log_probabilities_na)
            log_probability_n = log_probabilities_na.gather(1, actions_n1).squeeze(1)
            # The games live on the host, so reading the actions is part of the task: one read for all kept numbers.
            chosen_t3n[t] = torch.stack([actions_n1.squeeze(1), log_probability_n, values_n]).cpu()
            self.seen_nfhw, rewards_tn[t], lost_n, cut_n, _ = self.games.step(chosen_t3n[t, 0].astype(np.int64))
            goes_on_tn[t] = ~(lost_n | cut_n)
        _, last_values_n = self.policy(torch.from_numpy(self.seen_nfhw).to(run.device))
        actions_tn, log_probabilities_tn, values_tn = chosen_t3n.swapaxes(0, 1)
        all_values_tn = np.concatenate([values_tn, last_values_n[None].cpu()])
        decay = self.gae_lambda if self.use_gae else 1.0
        advantages_tn = advantages_of(rewards_tn, goes_on_tn, all_values_tn, self.gamma, decay)
        returns_tn = advantages_tn + values_tn
        if self.algo == "ppo":
            advantages_tn = (advantages_tn - advantages_tn.mean()) / (advantages_tn.std() + 1e-5)
        told_5tn = np.stack([actions_tn, log_probabilities_tn, values_tn, returns_tn, advantages_tn])
        actions_b, *others = torch.from_numpy(told_5tn).to(run.device, non_blocking=True).flatten(1)
        return Rollout(self.frames_tnfhw.flatten(0, 1), actions_b.long(), *others)

    def learn(self, run: Run, rollout: Rollout) -> torch.Tensor:
        """Update the policy by PPO on the steps played and return the last minibatch's loss."""
        clip = self.clip_param
        for _ in range(self.ppo_epoch):
            for rows in torch.randperm(len(rollout.actions_b), device=run.device).chunk(self.num_mini_batch):
                frames, actions, old_log_probabilities, old_values, returns, advantages = (
                    part.index_select(0, rows) for part in rollout
                )
                log_probabilities_ba, values = self.policy(frames)
                ratio = (log_probabilities_ba.gather(1, actions[:, None]).squeeze(1) - old_log_probabilities).exp()
                gain = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages).mean()
                near_values = old_values + (values - old_values).clamp(-clip, clip)
                value_loss = torch.maximum((values - returns).square(), (near_values - returns).square()).mean() / 2
                loss = self.update(run, value_loss, gain, log_probabilities_ba)
        return loss

    def learn_at_once(self, run: Run, rollout: Rollout) -> torch.Tensor:
        """Update the policy by A2C, once on all steps played, and return the loss.

        The advantage is the discounted return of the steps played and of the value after them, minus the value.
        """
        log_probabilities_ba, values_b = self.policy(rollout.frames_bfhw)
        surprises_b = rollout.returns_b - values_b
        gain = (log_probabilities_ba.gather(1, rollout.actions_b[:, None]).squeeze(1) * surprises_b.detach()).mean()
        return self.update(run, surprises_b.square().mean(), gain, log_probabilities_ba)

    def update(
        self, run: Run, value_loss: torch.Tensor, gain: torch.Tensor, log_probabilities_ba: torch.Tensor
    ) -> torch.Tensor:
        """Step the optimizer once, with the policy's entropy as a bonus, and return the loss."""
        entropy = -(log_probabilities_ba.exp() * log_probabilities_ba).sum(dim=1).mean()
        loss = self.value_loss_coef * value_loss - gain - self.entropy_coef * entropy
        run.update(loss, self.optimizer, self.max_grad_norm)
        return loss


def advantages_of(
    rewards_tn: np.ndarray, goes_on_tn: np.ndarray, values_tn: np.ndarray, gamma: float, decay: float
) -> np.ndarray:
    """Return generalised advantages (Schulman et al. 2015); `values_tn` has one more row, for the final state."""
    advantages_tn = rewards_tn + gamma * goes_on_tn * values_tn[1:] - values_tn[:-1]
    carried_tn = gamma * decay * goes_on_tn
    for t in reversed(range(len(rewards_tn) - 1)):
        advantages_tn[t] += carried_tn[t] * advantages_tn[t + 1]
    return advantages_tn


if __name__ == "__main__":
    main(Atari)
