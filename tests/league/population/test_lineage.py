"""What events say of each policy, as data and in words."""

from sf.league.population.record import Ancestor, Event, histories, lineage, sentences


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


def test_a_lineage_of_few_steps_is_said_exactly_and_a_long_one_is_cut():
    events = EVENTS[:3] + [replacement(3 + idx, idx % 2, 500 * idx, 1 - idx % 2, gamma=0.99) for idx in range(1, 8)]
    assert lineage(1, histories(events[:4])) == "policy 1 <- policy 0 at 500 <- start"
    assert lineage(1, histories(events)) == (
        "policy 1 <- policy 0 at 4k <- policy 1 at 3k <- policy 0 at 2k <- policy 1 at 2k <- policy 0 at 2k "
        "<- 2 more <- start"
    )


def test_an_event_is_said_with_all_that_changed():
    said = sentences(EVENTS)
    assert [word for word in ("policy 0 starts", "gamma 0.99", "learning_rate 0.0001") if word not in said[0]] == []
    assert "0.5) is mutated; gamma 0.99 -> 0.995; policy 2 <- start" in said[4]
    for word in ("2,040,000", "policy 0 (objective 0.125)", "policy 1 (objective 0.61)", "0.0001 -> 0.00035"):
        assert word in said[5]
