! Exchanges from Fortran by MODULE, mpi or mpi_f08, in place and not, every element checked.
program exchange
  use MODULE
  implicit none
  integer :: code, ranks, rank, i, wrong, all_wrong
  integer, allocatable :: from(:), to(:)
  call MPI_Init(code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  allocate (from(2 * ranks), to(2 * ranks))
  wrong = 0
  from = [(1000 * rank + i, i = 0, 2 * ranks - 1)]
  call MPI_Alltoall(from, 2, MPI_INTEGER, to, 2, MPI_INTEGER, MPI_COMM_WORLD, code)
  wrong = wrong + count(to /= [(1000 * (i / 2) + 2 * rank + mod(i, 2), i = 0, 2 * ranks - 1)])
  to = from
  call MPI_Alltoall(MPI_IN_PLACE, 2, MPI_INTEGER, to, 2, MPI_INTEGER, MPI_COMM_WORLD, code)
  wrong = wrong + count(to /= [(1000 * (i / 2) + 2 * rank + mod(i, 2), i = 0, 2 * ranks - 1)])
  call MPI_Allgather(from, 2, MPI_INTEGER, to, 2, MPI_INTEGER, MPI_COMM_WORLD, code)
  wrong = wrong + count(to /= [(1000 * (i / 2) + mod(i, 2), i = 0, 2 * ranks - 1)])
  to = -1
  to(2 * rank + 1:2 * rank + 2) = from(1:2)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, to, 2, MPI_INTEGER, MPI_COMM_WORLD, code)
  wrong = wrong + count(to /= [(1000 * (i / 2) + mod(i, 2), i = 0, 2 * ranks - 1)])
  to = -1
  call MPI_Alltoallv(from, [(1, i = 1, ranks)], [(2 * i, i = 0, ranks - 1)], MPI_INTEGER, &
                     to, [(1, i = 1, ranks)], [(ranks - i, i = 1, ranks)], MPI_INTEGER, MPI_COMM_WORLD, code)
  wrong = wrong + count(to(:ranks) /= [(1000 * (ranks - i) + 2 * rank, i = 1, ranks)])
  to = -1
  call MPI_Allgatherv(from, 1, MPI_INTEGER, to, [(1, i = 1, ranks)], [(ranks - i, i = 1, ranks)], &
                      MPI_INTEGER, MPI_COMM_WORLD, code)
  wrong = wrong + count(to(:ranks) /= [(1000 * (ranks - i), i = 1, ranks)])
  to(ranks - rank) = from(2)
  call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INTEGER, to, [(1, i = 1, ranks)], [(ranks - i, i = 1, ranks)], &
                      MPI_INTEGER, MPI_COMM_WORLD, code)
  wrong = wrong + count(to(:ranks) /= [(1000 * (ranks - i) + 1, i = 1, ranks)])
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  call MPI_Finalize(code)
  if (all_wrong /= 0) stop 1
end program
