import re
from itertools import combinations

import bench_ratings
import numpy as np

from sf.league.record import Match, Player


def test_a_tournament_has_every_pair_as_often():
    true, rows = bench_ratings.tournament(np.random.default_rng(0), num_players=4, num_matches=3)
    assert true.keys() == {"1", "2", "3"}
    pairs = [tuple(sorted(row.players)) for row in rows if isinstance(row, Match)]
    assert sorted(pairs) == sorted([*combinations("0123", 2)] * 3)


def test_a_run_meets_only_snapshots_that_have_joined():
    true, rows = bench_ratings.run(np.random.default_rng(0), num_matches=300)
    joined = set()
    for row in rows:
        if isinstance(row, Player):
            joined.add(row.name)
        else:
            assert row.players[0] == "policy_00"
            assert row.players[1] in joined
    assert true.keys() == joined - {"random"}


def test_the_report_has_a_line_for_each_method(capsys):
    bench_ratings.report("small", 2, lambda rng: bench_ratings.tournament(rng, 3, 10))
    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(r"[\d.]+", "N", line) for line in lines] == [
        "small: fit: N% held, error N",
        "small: openskill: N% held, error N",
    ]
