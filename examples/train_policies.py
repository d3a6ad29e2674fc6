"""Train the Q networks whose softmax policies the experiments use, by deep Q-learning (stable-baselines3).

    pip install "accountable-ope[training]"
    python examples/train_policies.py src/accountable_ope/data/policies

Writes TASK.npz, the layers as plain arrays, and TASK.json, the record of the training: settings, seed, and the value of the
softmax policy while it learned. A 32 x 32 network is trained at discount 0.95 on episodes of the task's horizon; the network with
the best value of all looks is kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback

import accountable_ope as aope
import accountable_ope.environments.gymnasium_tasks  # registers the environments
from accountable_ope.environments import monte_carlo_value
from accountable_ope.environments.softmax import QNetwork

STEPS = 100_000
SETTINGS = {
    "learning_rate": 1e-3,
    "buffer_size": 100_000,
    "learning_starts": 2000,
    "batch_size": 128,
    "gamma": 0.95,
    "train_freq": 4,
    "gradient_steps": 2,
    "target_update_interval": 1000,
    "exploration_fraction": 0.4,
    "exploration_final_eps": 0.05,
}
ENVIRONMENTS = {
    "inverted-pendulum": "accountable_ope/InvertedPendulum-v0",
    "puck-mountain": "accountable_ope/PuckMountain-v0",
}


def layers(model: stable_baselines3.DQN) -> QNetwork:
    linear = [part for part in model.q_net.q_net if isinstance(part, torch.nn.Linear)]
    arrays = [(part.weight.detach().numpy().astype(np.float64), part.bias.detach().numpy().astype(np.float64)) for part in linear]
    return QNetwork(tuple(w.copy() for w, _ in arrays), tuple(b.copy() for _, b in arrays))


class Looks(BaseCallback):
    """The value of the softmax policy at temperature 0.1, every 10,000 steps."""

    def __init__(self, task, looks):
        super().__init__()
        self.task, self.looks, self.best = task, looks, None

    def _on_step(self) -> bool:
        if self.num_timesteps % 10_000 == 0:
            network = layers(self.model)
            policy = aope.DiscretePolicy(lambda states: network.softmax(states, 0.1), self.task.actions)
            found = monte_carlo_value(self.task, policy, np.random.default_rng(0), discount=0.95, episodes=1000)
            self.looks.append(
                {"step": self.num_timesteps, "value": round(found.value, 4), "standard_error": round(found.standard_error, 4)}
            )
            if self.looks[-1]["value"] == max(look["value"] for look in self.looks):
                self.best = network
            print(self.task.name, self.looks[-1], flush=True)
        return True


def train(name: str, folder: Path, seed: int) -> None:
    environment = gymnasium.make(ENVIRONMENTS[name])
    looks: list[dict[str, float]] = []
    model = stable_baselines3.DQN("MlpPolicy", environment, policy_kwargs={"net_arch": [32, 32]}, seed=seed, **SETTINGS)
    callback = Looks(environment.unwrapped.task, looks)
    model.learn(STEPS, callback=callback)
    network = callback.best
    arrays = {f"weight_{k}": w.astype(np.float32) for k, w in enumerate(network.weights)}
    arrays |= {f"bias_{k}": b.astype(np.float32) for k, b in enumerate(network.biases)}
    np.savez(folder / f"{name}.npz", **arrays)
    record = {
        "task": name,
        "made_by": "examples/train_policies.py",
        "library": f"stable-baselines3 {stable_baselines3.__version__}, torch {torch.__version__}",
        "network": [32, 32],
        "steps": STEPS,
        "seed": seed,
        "settings": SETTINGS,
        "value_of_the_softmax_at_0.1": looks,
    }
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in names or list(ENVIRONMENTS):
        train(name, folder, seed=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
