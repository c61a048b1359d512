/* Preloaded beside the drop-in: a profiling tool that counts calls by their MPI names, and passes them on by their
 * PMPI names; if CHAINS is set, to the next library that has the MPI name. The first rank prints the counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int alltoalls, allgathers, barriers;

static void *next(const char *name) { return dlsym(RTLD_NEXT, name + (getenv("CHAINS") != NULL)); }
#define PASSES(name) ((typeof(name) *)next("P" #name))

int MPI_Alltoall(const void *from, int count, MPI_Datatype type, void *to, int received, MPI_Datatype type_to, MPI_Comm comm) {
    alltoalls++;
    return PASSES(MPI_Alltoall)(from, count, type, to, received, type_to, comm);
}

int MPI_Allgather(const void *from, int count, MPI_Datatype type, void *to, int received, MPI_Datatype type_to, MPI_Comm comm) {
    allgathers++;
    return PASSES(MPI_Allgather)(from, count, type, to, received, type_to, comm);
}

int MPI_Barrier(MPI_Comm comm) {
    barriers++;
    return PASSES(MPI_Barrier)(comm);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("tool: %d alltoalls, %d allgathers, %d barriers\n", alltoalls, allgathers, barriers);
    return PASSES(MPI_Finalize)();
}
