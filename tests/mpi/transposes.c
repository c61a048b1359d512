/* Records the messages of FFTW's transposes in transforms over slabs, and within the rows and the columns of process grids.
   Prints a line for each group of processes: the sides, the process grid, the exchange, the group, and the bytes of
   each message, in order of senders, then of receivers. */
#include <fftw3-mpi.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 8, POINT = 16 };

/* FFTW's transposes call the functions below, which add what this process sends to each of its group. */
static long sent[MOST];
static MPI_Comm group;

static void refuse(const char *why)
{
    fprintf(stderr, "%s\n", why);
    PMPI_Abort(MPI_COMM_WORLD, 1);
}

static void add(long count, MPI_Datatype type, int peer, MPI_Comm comm)
{
    int same, size;
    PMPI_Comm_compare(comm, group, &same);
    if (same != MPI_CONGRUENT)
        refuse("a message in another communicator");
    PMPI_Type_size(type, &size);
    sent[peer] += count * size;
}

int MPI_Alltoall(const void *from, int count, MPI_Datatype type, void *to, int receives, MPI_Datatype received,
                 MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    for (int peer = 0; peer < size; peer++)
        add(count, type, peer, comm);
    return PMPI_Alltoall(from, count, type, to, receives, received, comm);
}

int MPI_Alltoallv(const void *from, const int *counts, const int *at, MPI_Datatype type, void *to, const int *receives,
                  const int *places, MPI_Datatype received, MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    for (int peer = 0; peer < size; peer++)
        add(counts[peer], type, peer, comm);
    return PMPI_Alltoallv(from, counts, at, type, to, receives, places, received, comm);
}

int MPI_Sendrecv(const void *from, int count, MPI_Datatype type, int peer, int tag, void *to, int receives,
                 MPI_Datatype received, int source, int other, MPI_Comm comm, MPI_Status *status)
{
    add(count, type, peer, comm);
    return PMPI_Sendrecv(from, count, type, peer, tag, to, receives, received, source, other, comm, status);
}

int MPI_Send(const void *from, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)
{
    add(count, type, peer, comm);
    return PMPI_Send(from, count, type, peer, tag, comm);
}

/* Transposes a matrix of tuples of points over the processes of the group. */
static fftw_plan transpose(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t points, fftw_complex *in, fftw_complex *out)
{
    return fftw_mpi_plan_many_transpose(rows, columns, 2 * points, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK,
                                        (double *)in, (double *)out, group, FFTW_ESTIMATE);
}

/* The default share of a process: as FFTW documents it, the largest is first. */
static ptrdiff_t share(ptrdiff_t points, int among, int which)
{
    ptrdiff_t most = (points + among - 1) / among, rest = points - which * most;
    return rest < 0 ? 0 : rest < most ? rest : most;
}

/* Runs a plan, and prints what the group sent, by its first process. */
static void record(fftw_plan plan, const char *name, int which)
{
    long all[MOST * MOST];
    int rank, size;
    if (plan == NULL)
        refuse("no plan");
    memset(sent, 0, sizeof sent);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    PMPI_Comm_rank(group, &rank);
    PMPI_Comm_size(group, &size);
    PMPI_Gather(sent, size, MPI_LONG, all, size, MPI_LONG, 0, group);
    if (rank == 0) {
        char line[2048];
        int end = snprintf(line, sizeof line, "%s %d:", name, which);
        for (int i = 0; i < size * size; i++)
            end += snprintf(line + end, sizeof line - end, " %ld", i % (size + 1) == 0 ? 0 : all[i]);
        puts(line);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const int all_sides[][3] = {{16, 16, 16}, {16, 24, 8}, {10, 9, 13}, {9, 15, 11}};
    int rank, size;
    char name[64];
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST)
        refuse("at most 8 processes");
    for (int i = 0; i < (int)(sizeof all_sides / sizeof *all_sides); i++) {
        const int *sides = all_sides[i];
        ptrdiff_t points = (ptrdiff_t)(sides[0] + MOST) * (sides[1] + MOST) * (sides[2] + MOST);
        fftw_complex *in = fftw_alloc_complex(points), *out = fftw_alloc_complex(points);
        memset(in, 0, points * POINT);
        group = MPI_COMM_WORLD;
        snprintf(name, sizeof name, "%dx%dx%d %dx1 slabs", sides[0], sides[1], sides[2], size);
        record(fftw_mpi_plan_dft_3d(sides[0], sides[1], sides[2], in, out, MPI_COMM_WORLD, FFTW_FORWARD,
                                    FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_OUT),
               name, 0);
        for (int rows = 1; rows <= size; rows++) {
            int columns = size / rows, row = rank / columns, column = rank % columns;
            if (size % rows != 0)
                continue;
            /* First the third side becomes distributed in place of the second, then the second in place of the first. */
            snprintf(name, sizeof name, "%dx%dx%d %dx%d rows", sides[0], sides[1], sides[2], rows, columns);
            PMPI_Comm_split(MPI_COMM_WORLD, row, rank, &group);
            if (columns > 1)
                record(transpose(sides[1], sides[2], share(sides[0], rows, row), in, out), name, row);
            PMPI_Comm_free(&group);
            snprintf(name, sizeof name, "%dx%dx%d %dx%d columns", sides[0], sides[1], sides[2], rows, columns);
            PMPI_Comm_split(MPI_COMM_WORLD, column, rank, &group);
            if (rows > 1)
                record(transpose(sides[0], sides[1], share(sides[2], columns, column), in, out), name, column);
            PMPI_Comm_free(&group);
        }
        fftw_free(in);
        fftw_free(out);
    }
    MPI_Finalize();
    return 0;
}
