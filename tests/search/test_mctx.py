"""Trees grow as DeepMind's mctx grows them, on games that are tables."""

import functools

import numpy as np
import pytest
from random_games import RandomGames, searched

from sf.search.search import GUMBEL, PUCT, Search, SearchSettings

mctx = pytest.importorskip("mctx")
jax = pytest.importorskip("jax")
jnp = jax.numpy

NUM_STATES, NUM_ACTIONS, NUM_SIMULATIONS, DISCOUNT = 500, 6, 50, 0.9


class TableGame(RandomGames):
    """All choices are allowed everywhere, and lead to states by a table. It never ends."""

    def __init__(self, num_players, seed):
        super().__init__(num_players, seed, depth=1000)
        rng = np.random.default_rng(seed)
        self.next = rng.integers(NUM_STATES, size=(NUM_STATES, NUM_ACTIONS))
        self.rewards = rng.normal(size=(NUM_STATES, NUM_ACTIONS)).astype(np.float32) * (num_players == 1)
        self.logits = rng.normal(size=(NUM_STATES, NUM_ACTIONS)).astype(np.float32)
        self.values = rng.uniform(-1, 1, NUM_STATES).astype(np.float32)

    def state(self, way):
        state = 0
        for action in way:
            state = self.next[state, action]
        return state

    def choices(self, way):
        return list(range(NUM_ACTIONS))

    def reward(self, way):
        return self.rewards[self.state(way[:-1]), way[-1]] if way else 0.0

    def judged(self, way):
        return self.logits[self.state(way)], self.values[self.state(way)]


def by_mctx(game, root, noise):
    """Returns the visits of the choices."""
    sign = -1 if game.num_players == 2 else 1
    table = [jnp.array(each) for each in (game.next, game.rewards, game.logits, game.values)]
    following, rewards, logits, values = table

    def step(params, key, action, state):
        after = following[state, action]
        out = mctx.RecurrentFnOutput(
            reward=rewards[state, action],
            discount=jnp.full_like(values[after], sign * DISCOUNT),
            prior_logits=logits[after],
            value=values[after],
        )
        return out, after

    start = jnp.zeros(1, jnp.int32)
    at_root = mctx.RootFnOutput(prior_logits=logits[start], value=values[start], embedding=start)
    key = jax.random.PRNGKey(0)
    if root == GUMBEL:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jax.random, "gumbel", lambda *args, **kwargs: jnp.array(noise, jnp.float32)[None])
            how = {} if game.num_players == 1 else {"rescale_values": False, "value_scale": 0.1 / 2}
            completed = functools.partial(mctx.qtransform_completed_by_mix_value, **how)
            out = mctx.gumbel_muzero_policy(None, key, at_root, step, NUM_SIMULATIONS, qtransform=completed)
    else:

        def values_of(tree, node):
            own = tree.node_values[node]
            return jnp.where(tree.children_visits[node] > 0, tree.qvalues(node), own)

        out = mctx.muzero_policy(
            None, key, at_root, step, NUM_SIMULATIONS, dirichlet_fraction=0.0, qtransform=values_of,
            pb_c_init=1.5, pb_c_base=1e12,
        )  # fmt: skip
    return np.round(np.asarray(out.search_tree.summary().visit_counts[0])).astype(int).tolist()


@pytest.mark.parametrize(("root", "num_players"), [(PUCT, 2), (GUMBEL, 1), (GUMBEL, 2)])
def test_the_visits_are_those_of_mctx(root, num_players):
    for seed in range(5):
        game = TableGame(num_players, seed)
        noise = np.random.default_rng(seed).gumbel(size=NUM_ACTIONS)
        search = Search(game, SearchSettings(NUM_SIMULATIONS, root, discount=DISCOUNT, batch=1), 1)
        search.begin([0])
        logits, value = game.judged(())
        search.evaluate(search.leaves(), logits[None], value[None])
        if root == GUMBEL:
            search.disturb(0, noise[search.read(0).action])
        searched(search, game, [0])
        found = search.read(0)
        visits = dict(zip(found.action.tolist(), found.visits.tolist(), strict=True))
        assert [visits[a] for a in range(NUM_ACTIONS)] == by_mctx(game, root, noise)
