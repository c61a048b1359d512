/* Repeats exchanges: loop alltoall|allgather [MOST_BYTES [LEAST_BYTES [CALLS]]]. After CALLS (default 100) of
 * each, in which the drop-in decides, the library's call (PMPI_) and the intercepted call (MPI_) take turns for
 * nine rounds, or ROUNDS; the median time of each, the median of the rounds' ratios, and the quartiles of the
 * library's times over their median. A round's time is that of the slowest rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ROUNDS
#define ROUNDS 9
#endif

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

static double seconds(int own, int gather, int times, void *from, void *to, int bytes) {
    double slowest;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < times; i++) {
        if (gather)
            (own ? PMPI_Allgather : MPI_Allgather)(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
        else
            (own ? PMPI_Alltoall : MPI_Alltoall)(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    double taken = (MPI_Wtime() - begin) / times;
    MPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n, rank, gather = strcmp(argv[1], "allgather") == 0;
    int most = argc > 2 ? atoi(argv[2]) : 1 << 20, least = argc > 3 ? atoi(argv[3]) : 1;
    int first = argc > 4 ? atoi(argv[4]) : 100;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *from = malloc((size_t)n * most), *to = malloc((size_t)n * most);
    memset(from, rank, (size_t)n * most);
    memset(to, 0, (size_t)n * most);
    if (rank == 0) printf("   bytes   library [us]    drop-in [us]   ratio  library's quartiles\n");
    for (int bytes = least; bytes <= most; bytes *= 4) {
        double times[2][ROUNDS], ratios[ROUNDS];
        seconds(1, gather, 2, from, to, bytes);
        double one = seconds(1, gather, 2, from, to, bytes);
        seconds(0, gather, first, from, to, bytes);
        /* About 20 ms a round. */
        int repeats = one > 0.02 ? 1 : (int)(0.02 / (one + 1e-7));
        if (repeats > 2000) repeats = 2000;
        for (int round = 0; round < ROUNDS; round++)
            for (int turn = 0; turn < 2; turn++) {
                int own = (turn + round) % 2;
                times[own][round] = seconds(own, gather, repeats, from, to, bytes);
            }
        for (int round = 0; round < ROUNDS; round++) ratios[round] = times[0][round] / times[1][round];
        double library = median(times[1]), ours = median(times[0]), ratio = median(ratios);
        double low = times[1][ROUNDS / 4] / library, high = times[1][ROUNDS - 1 - ROUNDS / 4] / library;
        if (rank == 0)
            printf("%8d %14.3f %15.3f %7.2f %8.2f to %.2f\n", bytes, 1e6 * library, 1e6 * ours, ratio, low, high);
    }
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
