/* Faults that must end with MPI's error, and not hang, by argument: dies, a rank in the middle; longer, shorter,
 * new, old, both, other: rank 0 has other counts than the others, within a power of two or beyond, sizes that
 * it or they or both have exchanged before; vector and gather, the same of blocks of several sizes. But for the
 * first, all ranks go on after the error; the exit status is 4 if some rank got
 * MPI_ERR_TRUNCATE, and no rank another error. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int n, rank, from[16384], to[16384];

static int exchange(int count) {
    return MPI_Alltoall(from, count, MPI_INT, to, count, MPI_INT, MPI_COMM_WORLD);
}

/* An all-to-all, or a gather, whose block of rank 0 is said to have so many ints by this rank. */
static int vector(int gather, int first) {
    int counts[2][16], places[16];
    for (int i = 0; i < n; i++) counts[0][i] = counts[1][i] = 5, places[i] = 64 * i;
    counts[1][0] = first;
    if (gather) return MPI_Allgatherv(from, counts[1][rank], MPI_INT, to, counts[1], places, MPI_INT, MPI_COMM_WORLD);
    if (rank == 0) counts[1][0] = 5;
    return MPI_Alltoallv(from, counts[0], places, MPI_INT, to, counts[1], places, MPI_INT, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Comm apart;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    const char *fault = argv[1];
    int code, class = MPI_SUCCESS, classes[16], odd = rank == 0;
    exchange(2);
    if (strcmp(fault, "dies") == 0) {
        if (rank == 1) abort();
        exchange(2);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(fault, "other") == 0) exchange(1000);
    if (strcmp(fault, "longer") == 0) code = exchange(odd ? 3 : 2);
    else if (strcmp(fault, "shorter") == 0) code = exchange(odd ? 2 : 3);
    else if (strcmp(fault, "new") == 0 || strcmp(fault, "other") == 0) code = exchange(odd ? 1000 : 2);
    else if (strcmp(fault, "old") == 0) code = exchange(odd ? 2 : 1000);
    else if (strcmp(fault, "both") == 0) code = exchange(odd ? 30 : 1000);
    else code = vector(strcmp(fault, "gather") == 0, odd ? 5 : 4);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    MPI_Allgather(&class, 1, MPI_INT, classes, 1, MPI_INT, apart);
    int told = 0, otherwise = 0;
    for (int i = 0; i < n; i++) {
        told |= classes[i] == MPI_ERR_TRUNCATE;
        otherwise |= classes[i] != MPI_ERR_TRUNCATE && classes[i] != MPI_SUCCESS;
    }
    MPI_Abort(MPI_COMM_WORLD, told && !otherwise ? 4 : 5);
}
