"""Games of strategy: `rts_mini`, `rts_flag`, `rts_tower`, and the first two as matches of two players.

It needs the extra `rts`. For other trainers there are `RtsEnv` (Gymnasium) and `RtsParallelEnv` (PettingZoo).
"""
