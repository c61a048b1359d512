/* Communicators of rows of a square of processes exchange at the same time: split colors|grid|part, by MPI_Comm_split, by
 * MPI_Cart_sub, or by MPI_Comm_split with one process left out. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int by_grid = strcmp(argv[1], "grid") == 0, in_part = strcmp(argv[1], "part") == 0;
    int n, rank, own, side = 1, wraps[2] = {1, 1}, remain[2] = {0, 1};
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (side * side < n) side++;
    MPI_Comm row = MPI_COMM_NULL, grid;
    if (by_grid) {
        int sides[2] = {side, side};
        MPI_Cart_create(MPI_COMM_WORLD, 2, sides, wraps, 0, &grid);
        MPI_Cart_sub(grid, remain, &row);
        MPI_Comm_free(&grid);
    } else {
        int left_out = in_part && rank == n - 1;
        MPI_Comm_split(MPI_COMM_WORLD, left_out ? MPI_UNDEFINED : rank / side, -rank, &row);
    }
    if (row != MPI_COMM_NULL) {
        char name[16];
        snprintf(name, sizeof name, "row %d", rank / side);
        MPI_Comm_set_name(row, name);
        MPI_Comm_size(row, &own);
        char *from = malloc((size_t)own << 16), *to = malloc((size_t)own << 16);
        memset(from, rank, (size_t)own << 16);
        MPI_Alltoall(from, 1 << 16, MPI_BYTE, to, 1 << 16, MPI_BYTE, row);
        for (int i = 0; i < own; i++) {
            int sender = rank / side * side + (by_grid ? i : own - 1 - i);
            if (to[(size_t)i << 16] != sender) return 1;
        }
        free(from);
        free(to);
        MPI_Comm_free(&row);
    }
    MPI_Finalize();
    return 0;
}
