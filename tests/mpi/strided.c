/* Time of a message of strided blocks, every second of 64 as in an algorithm that combines blocks:
 * packed, sent and unpacked; or as a derived datatype. Two ranks, the fastest of 200 exchanges of
 * each in turn. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 32, ROUNDS = 200 };

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("  block B     copied us   datatype us\n");
    for (int bytes = 1; bytes <= 1 << 18; bytes *= 4) {
        size_t all = 2 * BLOCKS * (size_t)bytes, half = all / 2;
        char *from = calloc(all, 1), *to = calloc(all, 1), *out = calloc(half, 1), *in = calloc(half, 1);
        double least[2] = {1e9, 1e9};
        MPI_Datatype apart;
        MPI_Type_vector(BLOCKS, bytes, 2 * bytes, MPI_BYTE, &apart);
        MPI_Type_commit(&apart);
        for (int round = 0; round < 2 * ROUNDS; round++) {
            MPI_Request requests[2];
            MPI_Status statuses[2];
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            if (round % 2 == 0) {
                MPI_Irecv(in, (int)half, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
                for (int i = 0; i < BLOCKS; i++) memcpy(out + (size_t)i * bytes, from + (size_t)2 * i * bytes, bytes);
                MPI_Isend(out, (int)half, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
                MPI_Waitall(2, requests, statuses);
                for (int i = 0; i < BLOCKS; i++) memcpy(to + (size_t)2 * i * bytes, in + (size_t)i * bytes, bytes);
            } else {
                MPI_Irecv(to, 1, apart, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
                MPI_Isend(from, 1, apart, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
                MPI_Waitall(2, requests, statuses);
            }
            double taken = MPI_Wtime() - begin, slowest;
            MPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (slowest < least[round % 2]) least[round % 2] = slowest;
        }
        if (rank == 0) printf("%9d %13.2f %13.2f\n", bytes, 1e6 * least[0], 1e6 * least[1]);
        MPI_Type_free(&apart);
        free(from), free(to), free(out), free(in);
    }
    MPI_Finalize();
    return 0;
}
