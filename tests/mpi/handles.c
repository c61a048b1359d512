/* Handles of a communicator of one rank and of a datatype of no bytes, used and freed, and then those of
 * others, under calls that are otherwise the same. Does not use topocoll. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n, rank;
    static char from[24 * 64], to[24 * 64];
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm comm, before;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm);
    for (int i = 0; i < 3; i++) MPI_Alltoall(from, 8, MPI_BYTE, to, 8, MPI_BYTE, comm);
    before = comm;
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "next");
    int same = comm == before;
    MPI_Alltoall(from, 8, MPI_BYTE, to, 8, MPI_BYTE, comm);
    MPI_Comm_free(&comm);
    MPI_Datatype type, last = MPI_DATATYPE_NULL;
    for (int bytes = 0; bytes <= 24; bytes += 24) {
        MPI_Type_contiguous(bytes, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        for (int i = 0; i < 3; i++) MPI_Alltoall(from, 1, type, to, 1, type, MPI_COMM_WORLD);
        same += 2 * (type == last);
        last = type;
        MPI_Type_free(&type);
    }
    if (rank == 0) printf("the same handles: %d\n", same);
    MPI_Finalize();
    return 0;
}
