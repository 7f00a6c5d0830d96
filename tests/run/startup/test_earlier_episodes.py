import json

from sf.run.startup.earlier_episodes import earlier_episodes
from sf.storage.run_dir import RunDir


def test_the_episodes_of_all_starts_count_up_to_where_the_run_goes_on(tmp_path):
    run_dir = RunDir(tmp_path)
    assert earlier_episodes(run_dir, 1000) == 0
    records = [(1, 100, 4), (1, 300, 9), (2, 200, 5), (2, 500, 11), (2, 501, 12)]
    lines = [json.dumps({"start": start, "env_steps": steps, "episodes": num}) for start, steps, num in records]
    run_dir.metrics.write_text("".join(line + "\n" for line in lines))
    assert earlier_episodes(run_dir, 500) == 9 + 11
