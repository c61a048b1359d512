/* Exchanges on a communicator of each of two MPI sessions; every block is compared. With an argument the program calls
 * MPI_Init before, and MPI_Finalize between the two. MPICH 4.0.2 cannot begin a session after it ended the last one, so
 * both are open at the same time. */
#include <mpi.h>
#include <stdlib.h>

static int exchanges(MPI_Comm comm) {
    int n, rank, wrong = 0, sum;
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &rank);
    int *from = malloc(n * sizeof(int)), *to = malloc(n * sizeof(int));
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < n; i++) from[i] = 100 * rank + i + round;
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
        for (int i = 0; i < n; i++) wrong += to[i] != 100 * i + rank + round;
        MPI_Allgather(from, 1, MPI_INT, to, 1, MPI_INT, comm);
        for (int i = 0; i < n; i++) wrong += to[i] != 100 * i + round;
    }
    MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, comm);
    free(from), free(to);
    return sum;
}

int main(int argc, char **argv) {
    MPI_Session sessions[2];
    int wrong = 0, initializes = argc > 1;
    if (initializes) MPI_Init(&argc, &argv);
    for (int i = 0; i < 2; i++) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &sessions[i]);
    for (int i = 0; i < 2; i++) {
        MPI_Group group;
        MPI_Comm comm;
        MPI_Group_from_session_pset(sessions[i], "mpi://WORLD", &group);
        MPI_Comm_create_from_group(group, "topocoll-sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Group_free(&group);
        wrong += exchanges(comm);
        MPI_Comm_free(&comm);
        if (i == 0 && initializes) MPI_Finalize();
    }
    for (int i = 0; i < 2; i++) MPI_Session_finalize(&sessions[i]);
    return wrong != 0;
}
