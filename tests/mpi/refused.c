/* A message of rank 0 to rank 2 is refused while another waits for rank 1, which is late. Rank 0 gets
 * the error and overwrites its input; rank 1 gets an error too, or the bytes from before. Preloaded beside
 * flaky.c; three ranks. Exit status 1 if not. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a block: more than an MPI sends before it is asked for. */
#define INTS (1 << 16)

static int rank, from[2 * INTS], to[INTS];

/* Rank 0 has a block for each of the others, who have none for anybody. */
static int exchange(void) {
    int sent[3] = {0, INTS, INTS}, from_where[3] = {0, 0, INTS};
    int received[3] = {INTS, 0, 0}, none[3] = {0, 0, 0};
    return MPI_Alltoallv(from, rank ? none : sent, from_where, MPI_INT, to, rank ? received : none, none,
                         MPI_INT, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int wrong = 0;
    MPI_Comm apart;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    memset(from, 7, sizeof from);
    exchange();
    memset(to, 0, sizeof to);
    if (rank == 0) setenv("REFUSE", "2", 1);
    if (rank == 1) usleep(200000);
    int code = exchange();
    memset(from, 3, sizeof from);
    for (int i = 0; i < INTS && rank == 1 && code == MPI_SUCCESS; i++) wrong |= to[i] != 0x07070707;
    if (rank != 1) wrong = code == MPI_SUCCESS;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, apart);
    MPI_Finalize();
    return wrong;
}
