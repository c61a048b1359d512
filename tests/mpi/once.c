/* One exchange, to be counted, or TIMES: once alltoall|allgather BYTES [SIDE SIDE ...]; with sides, on a
 * Cartesian communicator that wraps. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n, bytes = atoi(argv[2]), sides[8], wraps[8];
    for (int i = 3; i < argc; i++) sides[i - 3] = atoi(argv[i]), wraps[i - 3] = 1;
    MPI_Comm comm = MPI_COMM_WORLD;
    if (argc > 3) MPI_Cart_create(MPI_COMM_WORLD, argc - 3, sides, wraps, 0, &comm);
    MPI_Comm_size(comm, &n);
    char *from = calloc(n, bytes), *to = calloc(n, bytes);
    for (int times = getenv("TIMES") ? atoi(getenv("TIMES")) : 1; times > 0; times--)
        if (strcmp(argv[1], "alltoall") == 0)
            MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
        else
            MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
    free(from);
    free(to);
    if (argc > 3) MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
