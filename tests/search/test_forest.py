"""Trees grow as a slow search by the same formulas has them grow, and know what is certain."""

import math

import numpy as np
import pytest
from random_games import RandomGames, searched

from sf.envs.group import CHANCE, OVER
from sf.search.search import GUMBEL, PUCT, Search, SearchSettings

DISCOUNT = 0.9


class Slow:
    """One node of a search that knows nothing of arrays. Values are those of player 0."""

    def __init__(self, game, way=()):
        self.game, self.way, self.children, self.visits, self.total = game, way, {}, 0, 0.0
        self.mover = game.mover(way)
        self.sign = -1 if self.mover == 1 else 1
        self.reward = game.reward(way) if way else 0.0
        if self.mover not in (OVER, CHANCE):
            logits, value = game.judged(way)
            self.value = self.sign * float(value)
            self.choices = game.choices(way)
            prior = np.exp(logits[self.choices] - logits[self.choices].max())
            self.prior = dict(zip(self.choices, prior / prior.sum(), strict=True))
        elif self.mover == CHANCE:
            self.prior = dict(zip(game.choices(way), game.odds(way), strict=True))

    def q(self, action):
        child = self.children[action]
        return self.sign * (child.reward + DISCOUNT * child.total / child.visits)

    def num(self, action):
        return self.children[action].visits if action in self.children else 0

    def simulate(self, choose, is_root=True):
        """Returns the value that this simulation has found here."""
        if self.visits == 0 and self.mover != CHANCE:
            found = 0.0 if self.mover == OVER else self.value
        elif self.mover == OVER:
            found = 0.0
        else:
            action = self.by_chance() if self.mover == CHANCE else choose(self, is_root)
            child = self.children.setdefault(action, Slow(self.game, (*self.way, action)))
            discount = 1 if self.mover == CHANCE else DISCOUNT  # what chance does belongs to the step of the move
            found = child.reward + discount * child.simulate(choose, False)
            self.game.seen.append(child.reward + discount * child.total / child.visits)
        self.visits += 1
        self.total += found
        return found

    def by_chance(self):
        return max(self.prior, key=lambda a: self.prior[a] * (self.visits + 1) - self.num(a))

    def completed(self):
        """See Danihelka et al. 2022, appendix D, and equation 8."""
        tried = [a for a in self.choices if self.num(a)]
        mixed = self.sign * self.value
        if tried:
            weighted = sum(self.prior[a] * self.q(a) for a in tried) / sum(self.prior[a] for a in tried)
            total = sum(map(self.num, tried))
            mixed = (mixed + total * weighted) / (1 + total)
        values = {a: self.q(a) if self.num(a) else mixed for a in self.choices}
        low, high = (-1, 1) if self.game.num_players == 2 else (min(values.values()), max(values.values()))
        scale = (50 + max(map(self.num, self.choices))) * 0.1 / max(high - low, 1e-8)
        return {a: scale * (value - low) for a, value in values.items()}


def puct(node, is_root):
    def scaled(value):
        if node.game.num_players == 2:
            return value
        low, high = min(node.game.seen, default=0), max(node.game.seen, default=0)
        return (value - low) / (high - low) if high > low else 0.0

    untried = scaled(node.sign * node.total / node.visits)

    def score(a):
        value = scaled(node.q(a)) if node.num(a) else untried
        return value + 1.5 * node.prior[a] * math.sqrt(node.visits) / (1 + node.num(a))

    return max(node.choices, key=score)


def halving(num_considered, num_simulations):
    """The visits that the choice of each simulation has had: Danihelka et al. 2022, figure 1."""
    found, visits, phases = [], [0] * num_considered, math.ceil(math.log2(num_considered))
    while len(found) < num_simulations:
        for _ in range(max(1, num_simulations // (phases * num_considered))):
            found += visits[:num_considered]
            visits[:num_considered] = [each + 1 for each in visits[:num_considered]]
        num_considered = max(2, num_considered // 2)
    return found


def gumbel(noise, num_simulations):
    def choose(node, is_root):
        completed = node.completed()
        if is_root:
            wanted = halving(len(node.choices), num_simulations)[sum(map(node.num, node.choices))]
            open_to = [a for a in node.choices if node.num(a) == wanted]
            return max(open_to, key=lambda a: noise[a] + math.log(node.prior[a]) + completed[a])
        improved = {a: node.prior[a] * math.exp(completed[a]) for a in node.choices}
        total, num = sum(improved.values()), sum(map(node.num, node.choices))
        return max(node.choices, key=lambda a: improved[a] / total - node.num(a) / (1 + num))

    return choose


def search_of(game, root, num_simulations, batch=1):
    settings = SearchSettings(num_simulations, root, discount=DISCOUNT, batch=batch)
    return Search(game, settings, 1)


@pytest.mark.parametrize("num_players", [1, 2])
@pytest.mark.parametrize("has_chance", [False, True])
@pytest.mark.parametrize("root", [PUCT, GUMBEL])
def test_the_visits_are_those_of_a_slow_search(num_players, has_chance, root):
    for seed in range(10):
        game = RandomGames(num_players, seed, depth=30, has_chance=has_chance)
        game.seen, slow, num_simulations = [], Slow(game), 40 + seed
        noise = np.random.default_rng(seed).gumbel(size=game.num_actions)
        choose = puct if root == PUCT else gumbel(noise, num_simulations)
        for _ in range(1 + num_simulations):
            slow.simulate(choose)
        search = search_of(game, root, num_simulations)
        search.begin([0])
        asked = search.leaves()
        search.evaluate(asked, game.judged(())[0][None], game.judged(())[1][None])
        if root == GUMBEL:
            search.disturb(0, noise[search.read(0).action])
        searched(search, game, [0])
        found = search.read(0)
        assert dict(zip(found.action.tolist(), found.visits.tolist(), strict=True)) == {
            a: slow.num(a) for a in slow.choices
        }, (seed, num_simulations)
        assert found.root_value == pytest.approx(slow.sign * slow.total / slow.visits, abs=1e-5)


@pytest.mark.parametrize("root", [PUCT, GUMBEL])
def test_simulations_that_are_on_their_way_together_are_all_counted(root):
    for seed in range(10):
        game = RandomGames(2, seed, depth=8, has_chance=seed % 2 == 1)
        search = search_of(game, root, 100, batch=12)
        searched(search, game, [0])
        found = search.read(0)
        assert found.visits.sum() == 100
        assert abs(found.root_value) <= 1


def test_what_is_certain_is_found_and_ends_the_search():
    num_proven = 0
    for seed in range(20):
        game = RandomGames(2, seed, depth=3)
        settings = SearchSettings(2000)  # the game has 6^3 ends at most
        search = Search(game, settings, 1)
        searched(search, game, [0])
        found = search.read(0)

        def outcome(way, game=game):  # for player 0
            if game.mover(way) == OVER:
                return game.reward(way)
            following = [outcome((*way, action)) for action in game.choices(way)]
            return max(following) if game.mover(way) == 0 else min(following)

        if found.visits.sum() < 2000:  # it has come to its end
            num_proven += 1
            assert found.root_value == outcome(())
        for action, certain in zip(found.action.tolist(), found.certain.tolist(), strict=True):
            assert certain in (0, outcome((action,)))
    assert num_proven >= 5


def test_a_tree_goes_on_behind_a_move_in_memory_that_does_not_grow():
    game = RandomGames(2, 1, depth=40)
    search = search_of(game, PUCT, 60)
    sizes = []
    for num in range(30):
        if not num % 10:
            search.forget(0)
        searched(search, game, [0])
        found = search.read(0)
        best = int(found.visits.argmax())
        search.descend(0, int(found.action[best]))
        assert search.is_known(0)
        after = search.read(0)
        assert after.visits.sum() == found.visits[best] - 1  # without its own evaluation
        assert len(game.ways[0]) <= 1 + found.visits.sum()
        sizes.append(search.num_bytes)
    assert max(sizes[10:]) <= 1.5 * max(sizes[:10])


def test_the_value_of_a_leaf_is_that_of_random_play_in_part():
    model = RandomGames(2, seed=0)
    model.play_out = lambda games, places: np.full(len(games), 0.8, np.float32)  # of the first player, who moves here
    found = []
    for share in (0.0, 0.25, 1.0):
        search = Search(model, SearchSettings(1, playout_share=share), 1)
        search.begin([0])
        search.evaluate(search.leaves(), np.zeros((1, model.num_actions)), np.array([-0.4]))
        found.append(search.read(0).root_value)
    assert found == pytest.approx([-0.4, -0.1, 0.8])


def test_a_search_says_how_deep_its_leaves_are_and_how_many_simulations_it_has():
    model = RandomGames(num_players=1, seed=3)
    search = Search(model, SearchSettings(num_simulations=30, root=PUCT, discount=DISCOUNT), num_games=1)
    assert search.num_simulations(0) == 0
    search.begin([0])
    while not search.is_done:
        asked = search.leaves()
        ways = [model.ways[0][node] for node in asked.node.tolist()]
        assert search.depth(asked) == sum(map(len, ways))
        logits, values = (np.array(part) for part in zip(*map(model.judged, ways), strict=True))
        search.evaluate(asked, logits, values)
    assert search.num_simulations(0) == 30


def test_games_may_have_different_numbers_of_simulations():
    model = RandomGames(num_players=1, seed=3)
    model.ways[1] = [()]
    search = Search(model, SearchSettings(num_simulations=30, root=PUCT, discount=DISCOUNT), num_games=2)
    search.begin([0, 1], np.array([30, 9]))
    while not search.is_done:
        asked = search.leaves()
        ways = [model.ways[game][node] for game, node in zip(asked.game.tolist(), asked.node.tolist(), strict=True)]
        if ways:
            logits, values = (np.array(part) for part in zip(*map(model.judged, ways), strict=True))
            search.evaluate(asked, logits, values)
    assert [search.num_simulations(game) for game in (0, 1)] == [30, 9]
