/* TIMES: a duplicate of the world, its halves, and a duplicate of a half; all-to-alls and all-gathers on each, every
 * element compared, and all are freed, in changing order. Does not use topocoll. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int errors;

static void exchange(MPI_Comm comm, int time) {
    int n, rank, from[16], to[16];
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < n; i++) from[i] = 100 * rank + i + time;
    MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
    for (int i = 0; i < n; i++) errors += to[i] != 100 * i + rank + time;
    MPI_Allgather(from, 1, MPI_INT, to, 1, MPI_INT, comm);
    for (int i = 0; i < n; i++) errors += to[i] != 100 * i + time;
}

int main(int argc, char **argv) {
    int times = atoi(argv[argc - 1]), rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int time = 0; time < times; time++) {
        MPI_Comm comms[3];
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
        MPI_Comm_split(comms[0], rank % 2, time % 3 ? rank : -rank, &comms[1]);
        MPI_Comm_dup(comms[1], &comms[2]);
        for (int i = 0; i < 3; i++) exchange(comms[i], time);
        for (int i = 0; i < 3; i++) MPI_Comm_free(&comms[(i + time) % 3]);
    }
    MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum != 0;
}
