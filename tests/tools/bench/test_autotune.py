import pytest

from sf.config import Config
from sf.tools.bench.autotune import TUNED, Search, settings_of

START = {"num_envs_per_worker": 8, "batch_size": 1024, "num_workers": 2, "policy_workers_per_policy": 1}


def search(measure, num_trials=100):
    found = Search(measure, lambda: len(found.trials) >= num_trials)
    return found


def machine(settings):
    """Fastest with 32 environments, batches of 512 and 4 workers."""
    best = {"num_envs_per_worker": 32, "batch_size": 512, "num_workers": 4, "policy_workers_per_policy": 1}
    fps = 1000.0
    for name, value in best.items():
        ratio = settings[name] / value
        fps *= min(ratio, 1 / ratio) ** 0.5
    return fps


def test_it_finds_the_top_of_a_hill_and_tries_nothing_twice():
    found = search(machine)
    best = {**START, "num_envs_per_worker": 32, "batch_size": 512, "num_workers": 4}
    assert found.climb(START, TUNED) == best
    tried = [tuple(settings.values()) for settings, _ in found.trials]
    assert len(tried) == len(set(tried))
    assert search(machine).climb(START, ["batch_size"]) == {**START, "batch_size": 512}  # the others were given


def test_differences_within_the_noise_are_not_followed():
    def flat(settings):
        return 1000.0 + settings["num_envs_per_worker"] / 10

    assert search(flat).climb(START, TUNED) == START


def failing(_settings):
    raise ValueError("no room")


def test_settings_that_do_not_work_are_passed_over():
    def fragile(settings):
        return failing(settings) if settings["batch_size"] < 1024 else machine(settings)

    found = search(fragile)
    assert found.climb(START, TUNED)["batch_size"] == 1024
    assert ({**START, "num_envs_per_worker": 32, "batch_size": 512}, None) in found.trials


def test_what_does_not_work_never_wins():
    assert search(lambda s: 0.0 if s == START else failing(s)).climb(START, TUNED) == START
    assert search(lambda _: 0.0).climb(START, TUNED) == START
    with pytest.raises(ValueError, match="no room"):
        search(failing).climb(START, TUNED)


def test_it_ends_when_its_time_is_up():
    found = search(machine, num_trials=3)
    best = found.climb(START, TUNED)
    assert len(found.trials) == 3
    assert machine(best) == max(fps for _, fps in found.trials)


def test_what_is_slower_when_it_is_measured_again_is_not_recommended():
    best = {**START, "num_workers": 4}
    assert search(machine).confirm(START, best) == (best, pytest.approx(2**0.5), None)  # in turn
    settings, ratio, why = search(lambda settings: 900.0 if settings == best else 1000.0).confirm(START, best)
    assert (settings, ratio) == (START, None)
    assert why.startswith("what seemed to be faster was noise (0.90 times")
    with pytest.raises(ValueError, match="no room"):
        search(failing).confirm(START, best)


def test_the_start_is_what_the_run_would_be():
    config = Config().replace(env="toy_bandit", batch_size=256)
    assert settings_of(config, num_workers=7) == {**START, "batch_size": 256, "num_workers": 7}
