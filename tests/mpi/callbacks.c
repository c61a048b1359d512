/* Callbacks of attributes exchange. By letters of the argument: a, the delete callback of a communicator that is freed,
 * on it; b, the copy callback of one that is duplicated, on it; d, as a, on MPI_COMM_WORLD; each on communicators that
 * have exchanged before and others. At last, the delete callback of MPI_COMM_SELF in MPI_Finalize, on MPI_COMM_WORLD. */
#include <mpi.h>
#include <stdio.h>

static char which;
static int in[64], out[64];

static void exchange(MPI_Comm comm) { MPI_Alltoall(in, 4, MPI_INT, out, 4, MPI_INT, comm); }

static int deletes(MPI_Comm comm, int key, void *value, void *extra) {
    (void)key, (void)value, (void)extra;
    if (which != 'b') exchange(which == 'a' ? comm : MPI_COMM_WORLD);
    return MPI_SUCCESS;
}

static int copies(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag) {
    (void)key, (void)extra;
    if (which == 'b') MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    int key, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_keyval(copies, deletes, &key, NULL);
    for (int i = 0; argv[1][i / 8]; i++) {
        which = argv[1][i / 8];
        MPI_Comm one, other;
        MPI_Comm_dup(MPI_COMM_WORLD, &one);
        MPI_Comm_set_attr(one, key, NULL);
        if (i % 8 < 4) exchange(one);
        if (which == 'b') {
            MPI_Comm_dup(one, &other);
            exchange(other);
            MPI_Comm_free(&other);
        }
        MPI_Comm_free(&one);
    }
    which = 'c';
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Finalize();
    if (rank == 0) puts("callbacks ok");
    return 0;
}
