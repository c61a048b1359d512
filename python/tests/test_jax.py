"""Exchanges in JAX are bit-equal to ``lax.all_to_all``, on CPU devices."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import topocoll as tc

jax = pytest.importorskip("jax")

#: Compares every choice on a machine with JAX's own exchange, in a process with that many devices.
CODE = """
import sys
import jax, numpy as np, topocoll as tc
from jax import lax, numpy as jnp
from jax.sharding import PartitionSpec as P

name, ports, op, every = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "every"
machine = tc.machine(name, ports)
ranks = machine.ranks
mesh = jax.make_mesh((ranks,), ("x",))
shape = ((ranks, ranks) if op == "alltoall" else (ranks,)) + (7, 3)
x = np.random.default_rng(1).integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)

def own(x):
    if op == "allgather":
        return lax.all_gather(x[0], "x")[None]
    return lax.all_to_all(x, "x", 1, 0).reshape(x.shape)

sharded = jax.device_put(x, jax.sharding.NamedSharding(mesh, P("x")))
wanted = np.asarray(jax.jit(jax.shard_map(own, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(sharded))
if op == "alltoall":
    assert np.array_equal(wanted.view(np.uint32), x.swapaxes(0, 1).view(np.uint32))
seen = set()
for choice in tc.select(machine, block=84, op=op):
    if every or choice.algorithm not in seen:
        seen.add(choice.algorithm)
        exchange = choice.schedule().to_jax(mesh)
        found = np.asarray(exchange(sharded))
        assert np.array_equal(found.view(np.uint32), wanted.view(np.uint32)), choice.named
print(len(seen), *sorted(seen))
"""


def run(code: str, devices: int, *arguments: str) -> str:
    """Run code with some CPU devices."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    said = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert said.returncode == 0, said.stderr[-3000:]
    return said.stdout


def test_one_algorithm_is_bit_equal_on_8_devices() -> None:
    code = """
import pickle, time
import jax, numpy as np, topocoll as tc

schedule = tc.select(tc.machine("torus:2x4", 2), block=24).best.schedule()
mesh = jax.make_mesh((8,), ("x",))
exchange = schedule.to_jax(mesh)
try:
    pickle.dumps(exchange)
except TypeError as error:
    assert "pickle its schedule, then call to_jax" in str(error)
else:
    raise AssertionError
x = np.arange(8 * 8 * 6, dtype=np.float32).reshape(8, 8, 2, 3)
assert np.array_equal(exchange(x), x.swapaxes(0, 1))
# Within another function, and compiled ahead.
assert np.array_equal(jax.jit(lambda x: exchange(2 * x))(x), 2 * x.swapaxes(0, 1))
assert exchange.compile_seconds is None
compiled = exchange.compile(x.shape, x.dtype)
assert exchange.compile_seconds > 0
assert np.array_equal(compiled(jax.device_put(x, exchange.sharding)), x.swapaxes(0, 1))
sent, padding = exchange.sent_bytes(x.shape, x.dtype)
assert sent - padding == schedule.messages["bytes"].sum() and padding >= 0
try:
    exchange(x[:4])
except tc.Error as error:
    assert "the array is (4, 8, 2, 3): its shape must begin with (8, 8)" in str(error)
else:
    raise AssertionError
# Steps with the same permutation are a loop.
ring = tc.schedule("full:8", "ring", op="allgather").to_jax(mesh)
assert ring.loops == 1 and ring.permutes == 7
y = np.arange(8 * 5, dtype=np.int8).reshape(8, 5)
assert np.array_equal(ring(y), np.broadcast_to(y, (8, 8, 5)))
"""
    run(code, 8)


#: Moves tokens along the matchings of a plan, and compares the result with what JAX documents of
#: ``lax.ragged_all_to_all``, and with that function itself on backends that have it.
RAGGED = """
import sys
import jax, numpy as np, topocoll as tc
from jax import lax, numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

def documented(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes):
    # Row i of each array is that of device i.
    assert np.array_equal(send_sizes, recv_sizes.T)
    result = np.array(output)
    for i, j in np.ndindex(send_sizes.shape):
        first, place, size = input_offsets[i, j], output_offsets[i, j], send_sizes[i, j]
        result[j, place : place + size] = operand[i, first : first + size]
    return result

# The example in its documentation.
found = documented(*map(np.array, (
    [[1, 2, 2], [3, 4, 0]], [[0] * 4] * 2, [[0, 1]] * 2, [[1, 2], [1, 1]], [[0, 0], [1, 2]], [[1, 1], [2, 1]]
)))
assert found.tolist() == [[1, 3, 0, 0], [2, 2, 4, 0]]

machine, ranks, hidden = tc.machine(sys.argv[1]), 8, 3
mesh = jax.make_mesh((ranks,), ("x",))

def exchanged(sizes, plan):
    shape = (ranks, max(sizes.sum(1).max(), 1), hidden)
    operand = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    output = np.full((ranks, max(sizes.sum(0).max(), 1) + 2, hidden), -1, np.float32)
    inputs, outputs = np.cumsum(sizes, 1) - sizes, np.cumsum(sizes, 0) - sizes
    own = np.arange(ranks)
    # A rank's own tokens, then matching by matching: the receiver of each rank, and -1 for none.
    matchings = [own, *np.asarray(plan.to)]

    def moved(operand, output):
        operand, output, rank = operand[0], output[0], lax.axis_index("x")
        for to in matchings:
            pairs = [(r, int(to[r])) for r in own if to[r] >= 0]
            # By rank the first token sent, where received ones go, and their number.
            first, place, size = np.zeros((3, ranks), int)
            for r, receiver in pairs:
                first[r], place[receiver] = inputs[r, receiver], outputs[r, receiver]
                size[receiver] = sizes[r, receiver]
            row = jnp.arange(max(size.max(), 1))
            rows = operand.at[jnp.asarray(first)[rank] + row].get(mode="clip")
            rows = lax.ppermute(rows, "x", pairs)
            places = jnp.where(row < jnp.asarray(size)[rank], jnp.asarray(place)[rank] + row, len(output))
            output = output.at[places].set(rows, mode="drop")
        return output[None]

    put = lambda x: jax.device_put(np.asarray(x), NamedSharding(mesh, P("x")))
    run = jax.jit(jax.shard_map(moved, mesh=mesh, in_specs=(P("x"),) * 2, out_specs=P("x")))
    found = np.asarray(run(put(operand), put(output)))
    lists = [x.astype(np.int32) for x in (inputs, sizes, outputs, sizes.T)]
    assert np.array_equal(found, documented(operand, output, *lists))
    own_exchange = jax.shard_map(
        lambda *x: lax.ragged_all_to_all(*(one[0] for one in x), axis_name="x")[None],
        mesh=mesh, in_specs=(P("x"),) * 6, out_specs=P("x"),
    )
    try:
        wanted = np.asarray(jax.jit(own_exchange)(*map(put, (operand, output, *lists))))
    except jax.errors.JaxRuntimeError as error:
        assert "UNIMPLEMENTED" in str(error), error
        return
    assert np.array_equal(found, wanted)

random = np.random.default_rng(1)
drawn, hot = random.integers(0, 9, (2, ranks, ranks))
hot[:, 5] = 20
for sizes in [drawn, hot, drawn * np.eye(ranks, dtype=int)]:
    exchanged(sizes, tc.plan(sizes * hidden * 4, machine))
"""


@pytest.mark.parametrize("name", ["full:8", "cluster:4,4"])
def test_a_plan_does_what_ragged_all_to_all_does(name: str) -> None:
    run(RAGGED, 8, name)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "ports", "op", "which"),
    [
        ("torus:2x4", 1, "alltoall", "every"),
        ("torus:2x4", 4, "alltoall", "every"),
        ("full:8", 3, "alltoall", "every"),
        ("cluster:4,4", 4, "alltoall", "every"),
        ("hypercube:3", 1, "alltoall", "every"),
        ("torus:8", 2, "allgather", "every"),
        ("full:8", 2, "allgather", "every"),
        ("torus:4x4", 4, "alltoall", "first"),
        ("full:16", 1, "alltoall", "first"),
        ("cluster:4,4,4,4", 4, "alltoall", "first"),
        ("torus:4x4", 4, "allgather", "first"),
        ("torus:8x8", 4, "alltoall", "first"),
        ("torus:4x4x4", 6, "alltoall", "first"),
        ("full:64", 1, "alltoall", "first"),
    ],
)
def test_every_algorithm_is_bit_equal(name: str, ports: int, op: str, which: str) -> None:
    ranks = tc.machine(name).ranks
    assert int(run(CODE, ranks, name, str(ports), op, which).split()[0]) >= 2


def test_a_mesh_of_other_devices_is_refused() -> None:
    mesh: Any = jax.make_mesh((1,), ("x",))
    with pytest.raises(tc.Error, match="it must have one axis of 4 devices, one for each rank"):
        tc.schedule("full:4", "direct").to_jax(mesh)


@pytest.mark.parametrize("name", ["torus:4x4", "full:9", "cluster:4,4,2"])
def test_permutations_are_those_of_the_messages(name: str) -> None:
    for choice in tc.select(tc.machine(name, 4), block=60):
        schedule = choice.schedule()
        messages, permutations = schedule.messages, schedule.to_ppermute()
        steps = np.unique(messages["step"])
        assert len(permutations) == len(steps)
        for step, groups in zip(steps, permutations, strict=True):
            own = messages[messages["step"] == step]
            pairs = sorted(pair for group in groups for pair in group)
            assert pairs == sorted(zip(own["from"].tolist(), own["to"].tolist(), strict=True))
            most = max(np.bincount(own["from"]).max(), np.bincount(own["to"]).max())
            assert len(groups) == most
            for group in groups:
                assert len({a for a, _ in group}) == len({b for _, b in group}) == len(group)
