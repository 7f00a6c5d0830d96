"""Commands to a whole side, which become orders of its units. A new command is a name, a function, and its line in
`command`."""

from __future__ import annotations

from sf.envs.rts.engine.commands.athletes import ALL, OTHERS, command_athletes
from sf.envs.rts.engine.commands.names import FLAG, TOWERS
from sf.envs.rts.engine.commands.production import build, make
from sf.envs.rts.engine.commands.sites import tower_at
from sf.envs.rts.engine.commands.troops import ANY, attack, attack_in_range, defend, hit_and_run, workers_attack
from sf.envs.rts.engine.inner import inner
from sf.envs.rts.engine.orders.giving import GO_HOME, order
from sf.envs.rts.engine.units import BARRACKS, MELEE, RANGE, WORKER


@inner
def command(world, owner, what):
    """Carry out a command of the game that is played. What cannot be done is not done."""
    if world.game.rules == FLAG:
        command_athletes(world, owner, what, ALL)
    elif world.game.rules == TOWERS:
        if what > 0:
            tower_at(world, owner, what - 1)
    elif what == 1:
        make(world, owner, WORKER)
    elif what == 2:
        build(world, owner, BARRACKS)
    elif what == 3:
        make(world, owner, MELEE)
    elif what == 4:
        make(world, owner, RANGE)
    elif what == 5:
        hit_and_run(world, owner, RANGE)
    elif what == 6:
        attack(world, owner, ANY)
    elif what == 7:
        attack_in_range(world, owner, ANY)
    elif what == 8:
        defend(world, owner, ANY)


@inner
def command_kinds(world, owner, choices):
    """A command for each kind of unit, `choices` [H]; 0 leaves it to what it does. See `sf.envs.rts.controls`."""
    if world.game.rules == FLAG:
        if choices[0] == 1 and world.game.carrier >= 0 and world.units[world.game.carrier].owner == owner:
            order(world, world.game.carrier, GO_HOME)
        command_athletes(world, owner, choices[1], OTHERS)
        return
    if choices[0] == 1:
        make(world, owner, WORKER)
    if choices[1] == 1:
        build(world, owner, BARRACKS)
    elif choices[1] == 2:
        workers_attack(world, owner)
    made, head = 0, 3
    for kind in range(len(world.kinds)):
        if world.kinds[kind].made_by != BARRACKS:
            continue
        made += 1
        if choices[2] == made:
            make(world, owner, kind)
        if choices[head] == 1:
            attack(world, owner, kind)
        elif choices[head] == 2:
            attack_in_range(world, owner, kind)
        elif choices[head] == 3:
            defend(world, owner, kind)
        elif choices[head] == 4:
            hit_and_run(world, owner, kind)
        head += 1
