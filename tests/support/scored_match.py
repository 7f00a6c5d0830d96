"""A match that reports a true objective, which `toy_match_rps` does not."""

from sf.envs.toys.matches import RockPaperScissors


class Scored(RockPaperScissors):
    def step(self, actions):
        *step, infos = super().step(actions)
        rewards = step[1]
        for agent, info in infos.items():
            info["episode_stats"]["true_objective"] = rewards[agent]
        return *step, infos
