"""Exchanges from mpi4py, of arrays and of objects."""

from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
sent = array("i", [1000 * rank + i for i in range(2 * ranks)])
got = array("i", [-1] * 2 * ranks)
comm.Alltoall(sent, got)
assert list(got) == [1000 * (i // 2) + 2 * rank + i % 2 for i in range(2 * ranks)], got
comm.Allgather(sent[:2], got)
assert list(got) == [1000 * (i // 2) + i % 2 for i in range(2 * ranks)], got
lengths = [1 + i % 2 for i in range(ranks)]
starts = [sum(lengths[:i]) for i in range(ranks)]
comm.Allgatherv(sent[: lengths[rank]], (got, (lengths, starts)))
assert list(got)[: sum(lengths)] == [1000 * i + k for i in range(ranks) for k in range(lengths[i])], got
got[:] = sent
comm.Alltoall(MPI.IN_PLACE, got)
assert list(got) == [1000 * (i // 2) + 2 * rank + i % 2 for i in range(2 * ranks)], got
assert comm.alltoall([(rank, i) for i in range(ranks)]) == [(i, rank) for i in range(ranks)]
