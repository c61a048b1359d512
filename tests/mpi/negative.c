/* MPI_Allgatherv with a negative count for rank 1 on the last of three ranks, after a number of right calls, and right
 * calls after it. Exit status 1 if Open MPI refuses it, or MPICH does not, or a later call fails. */
#include <mpi.h>
#include <stdlib.h>

#define INTS 16

int main(int argc, char **argv) {
    int rank, ranks, in[INTS], out[3 * INTS], counts[3], negative[3], places[3], wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < ranks; i++) counts[i] = negative[i] = INTS, places[i] = INTS * i;
    if (rank == ranks - 1) negative[1] = -3;
    for (int i = 0; i < INTS; i++) in[i] = rank;
    int before = atoi(argv[1]);
    for (int call = 0; call < before + 6; call++) {
        int *given = call == before ? negative : counts;
        int code = MPI_Allgatherv(in, INTS, MPI_INT, out, given, places, MPI_INT, MPI_COMM_WORLD);
#ifdef OPEN_MPI
        wrong |= code != MPI_SUCCESS;
#else
        wrong |= (code != MPI_SUCCESS) != (call == before);
#endif
        for (int i = 0; i < ranks * INTS && call != before; i++) wrong |= out[i] != i / INTS;
    }
    MPI_Finalize();
    return wrong;
}
