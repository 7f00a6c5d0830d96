"""Where the indices of an axis were before."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sf.envs.errors import UsageError
from sf.surgery.axes import NEW, Block, places

SHAPES = st.lists(st.integers(0, 4), min_size=2, max_size=2).map(tuple)
AXES = st.dictionaries(st.sampled_from("abcd"), SHAPES, max_size=4).flatmap(
    lambda blocks: st.permutations([Block(name, shape) for name, shape in blocks.items()]).map(tuple)
)


def labels(axis):
    """What each index stands for, one by one."""
    return [(name, *idx) for name, shape in axis for idx in itertools.product(*map(range, shape))]


@given(AXES, AXES)
def test_an_index_was_where_the_same_entry_of_the_same_block_was(new, old):
    before = {label: idx for idx, label in enumerate(labels(old))}
    assert places(new, old).tolist() == [before.get(label, NEW) for label in labels(new)]


def test_blocks_of_another_rank_are_refused_by_name():
    with pytest.raises(UsageError, match="observation map"):
        places((Block("observation map", (3, 4)),), (Block("observation map", (12,)),))


def test_no_axis_has_no_indices():
    assert places((), ()).dtype == torch.int64
