"""Describes the tensors of a network: which role each plays, and what the indices along its axes stand for.

It walks through a network as data does, from the observations to the heads, and hands each layer the axis of what goes
in. So two networks can be compared tensor by tensor, whatever the order of their observations and the names of their
modules. A module of `sf.model` with weights of its own has its lines here; one of a user is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sf.model.actor_critic import ActorCritic, CriticClock
from sf.model.central_critic import CentralCritic
from sf.model.cores.choice import Core
from sf.model.cores.transformer import Transformer
from sf.model.encoders.blocks import Convolutional, ResidualBlock
from sf.model.encoders.images import PixelConv2d
from sf.model.encoders.symbols import SymbolsEncoder
from sf.model.encoders.vectors import MlpEncoder
from sf.model.layers import ResidualLayer
from sf.model.normalizers import ObsNormalizer
from sf.model.trunk import Tower
from sf.surgery.axes import Axis, Block
from sf.surgery.spaces import ActionAxes

ACTOR, CRITIC = "actor", "critic"


@dataclass(frozen=True)
class TensorSpec:
    """Describes a tensor.

    role: the same in all networks that have such a tensor. axes: of it; a single one may be of the flattened tensor.
    zero: the axes along which a new index gets zeros. fresh: those along which it gets fresh numbers, whatever it is
    along the others. identity_after: the role of the layer before, behind which this one may be the identity.
    is_foreign: nothing is known of its axes, as it is part of a user's module.
    """

    role: str
    axes: tuple[Axis, ...]
    zero: tuple[int, ...] = ()
    fresh: tuple[int, ...] = ()
    identity_after: str | None = None
    is_foreign: bool = False


Anatomy = Mapping[str, TensorSpec]
"""By the name of a tensor in the network's `state_dict`."""


def describe(network: nn.Module, obs: Mapping[str, Axis], actions: ActionAxes) -> Anatomy:
    """network: on the device meta, as its encoders are called. obs, actions: see `sf.surgery.spaces`."""
    walk = _Walk(obs)
    if isinstance(network, ActorCritic):
        walk.actor_critic(network, actions)
    else:
        walk.foreign("", "", network)
    names = network.state_dict().keys()
    assert names == walk.specs.keys(), sorted(names ^ walk.specs.keys())
    return walk.specs


class _Walk:
    """Each method describes a module. name, role: of it. Most return the axis of what comes out."""

    def __init__(self, obs: Mapping[str, Axis]) -> None:
        self.specs: dict[str, TensorSpec] = {}
        self._obs = obs

    def actor_critic(self, network: ActorCritic, actions: ActionAxes) -> None:
        self._normalizer("obs_norm", "obs_norm", network.obs_norm)
        actor = critic = self._tower("trunk.actor", ACTOR, network.trunk.actor)
        if network.trunk.critic is not None:
            critic = self._tower("trunk.critic", CRITIC, network.trunk.critic)
        # New choices begin with zeros, too: their probability is in the bias alone.
        head = actions.choices + actions.numbers
        self._add("policy_head.weight", (head, actor), zero=(0, 1))
        self._add("policy_head.bias", (head,))
        self._add("log_stddev", (actions.numbers,))
        if network.critic_clock is not None:
            critic = self._clock(network.critic_clock, critic)
        if network.central_critic is not None:
            critic = self._central(network.central_critic, critic)
        value = (Block("value", (network.value_head.out_features,)),)  # one, or one for each task
        self._linear("value_head", "value_head", critic, value)
        for name, part in (network.mixer or nn.Module()).named_children():
            assert isinstance(part, nn.Linear)
            given = value if name == "head" else critic
            self._linear(f"mixer.{name}", f"mixer.{name}", given, (Block(f"mixer {name}", (part.out_features,)),))
        for name, tensor in network.value_norm.state_dict().items():
            self._add(f"value_norm.{name}", ((Block(name, tuple(tensor.shape)),),))

    def foreign(self, name: str, role: str, module: nn.Module) -> None:
        """A module of a user."""
        for own, tensor in module.state_dict().items():
            axes = tuple((Block(str(d), (n,)),) for d, n in enumerate(tensor.shape))
            self.specs[f"{name}{own}"] = TensorSpec(f"{role}{own}", axes, is_foreign=True)

    def _tower(self, name: str, role: str, tower: Tower) -> Axis:
        who = tuple(block for key in tower.identities for block in self._obs[key])
        features: Axis = ()
        for idx, (key, encoder) in enumerate(zip(tower.keys, tower.encoders, strict=True)):
            seen = self._obs[key] + (who if key in tower.joined else ())
            kind = type(encoder).__name__
            features += self._encoder(f"{name}.encoders.{idx}", f"{role}.{key}.{kind}", f"{key} {kind}", encoder, seen)
        if tower.join is not None:
            joined = (Block("joined", (tower.join[0].out_features,)),)  # type: ignore[arg-type]
            self._linear(f"{name}.join.0", f"{role}.join", features + who, joined)
            features = joined
        if tower.core is None:
            return features
        out = self._core(f"{name}.core", role, tower.core, features)
        return features + out if tower.has_skip else out

    def _encoder(self, name: str, role: str, of: str, encoder: nn.Module, seen: Axis) -> Axis:
        """of: what the blocks of its features are called. seen: the axis of the observation."""
        if isinstance(encoder, MlpEncoder):
            return self._mlp(f"{name}.linear", f"{role}.linear", of, encoder.linear, seen)
        if not isinstance(encoder, Convolutional | SymbolsEncoder):
            self.foreign(f"{name}.", f"{role}.", encoder)
            return (Block(of, (encoder.out_size,)),)  # type: ignore[arg-type]
        channels = f"channels of {of}"
        if isinstance(encoder, SymbolsEncoder) and encoder.is_embedded:
            num_channels, num_codes, width = encoder.table.shape
            axes = (Block(channels, (num_channels,)),), (Block("codes", (num_codes,)),), (Block(of, (width,)),)
            self._add(f"{name}.table", axes, role=f"{role}.table", zero=(0,))
            channels = of
        height, width, num_channels = self._convolutions(f"{name}.convolutions", role, channels, encoder, seen)
        cells = (Block(f"cells of {of}", (height, width, num_channels)),)
        return self._mlp(f"{name}.linear", f"{role}.linear", of, encoder.linear, cells)

    def _convolutions(
        self, name: str, role: str, channels: str, encoder: Convolutional | SymbolsEncoder, seen: Axis
    ) -> tuple[int, int, int]:
        """Returns the height, width and channels of what comes out."""
        given: Axis = ()
        for idx, layer in enumerate(encoder.convolutions):
            at, part = f"{name}.{idx}", f"{role}.convolutions.{idx}"
            if isinstance(layer, nn.Conv2d | PixelConv2d):
                given = given or (Block(channels, (layer.weight.shape[1],)),)
                out = (Block(f"channels {idx}", (layer.weight.shape[0],)),)
                self._convolution(at, part, layer, given, out)
                given = out
            elif isinstance(layer, ResidualBlock):
                _, first, _, second = layer.branch
                inner = (Block("inner channels", (first.out_channels,)),)  # type: ignore[arg-type]
                self._convolution(f"{at}.branch.1", f"{part}.1", first, given, inner)
                self._convolution(f"{at}.branch.3", f"{part}.3", second, inner, given)
        return _size_of_features(encoder, seen)

    def _convolution(self, name: str, role: str, layer: Any, given: Axis, out: Axis) -> None:
        rows, columns = layer.weight.shape[2:]
        axes = out, given, (Block("rows", (rows,)),), (Block("columns", (columns,)),)
        self._add(f"{name}.weight", axes, role=f"{role}.weight", zero=(1,), fresh=(0,))
        self._add(f"{name}.bias", (out,), role=f"{role}.bias")

    def _mlp(self, name: str, role: str, of: str, layers: nn.Sequential, given: Axis) -> Axis:
        """Units of all layers have one name: where a layer is added behind the last one, they stay what they are."""
        before: str | None = None
        idx_of_layer = 0
        for idx, layer in enumerate(layers):
            own = f"{role}.{idx_of_layer}"
            if isinstance(layer, nn.LayerNorm):
                self._norm(f"{name}.{idx}", f"{role}.{idx_of_layer - 1}.norm", given)
            elif isinstance(layer, nn.Linear):
                out = (Block(of, (layer.out_features,)),)
                behind = before if isinstance(layers[idx + 1], nn.ReLU) else None
                self._linear(f"{name}.{idx}", own, given, out, identity_after=behind)
                given, before, idx_of_layer = out, own, idx_of_layer + 1
            elif isinstance(layer, ResidualLayer):
                *_, second = layer.branch
                inner = (Block("inner", (second.in_features,)),)  # type: ignore[arg-type]
                self._linear(f"{name}.{idx}.branch.0", f"{own}.first", given, inner)
                if isinstance(layer.branch[1], nn.LayerNorm):
                    self._norm(f"{name}.{idx}.branch.1", f"{own}.norm", inner)
                self._linear(f"{name}.{idx}.branch.{len(layer.branch) - 1}", f"{own}.second", inner, given)
                before, idx_of_layer = None, idx_of_layer + 1
        return given

    def _core(self, name: str, role: str, core: Core, given: Axis) -> Axis:
        kind = type(core).__name__
        out = (Block(f"units of {kind}", (core.out_size,)),)
        if isinstance(core, Transformer):  # what is inside of it keeps its shape, see `require_can_be_exact`
            self._linear(f"{name}.embed", f"{role}.{kind}.embed", given, out)
            self.foreign(f"{name}.layers.", f"{role}.{kind}.layers.", core.layers)
            return out
        num_gates = core.bias_ih.shape[0] // core.out_size
        gates = (Block("gates", (num_gates, core.out_size)),)
        for own in core.state_dict():
            part, of = own.split("_")
            if part == "weight":
                axes = gates, given if of == "ih" else out
                self._add(f"{name}.{own}", axes, role=f"{role}.{kind}.{own}", zero=(1,), fresh=(0,))
            else:
                self._add(f"{name}.{own}", (gates,), role=f"{role}.{kind}.{own}")
        return out

    def _clock(self, clock: CriticClock, given: Axis) -> Axis:
        self._moments("critic_clock.norm.moments", "critic_clock.norm", (Block("clock", (1,)),))
        out = (Block("units of the clock", (clock.layer.out_features,)),)
        self._linear("critic_clock.layer", "critic_clock.layer", (*given, Block("clock", (1,))), out)
        if clock.added is None:
            return out
        self._linear("critic_clock.added", "critic_clock.added", out, given)
        return given

    def _central(self, central: CentralCritic, given: Axis) -> Axis:
        self._normalizer("central_critic.norm", "central.norm", central.norm)
        joined = given
        if central.private is not None:
            private = self._tower("central_critic.private", "central.private", central.private)
            joined += tuple(Block(f"private {block.name}", block.shape) for block in private)
        if central.others is not None:
            others = self._tower("central_critic.others", "central.others", central.others)
            num_sides = (central.layer.in_features - sum(block.size for block in joined)) // central.others.out_size
            for side in ("team", "rivals")[:num_sides]:
                joined += tuple(Block(f"{side} {block.name}", block.shape) for block in others)
        out = (Block("units of the central critic", (central.layer.out_features,)),)
        self._linear("central_critic.layer", "central.layer", joined, out)
        return out

    def _normalizer(self, name: str, role: str, norm: ObsNormalizer) -> None:
        for idx, (key, part) in enumerate(zip(norm.keys, norm.normalizers, strict=True)):
            at, own = f"{name}.normalizers.{idx}", f"{role}.{key}"
            self._moments(f"{at}.moments", own, self._obs[key])
            for buffer, _ in part.named_buffers(recurse=False):
                axes = (self._obs[key],) if buffer == "offset" else ()
                self._add(f"{at}.{buffer}", axes, role=f"{own}.{buffer}")

    def _moments(self, name: str, role: str, axis: Axis) -> None:
        for own, axes in (("mean", (axis,)), ("var", (axis,)), ("count", ())):
            self._add(f"{name}.{own}", axes, role=f"{role}.{own}")

    def _norm(self, name: str, role: str, axis: Axis) -> None:
        for own in ("weight", "bias"):
            self._add(f"{name}.{own}", (axis,), role=f"{role}.{own}")

    def _linear(self, name: str, role: str, given: Axis, out: Axis, identity_after: str | None = None) -> None:
        after = None if identity_after is None else f"{identity_after}.weight"
        self._add(f"{name}.weight", (out, given), role=f"{role}.weight", zero=(1,), fresh=(0,), identity_after=after)
        self._add(f"{name}.bias", (out,), role=f"{role}.bias")

    def _add(self, name: str, axes: tuple[Axis, ...], *, role: str | None = None, **rules: Any) -> None:
        self.specs[name] = TensorSpec(role or name, axes, **rules)


def _size_of_features(encoder: Convolutional | SymbolsEncoder, seen: Axis) -> tuple[int, int, int]:
    """Finds by a forward pass, with whatever weights, the height, width and channels of the convolutions."""
    copy = deepcopy(encoder).to_empty(device="cpu")
    found: list[Tensor] = []
    copy.convolutions.register_forward_hook(lambda module, given, out: found.append(out))
    with torch.no_grad():
        copy(torch.zeros(1, *seen[0].shape))
    _, channels, height, width = found[0].shape
    return height, width, channels
