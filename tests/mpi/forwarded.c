/* Calls that the drop-in forwards, beside its own: non-blocking, and persistent where MPI has them. Does
 * not use topocoll. Exit status 1 if an element is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int n, rank, errors = 0;

static void check(const char *what, const int *to, int gathers) {
    for (int i = 0; i < n; i++)
        if (to[i] != 1000 * i + (gathers ? 0 : rank) && errors++ < 5)
            printf("rank %d: %s: %d from %d\n", rank, what, to[i], i);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int *from = malloc(n * sizeof(int)), *ones = malloc(n * sizeof(int)), *places = malloc(n * sizeof(int));
    int *to[8], *bytes = malloc(n * sizeof(int));
    MPI_Datatype *types = malloc(n * sizeof(MPI_Datatype));
    for (int i = 0; i < 8; i++) to[i] = calloc(n, sizeof(int));
    for (int i = 0; i < n; i++) from[i] = 1000 * rank + i, ones[i] = 1, places[i] = i, bytes[i] = i * sizeof(int), types[i] = MPI_INT;
    MPI_Comm comm = MPI_COMM_WORLD;
    for (int round = 0; round < 3; round++) {
        MPI_Request open[4];
        MPI_Ialltoall(from, 1, MPI_INT, to[0], 1, MPI_INT, comm, &open[0]);
        MPI_Iallgather(from, 1, MPI_INT, to[1], 1, MPI_INT, comm, &open[1]);
        /* Blocking calls of ours while others are under way. */
        MPI_Alltoall(from, 1, MPI_INT, to[2], 1, MPI_INT, comm);
        MPI_Ialltoallv(from, ones, places, MPI_INT, to[3], ones, places, MPI_INT, comm, &open[2]);
        MPI_Allgather(from, 1, MPI_INT, to[4], 1, MPI_INT, comm);
        MPI_Iallgatherv(from, 1, MPI_INT, to[5], ones, places, MPI_INT, comm, &open[3]);
        MPI_Allgatherv(from, 1, MPI_INT, to[6], ones, places, MPI_INT, comm);
        MPI_Status statuses[4];
        MPI_Waitall(4, open, statuses);
        check("Ialltoall", to[0], 0), check("Iallgather", to[1], 1), check("Alltoall", to[2], 0);
        check("Ialltoallv", to[3], 0), check("Allgather", to[4], 1), check("Iallgatherv", to[5], 1);
        check("Allgatherv", to[6], 1);
        MPI_Alltoallw(from, ones, bytes, types, to[7], ones, bytes, types, comm);
        check("Alltoallw", to[7], 0);
    }
#if MPI_VERSION >= 4
    /* MPICH 4.0.2's MPI_Allgather_init moves nothing, with or without another library before it. */
    MPI_Request kept;
    MPI_Status status;
    MPI_Alltoall_init(from, 1, MPI_INT, to[0], 1, MPI_INT, comm, MPI_INFO_NULL, &kept);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++) to[0][i] = -1;
        MPI_Start(&kept);
        MPI_Alltoall(from, 1, MPI_INT, to[2], 1, MPI_INT, comm);
        MPI_Wait(&kept, &status);
        check("Alltoall_init", to[0], 0), check("Alltoall", to[2], 0);
    }
    MPI_Request_free(&kept);
#endif
    int sum;
    MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Finalize();
    return sum != 0;
}
