/* One exchange, to be counted, or TIMES: once alltoall|allgather|alltoallv|allgatherv BYTES [SIDE SIDE ...]; with
 * sides, on a Cartesian communicator that wraps. Blocks of several sizes have BYTES, or one less. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n, rank, bytes = atoi(argv[2]), sides[8], wraps[8], counts[64], places[64];
    const char *operation = argv[1];
    for (int i = 3; i < argc; i++) sides[i - 3] = atoi(argv[i]), wraps[i - 3] = 1;
    MPI_Comm comm = MPI_COMM_WORLD;
    if (argc > 3) MPI_Cart_create(MPI_COMM_WORLD, argc - 3, sides, wraps, 0, &comm);
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &rank);
    int pairs = strcmp(operation, "alltoallv") == 0, several = pairs || strcmp(operation, "allgatherv") == 0;
    for (int i = 0; several && i < n; i++) counts[i] = bytes - (pairs ? rank + i : i) % 2, places[i] = i * bytes;
    char *from = calloc(n, bytes), *to = calloc(n, bytes);
    for (int times = getenv("TIMES") ? atoi(getenv("TIMES")) : 1; times > 0; times--)
        if (strcmp(operation, "alltoall") == 0)
            MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
        else if (pairs)
            MPI_Alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, comm);
        else if (several)
            MPI_Allgatherv(from, counts[rank], MPI_BYTE, to, counts, places, MPI_BYTE, comm);
        else
            MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
    free(from);
    free(to);
    if (argc > 3) MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
