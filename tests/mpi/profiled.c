/* Seven all-to-alls, five all-gathers and three barriers; every block is compared. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int n, rank, wrong = 0, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int *from = malloc(n * sizeof(int)), *to = malloc(n * sizeof(int));
    for (int round = 0; round < 7; round++) {
        for (int i = 0; i < n; i++) from[i] = 100 * rank + i + round;
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) wrong += to[i] != 100 * i + rank + round;
    }
    for (int round = 0; round < 5; round++) {
        MPI_Allgather(&from[round % n], 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) wrong += to[i] != 100 * i + round % n + 6;
    }
    for (int round = 0; round < 3; round++) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    free(from), free(to);
    MPI_Finalize();
    return sum != 0;
}
