"""A policy after surgery: its network, and the checkpoint that goes on from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sf.config import Config, ModelConfig
from sf.envs.errors import UsageError
from sf.envs.spaces import space_json
from sf.evaluation.play.named_checkpoint import config_of
from sf.model.layers import left_for_later
from sf.model.normalizers import MISSED, RunningMoments
from sf.storage.checkpoint import MODEL, OPTIMIZER, Checkpoint
from sf.surgery import outputs
from sf.surgery.comparison import Pair, difference
from sf.surgery.operation import Operation
from sf.surgery.recent import play
from sf.surgery.subject import Saved, Subject

_OF_THE_SCALE = {"exp_avg": 1, "exp_avg_sq": 2}  # powers of it that are in a moment
_MEAN = "mean"


class Request(NamedTuple):
    """What a policy is to become.

    config: of the run that goes on, with all that is decided. new_choice_probability: of all new choices of a head
    together; 0: they are never taken. is_inexact: whether the function may change.
    """

    subject: Subject
    config: Config
    policy_id: int = 0
    new_choice_probability: float = 0.01
    is_inexact: bool = False


class Operated:
    """A policy after surgery. operation: what becomes of each tensor. difference: of what both networks compute.
    loss: by what is removed; None if nothing is, or the environment is not there to tell."""

    def __init__(self, saved: Saved, name: str, request: Request) -> None:
        """name: of the checkpoint. Raises UsageError for what cannot be done."""
        self._saved, self._request = saved, request
        self._old_config = config_of(Checkpoint({}, saved.state), name)
        old, new = Subject.of_saved(saved, name, request.subject), request.subject
        require_can_go_on(self._old_config, request.config)
        require_can_be_exact(old.model, new.model)
        self.operation = Operation(old.body, new.body)
        pair = self._operate(old, name)
        self.difference = difference(pair)
        self.loss: outputs.Loss | None = None
        self._finish(pair, name)
        self._network = pair.new_network  # the old one is not needed any more, and may be large

    @torch.no_grad()
    def _operate(self, old: Subject, name: str) -> Pair:
        """Makes the network."""
        weights = {
            key: self._saved.tensors[MODEL + key] for key in old.body.shapes if MODEL + key in self._saved.tensors
        }
        try:
            old_network = old.loaded(weights)
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"{name} has weights that do not fit its configuration ({reason})") from None
        new_network = self._untrained()
        pair = Pair(old, old_network, self._request.subject, new_network)
        for key, fresh in new_network.state_dict().items():
            source = self.operation.sources[key]
            self.operation.write_weight(key, None if source is None else weights[source], fresh)
        self._keep_counts(pair)
        self._rescaled = outputs.rescale_values(pair)
        return pair

    def _untrained(self) -> Any:
        """Makes a network with fresh numbers where there are no others, as large orthogonal weights take minutes."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._request.config.run.seed + self._request.policy_id)
            with left_for_later() as waiting:
                network = self._request.subject.build("cpu").requires_grad_(False)
            names = {_memory_of(weight): name for name, weight in network.named_parameters()}
            for weight, gain in waiting:
                name = names[_memory_of(weight)]
                if self.operation.sources[name] is None:
                    weight.copy_(nn.init.orthogonal_(torch.empty(weight.shape), gain))  # it may be in channels_last
                elif self.operation.needs_fresh(name):  # as large as orthogonal numbers would be
                    nn.init.normal_(weight, std=gain / math.sqrt(max(len(weight), weight[0].numel())))
        return network

    def _keep_counts(self, pair: Pair) -> None:
        """Entries of statistics that are new have samples of their own."""
        for name, module in pair.new_network.named_modules():
            source = self.operation.sources.get(f"{name}.{_MEAN}")
            if isinstance(module, RunningMoments) and source is not None:
                before = self._saved.tensors.get(f"{MODEL}{source.removesuffix(_MEAN)}{MISSED}")
                module.missed = self.operation.missed(f"{name}.{_MEAN}", module.count, before)

    def _finish(self, pair: Pair, name: str) -> None:
        """Checks that nothing is lost that may not be, and gives new choices their probability."""
        request, operation = self._request, self.operation
        is_exact = not operation.removed and self.difference.is_rounding
        if not is_exact and not request.is_inexact:
            raise UsageError(self._why_inexact(pair, name))
        has_new_choices = bool(outputs.new_choices(pair.old, pair.new))
        if not request.new_choice_probability:
            outputs.never_take_new_choices(pair)
            return
        if is_exact and not has_new_choices:
            return
        recent = play(pair, self._old_config, request.config, request.policy_id)
        if has_new_choices:
            if recent is None:
                raise UsageError(
                    f"neither the environment of {name} nor the new one shows all that its policy sees, so how "
                    "probable new choices are cannot be known: add them first, and remove observations afterwards"
                )
            outputs.set_new_choices(pair, recent, request.new_choice_probability)
        if not is_exact and recent is not None:
            self.loss = outputs.loss(pair, recent)

    def _why_inexact(self, pair: Pair, name: str) -> str:
        remedy = "leave that as it was, or add --inexact true to go on with what is left"
        removed, (policy, value) = self.operation.removed, self.difference
        if removed:
            lost = ", ".join(f"{change.source} {change.kind}" for change in removed[:3])
            return f"surgery on {name} removes something ({lost}): {remedy}"
        before, after = vars(pair.old.model), vars(pair.new.model)
        changed = [flag for flag in after if after[flag] != before[flag]] or ["the size of padded images or boards"]
        return (
            f"after surgery on {name} the network would compute something else, by {', '.join(changed)} (logits or "
            f"means differ by {policy:.2g}, values by {value:.2g}): {remedy}"
        )

    @property
    def has_new_weights(self) -> bool:
        """Returns whether the optimiser has moments, and lacks those of some weights."""
        trained = dict(self._network.named_parameters())
        is_new = any(
            change.kind in ("grown", "new", "cut") for change in self.operation.changes if change.name in trained
        )
        return is_new and any(name.startswith(OPTIMIZER) for name in self._saved.tensors)

    def tensors(self) -> dict[str, tuple[Tensor, Callable[[], Tensor]]]:
        """Returns the tensors of the checkpoint by name: one of the same shape and dtype, and what makes it."""
        state_dict = self._network.state_dict()
        found: dict[str, tuple[Tensor, Callable[[], Tensor]]] = {
            MODEL + name: (tensor, partial(_itself, tensor)) for name, tensor in state_dict.items()
        }
        moments: dict[str, list[str]] = {}
        for name in self._saved.tensors:
            if name.startswith(OPTIMIZER):
                weight, _, key = name.removeprefix(OPTIMIZER).rpartition("/")
                moments.setdefault(weight, []).append(key)
            elif not name.startswith(MODEL):
                found[name] = (self._saved.tensors[name], partial(self._saved.tensors.__getitem__, name))
        for name, _ in self._network.named_parameters():
            source = self.operation.sources[name]
            for key in moments.get(source or "", ()):
                shape = () if key == "step" else state_dict[name].shape
                found[f"{OPTIMIZER}{name}/{key}"] = (
                    torch.empty(shape, device="meta"),
                    partial(self._moment, name, f"{OPTIMIZER}{source}/{key}"),
                )
        return found

    def state(self) -> dict[str, Any]:
        """Returns the numbers beside them."""
        request, before = self._request, self._saved.state
        state = {
            **before,
            "config": request.config.flat(),
            "obs_space": space_json.to_json(request.subject.native),
            "action_space": space_json.to_json(request.subject.action_space),
        }
        if "updater" in before and self.has_new_weights:
            state["updater"] = {**before["updater"], "steps_since_surgery": 0}
        return state

    def checkpoint(self) -> Checkpoint:
        """Returns all of it, in memory."""
        return Checkpoint({name: make() for name, (_, make) in self.tensors().items()}, self.state())

    def _moment(self, name: str, moment: str) -> Tensor:
        made = self.operation.moment(name, self._saved.tensors[moment])
        power = _OF_THE_SCALE.get(moment.rpartition("/")[2])
        if self._rescaled is not None and power is not None and name.startswith(f"{self._rescaled[0]}."):
            made = made * self._rescaled[1] ** power
        return made


def require_can_be_exact(old: ModelConfig, new: ModelConfig) -> None:
    """Raises UsageError for flags that leave no way to keep the function, where others would."""
    for name in ("encoder_mlp", "encoder_conv_mlp"):
        before, after = (getattr(model, f"{name}_layers") for model in (old, new))
        residual = getattr(new, f"{name}_residual") - getattr(old, f"{name}_residual")
        num_added = len(after) - len(before)
        if before and num_added > 0 and residual < num_added and (new.nonlinearity != "relu" or new.layer_norm):
            raise UsageError(
                f"{name}_layers has {num_added} more than before, and behind {new.nonlinearity} no plain layer is an "
                f"identity: add them as residual blocks, with --{name}_residual "
                f"{getattr(old, f'{name}_residual') + num_added}"
            )
    if new.core != "none" and old.core == "none" and not new.core_skip:
        raise UsageError(
            f"core is {new.core}, and was none: heads that read a new core alone would forget everything, so add "
            "--core_skip true"
        )
    for name in ("rnn_size", "core_layers", "core_heads", "attention_window"):
        before, after = getattr(old, name), getattr(new, name)
        if old.core == new.core == "transformer" and before != after:
            raise UsageError(
                f"{name} is {after}, and was {before}: a transformer of another size would compute something else, so "
                f"leave {name} as it was"
            )
    if new.critic_clock is True and old.critic_clock is not True and not new.critic_clock_residual:
        raise UsageError(
            "critic_clock is true, and was false: add --critic_clock_residual true, so that values stay what they are, "
            "or --critic_clock false"
        )


def require_can_go_on(old: Config, new: Config) -> None:
    """Raises UsageError where moments of one optimiser would be those of another."""
    if old.learner.optimizer != new.learner.optimizer:
        raise UsageError(
            f"optimizer is {new.learner.optimizer}, and was {old.learner.optimizer}, whose moments the other cannot "
            f"use: keep {old.learner.optimizer}"
        )


def _memory_of(weight: Tensor) -> int:
    return weight.untyped_storage().data_ptr()


def _itself(tensor: Tensor) -> Tensor:
    return tensor
