"""What events say of each policy, as data and in words."""

from sf.league.population.record import Ancestor, Event, histories, lineage


def start(number, policy_id, **hyperparameters):
    return Event(number, "start", policy_id, 0, None, None, None, hyperparameters)


def mutation(number, policy_id, env_steps, **hyperparameters):
    return Event(number, "mutation", policy_id, env_steps, 0.5, None, None, hyperparameters)


def replacement(number, policy_id, env_steps, copies, **hyperparameters):
    return Event(number, "replacement", policy_id, env_steps, 0.125, copies, 0.61, hyperparameters)


EVENTS = [
    start(0, 0, gamma=0.99, learning_rate=1e-4),
    start(1, 1, gamma=0.99, learning_rate=2e-4),
    start(2, 2, gamma=0.99, learning_rate=3e-4),
    replacement(3, 1, 1_000_000, 2, gamma=0.99, learning_rate=3e-4),
    mutation(4, 2, 1_000_000, gamma=0.995, learning_rate=3e-4),
    replacement(5, 0, 2_040_000, 1, gamma=0.99, learning_rate=3.5e-4),
    replacement(6, 1, 2_040_000, 2, gamma=0.995, learning_rate=3e-4),
    mutation(7, 0, 3_000_000, gamma=0.99, learning_rate=4e-4),
]


def test_the_history_of_a_policy_is_that_of_its_weights_not_of_what_their_owner_became():
    policies = histories(EVENTS)
    assert {policy_id: history.hyperparameters for policy_id, history in policies.items()} == {
        0: {"gamma": 0.99, "learning_rate": 4e-4},
        1: {"gamma": 0.995, "learning_rate": 3e-4},
        2: {"gamma": 0.995, "learning_rate": 3e-4},
    }
    assert policies[0].ancestors == (Ancestor(1, 2_040_000), Ancestor(2, 1_000_000))
    assert policies[1].ancestors == (Ancestor(2, 2_040_000),)
    assert policies[2].ancestors == ()
    assert {policy_id: history.weights_event for policy_id, history in policies.items()} == {0: 5, 1: 6, 2: 2}


def test_a_lineage_reads_from_now_back_to_the_start():
    policies = histories(EVENTS)
    assert lineage(0, policies) == "policy 0 <- policy 1 at 2.0M <- policy 2 at 1.0M <- start"
    assert lineage(2, policies) == "policy 2 <- start"
