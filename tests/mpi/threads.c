/* Two threads of every rank exchange at the same time, each on its own communicator. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int errors[2];
static MPI_Comm comms[2];

static void *exchanges(void *which) {
    int i = *(int *)which, n, rank;
    MPI_Comm comm = comms[i];
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &rank);
    int *from = malloc(n * 64 * sizeof(int)), *to = malloc(n * 64 * sizeof(int));
    for (int round = 0; round < 40; round++) {
        int count = 1 + (7 * round + 31 * i) % 64;
        for (int k = 0; k < n * count; k++) from[k] = (i * 100 + rank) * 10000 + k / count * 100 + round;
        MPI_Alltoall(from, count, MPI_INT, to, count, MPI_INT, comm);
        for (int k = 0; k < n * count; k++)
            errors[i] += to[k] != (i * 100 + k / count) * 10000 + rank * 100 + round;
        MPI_Allgather(from, count, MPI_INT, to, count, MPI_INT, comm);
        for (int k = 0; k < n * count; k++)
            errors[i] += to[k] != (i * 100 + k / count) * 10000 + round;
    }
    free(from);
    free(to);
    return NULL;
}

int main(int argc, char **argv) {
    int provided, numbers[2] = {0, 1}, sum = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) return 3;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, exchanges, &numbers[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    int own = errors[0] + errors[1];
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    /* One is left for MPI_Finalize. */
    MPI_Comm_free(&comms[0]);
    MPI_Finalize();
    return sum != 0;
}
