/* An all-to-all of blocks of several sizes, the first of more than 2 GiB, from rank 0 to rank 1. It
 * maps little more than 48 MiB of memory repeatedly. Does not use topocoll. Exit status 1 if an
 * element is wrong. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WINDOW = 12 * 1024 * 1024 + 1024, COUNT = 550 * 1000 * 1000 };

/* So many ints, of which one in WINDOW is the same. */
static int *mapped(size_t ints) {
    size_t bytes = WINDOW * sizeof(int), windows = (ints + WINDOW - 1) / WINDOW;
    int file = memfd_create("window", 0);
    if (ftruncate(file, bytes) != 0) return NULL;
    char *at = mmap(NULL, windows * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; i < windows; i++)
        if (mmap(at + i * bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
            return NULL;
    close(file);
    return (int *)at;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n, rank, wrong = 0, sum;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int counts[2][64] = {{0}}, places[2][64] = {{0}};
    for (int i = 0; i < n; i++) counts[0][i] = counts[1][i] = 3, places[0][i] = places[1][i] = COUNT + 3 * i;
    if (rank == 0) counts[0][1] = COUNT, places[0][1] = 0;
    if (rank == 1) counts[1][0] = COUNT, places[1][0] = 0;
    int *from = mapped(COUNT + 3 * (size_t)n), *to = mapped(COUNT + 3 * (size_t)n);
    if (!from || !to) return 2;
    for (int i = 0; i < WINDOW; i++) from[i] = 7 * i + 1, to[i] = -1;
    int code = MPI_Alltoallv(from, counts[0], places[0], MPI_INT, to, counts[1], places[1], MPI_INT, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) wrong = 1;
    if (rank == 1)
        for (int i = 0; i < WINDOW; i++) {
            int small = 0;
            for (int k = 0; k < n; k++) small |= k != 0 && i >= (COUNT + 3 * k) % WINDOW && i < (COUNT + 3 * k) % WINDOW + 3;
            wrong += !small && to[i] != from[i];
        }
    if (wrong) printf("rank %d: %d wrong, code %d\n", rank, wrong, code);
    MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum != 0;
}
