/* What must end with MPI's error, and not hang: faults truncated | dies. Truncated, it ends with status
 * 4. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int n, rank, from[64] = {0}, to[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD);
    if (strcmp(argv[1], "dies") == 0) {
        if (rank == 1) abort();
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD);
    } else {
        /* Rank 0 sends twice what the others expect, and they have an error handler. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int count = rank == 0 ? 3 : 2, class = 0;
        int code = MPI_Alltoall(from, count, MPI_INT, to, count, MPI_INT, MPI_COMM_WORLD);
        if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
        MPI_Abort(MPI_COMM_WORLD, class == MPI_ERR_TRUNCATE ? 4 : 5);
    }
    MPI_Finalize();
    return 0;
}
