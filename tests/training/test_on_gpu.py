"""On a real GPU, where there is one: what `sf.system.gpu` promises, and that the numbers are what they are on CPU."""

import gc
import multiprocessing

import gymnasium as gym
import numpy as np
import pytest
import torch
from deciding import Deciding, vectors
from runs import train

from sf.config import ModelConfig
from sf.envs import ActionSpec
from sf.model.acting import Acting
from sf.model.inference import inference_model
from sf.shared.weights import SharedWeights, SharedWeightsSpec
from sf.system import gpu
from sf.system.arrays import Field, SharedArrays
from sf.system.processes.torch_runtime import configure

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
    pytest.mark.timeout(300),
]

DEVICE = "cuda:0"
NUM_WEIGHTS = 1_000_000


def read_weights(spec, learner, versions):
    """In another process: what a policy worker reads, until it has read the last version."""
    gpu.take(DEVICE)
    memory = SharedWeights.attach(spec, learner)
    out = torch.empty(NUM_WEIGHTS + 1, device=DEVICE)
    version = 0
    while version < 1_000:
        version = memory.read(out)
        versions.send((version, float(out[:-1].min()), float(out[:-1].max())))


def test_another_process_reads_what_was_published_and_nothing_mixed():
    gpu.take(DEVICE)
    spec = SharedWeightsSpec.allocate(DEVICE, NUM_WEIGHTS)
    memory = SharedWeights.create(spec)
    memory.publish(torch.ones(NUM_WEIGHTS, device=DEVICE), 1)
    memory.flush()
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe()
    versions, sends = context.Pipe(duplex=False)
    reader = context.Process(target=read_weights, args=(spec, ours, sends))
    reader.start()
    memory.share(theirs)
    sends.close()
    read = [versions.recv()]
    for version in range(2, 1_001):
        memory.publish(torch.full((NUM_WEIGHTS,), float(version), device=DEVICE), version)
        while versions.poll():
            read.append(versions.recv())
    memory.flush()
    while read[-1][0] < 1_000:
        read.append(versions.recv())
    reader.join()
    assert reader.exitcode == 0
    assert all(low == version == high for version, low, high in read)


def test_copies_beside_the_work_have_come_after_their_event():
    gpu.take(DEVICE)
    stream = gpu.CopyStream(DEVICE)
    host = gpu.page_locked((4_000_000,), torch.float32, DEVICE)
    there = torch.zeros(4_000_000, device=DEVICE)
    back = gpu.page_locked((4_000_000,), torch.float32, DEVICE)
    for number in range(20):
        host.fill_(float(number))
        sent = stream.copy([(there, host)], after=gpu.now(DEVICE))
        sent.hold_back()
        gpu.copy(back, there + 1, DEVICE).wait()
        assert (back == number + 1).all()


@pytest.mark.parametrize("core", ["none", "gru", "lstm", "mingru", "transformer"])
def test_a_float32_network_gives_what_it_gives_on_cpu(core):
    configure(DEVICE, num_threads=1, deterministic=False)
    space = gym.spaces.Dict({"obs": gym.spaces.Box(0, 255, (72, 128, 3), np.uint8)})
    spec = ActionSpec.of(gym.spaces.Discrete(5))
    torch.manual_seed(0)
    model = inference_model(ModelConfig(core=core), space, spec, "float32", "cpu").double()
    obs = {"obs": torch.randint(0, 256, (64, 72, 128, 3), dtype=torch.uint8)}
    first = torch.zeros(64, dtype=torch.bool)
    state = torch.randn(64, model.state_size)
    expected = model.step(obs, state.double(), first)
    there = model.float().to(DEVICE)
    found = there.step({"obs": obs["obs"].to(DEVICE)}, state.to(DEVICE), first.to(DEVICE))
    for name in ("params", "value", "state"):
        torch.testing.assert_close(getattr(found, name).cpu().double(), getattr(expected, name), rtol=1e-4, atol=1e-5)


def test_a_kernel_reads_shared_memory_of_the_host_as_it_is_when_it_runs():
    gpu.take(DEVICE)
    arrays = SharedArrays([Field("before", (5,), np.uint8), Field("rows", (1_000, 27_648), np.uint8)])
    rows = gpu.mapped(arrays["rows"], DEVICE)
    assert rows.is_cuda
    for seed in range(3):
        arrays["rows"][:] = np.random.default_rng(seed).integers(0, 256, (1_000, 27_648), np.uint8)
        index = torch.randint(0, 1_000, (64,))
        found = rows.view(torch.int64).index_select(0, index.to(DEVICE)).view(torch.uint8)
        np.testing.assert_array_equal(found.cpu().numpy(), arrays["rows"][index.numpy()])


@pytest.mark.parametrize("core", ["none", "gru"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_recorded_policy_sees_images_where_they_are_and_acts_as_the_network_does(core, precision, said):
    configure(DEVICE, num_threads=1, deterministic=False)
    obs_space = gym.spaces.Dict({"obs": gym.spaces.Box(0, 255, (72, 128, 3), np.uint8)})
    action_space = gym.spaces.Tuple((gym.spaces.Discrete(5), gym.spaces.Box(-1, 1, (2,))))
    deciding = Deciding(obs_space, action_space, ModelConfig(core=core), DEVICE, precision).record()
    for seed, num in enumerate((1, 5, 8, 30, 3, 30)):
        deciding.assert_right(num, seed)
        with torch.inference_mode():
            for weight in deciding.network.parameters():
                weight.add_(0.01 * torch.randn_like(weight))
    assert not said
    assert set(deciding.decisions._queue._recorded) == {8, 32}


def wait_by_a_copy(number):
    return number + float(number.sum())


def wait_for_all(number):
    torch.cuda.synchronize()
    return number + 1


def draw_and_wait_for_all(number):
    torch.rand_like(number)
    return wait_for_all(number)


def run_out_of_memory(number):
    if torch.cuda.is_current_stream_capturing():
        raise torch.OutOfMemoryError("CUDA out of memory")
    return number + 1


@pytest.mark.parametrize("function", [wait_by_a_copy, wait_for_all, draw_and_wait_for_all, run_out_of_memory])
def test_after_a_recording_that_fails_all_goes_on(function):
    gpu.take(DEVICE)
    gc.collect()  # recordings of other tests hold tensors that were made in inference mode
    number, generator = torch.ones(1_000, device=DEVICE), torch.Generator(DEVICE)
    earlier = gpu.Recording(lambda: number.clone().exponential_(generator=generator), generator)
    generator.manual_seed(7)
    expected = earlier.replay().clone()
    with pytest.raises(RuntimeError, match=r"in the middle|captur|memory"):
        gpu.Recording(lambda: function(number).exponential_(generator=generator), generator)
    generator.manual_seed(7)
    torch.testing.assert_close(earlier.replay(), expected)  # it still draws by the generator
    torch.rand(4, device=DEVICE)  # PyTorch's own still draws
    reserved = torch.cuda.memory_reserved()
    large = torch.empty(200_000_000, device=DEVICE)
    del large
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= reserved  # it is given back
    later = gpu.Recording(lambda: number.clone().exponential_(generator=generator), generator)
    drawn = [later.replay().clone() for _ in range(2)]
    assert not torch.equal(*drawn)


class Waiting(Acting):
    def forward(self, *inputs):
        answers, state = super().forward(*inputs)
        return (answers, state) if float(state.sum()) < 1e9 else (answers, -state)


def test_a_policy_that_waits_for_the_gpu_acts_without_a_recording(said):
    configure(DEVICE, num_threads=1, deterministic=False)
    deciding = Deciding(*vectors(), DEVICE, kind=Waiting).record()
    for seed in range(3):
        deciding.assert_right(20, seed)
    (sentence,) = said
    assert "it waits for the GPU in the middle" in sentence


@pytest.mark.parametrize("flags", [(), ("--core", "lstm"), ("--async_rl", "false")], ids=["async", "lstm", "sync"])
def test_a_run_trains(flags, tmp_path):
    assert "frames" in train(tmp_path, "--device", "cuda", "--train_for_env_steps", "20000", *flags)
