/* All-to-alls of BYTES, every byte compared: repeat CALLS BYTES [cart [bare]]; with cart, each on a new
 * Cartesian communicator, which is freed; with bare, nothing is exchanged there. Prints the median time of an
 * iteration on the slowest rank, in microseconds. Does not use topocoll. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n, rank, calls = atoi(argv[1]), bytes = atoi(argv[2]), errors = 0, sum;
    int cart = argc > 3 && strcmp(argv[3], "cart") == 0, bare = argc > 4;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned char *from = malloc(n * bytes), *to = malloc(n * bytes);
    double *times = malloc(calls * sizeof *times), *slowest = malloc(calls * sizeof *times);
    for (int call = 0; call < calls; call++) {
        for (int i = 0; i < n * bytes; i++) from[i] = rank * 31 + i / bytes * 7 + call;
        double begin = MPI_Wtime();
        MPI_Comm comm = MPI_COMM_WORLD;
        int side = n, wraps = 1;
        if (cart) MPI_Cart_create(MPI_COMM_WORLD, 1, &side, &wraps, 0, &comm);
        if (!bare) MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
        if (cart) MPI_Comm_free(&comm);
        times[call] = 1e6 * (MPI_Wtime() - begin);
        for (int i = 0; i < n * bytes && !bare; i++) errors += to[i] != (unsigned char)(i / bytes * 31 + rank * 7 + call);
    }
    MPI_Allreduce(times, slowest, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    qsort(slowest, calls, sizeof *slowest, by_value);
    if (rank == 0) printf("median %.3f\n", slowest[calls / 2]);
    MPI_Finalize();
    return sum != 0;
}
