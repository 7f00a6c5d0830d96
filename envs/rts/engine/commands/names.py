"""The games, and the commands of each.

Those of Mini-RTS are those of table 11 of the ELF paper, those of Capture the Flag those of table 12. In Tower Defense
command 1 + s puts up a tower at site s.
"""

from __future__ import annotations

MINI, FLAG, TOWERS = range(3)
"""The games, by number."""

COMMANDS = (
    "idle",
    "build_worker",
    "build_barracks",
    "build_melee_attacker",
    "build_range_attacker",
    "hit_and_run",
    "attack",
    "attack_in_range",
    "all_defend",
)
FLAG_COMMANDS = ("idle", "get_flag", "escort_flag", "attack", "defend")
NUM_SITES = 16  # of towers
TOWER_COMMANDS = ("idle", *(f"tower_at_site_{site}" for site in range(NUM_SITES)))
