"""Games that are made up as they are played: what is at a position follows from the way to it."""

import numpy as np

from sf.envs.group import CHANCE, OVER, Positions


class RandomGames:
    """A forward model. num_players: 1, with rewards on the way, or 2 in turn, who are paid at the end."""

    low, high, num_actions = -1.0, 1.0, 6

    def __init__(self, num_players, seed, depth=6, has_chance=False):
        self.num_players, self.seed, self.depth, self.has_chance = num_players, seed, depth, has_chance
        self.pays_at_end = num_players == 2
        self.ways = {0: [()]}  # by game and place

    def rng(self, way):
        return np.random.default_rng((self.seed, len(way), *way))

    def mover(self, way):
        if len(way) >= self.depth:
            return OVER
        return CHANCE if self.has_chance and len(way) % 3 == 2 else len(way) % self.num_players

    def choices(self, way):
        num = self.rng(way).integers(2, self.num_actions + 1)
        return sorted(self.rng(way).permutation(self.num_actions)[:num].tolist())

    def odds(self, way):
        return self.rng((*way, 1)).dirichlet(np.ones(len(self.choices(way))))

    def reward(self, way):
        """Of player 0 for the last action."""
        if self.num_players == 2:
            return float(self.rng((*way, 2)).integers(-1, 2)) if self.mover(way) == OVER else 0.0
        return float(np.float32(self.rng((*way, 2)).normal()))

    def judged(self, way):
        """Logits of all actions, and the value for whoever moves."""
        rng = self.rng((*way, 3))
        return rng.normal(size=self.num_actions).astype(np.float32), np.float32(rng.uniform(-1, 1))

    def play(self, games, sources, actions, places):
        ways = []
        for game, source, action, place in zip(games, sources, actions, places, strict=True):
            ways.append(() if source < 0 else (*self.ways[game][source], action))
            if source >= 0:
                assert place == len(self.ways[game])
                self.ways[game].append(ways[-1])
            else:
                self.ways[game] = [()]
        movers = [self.mover(way) for way in ways]
        choices = [[] if mover == OVER else self.choices(way) for mover, way in zip(movers, ways, strict=True)]
        odds = [
            self.odds(way) if mover == CHANCE else np.ones(len(own))
            for mover, way, own in zip(movers, ways, choices, strict=True)
        ]
        return Positions(
            np.array(movers, np.int8),
            np.array([self.reward(way) if way else 0.0 for way in ways], np.float32),
            np.array([self.reward(way) for way in ways], np.float32),
            np.array([len(each) for each in choices], np.int32),
            np.array([action for each in choices for action in each], np.int32),
            np.concatenate(odds).astype(np.float32),
        )

    def keep(self, game, places):
        self.ways[game] = [self.ways[game][place] for place in places]

    def play_out(self, games, places):
        raise NotImplementedError

    def action_name(self, game, place, action):
        return str(action)


def searched(search, model, games):
    """Searches to the end, with evaluations of `model`."""

    def judged(asked):
        places = zip(asked.game.tolist(), asked.node.tolist(), strict=True)
        logits, values = zip(*(model.judged(model.ways[game][place]) for game, place in places), strict=True)
        return np.array(logits), np.array(values)

    search.run(games, judged)
