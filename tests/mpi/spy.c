/* Preloaded beside the drop-in: the library's all-to-alls take SLOW_LIBRARY microseconds more; messages
 * of the drop-in's exchanges take SLOW_OURS microseconds more after the first SLOW_AFTER of them, and SLOW_FREE
 * microseconds more after the first step and without a barrier before them. With STEPS each message says when it
 * is sent. With APART each rank is a node. The first rank prints how often nodes were looked for, and the reductions of the
 * drop-in. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WORDS 32767
#define BARRIER (WORDS - 1)
#define REAL(name) static typeof(name) *real; if (!real) real = (typeof(name) *)dlsym(RTLD_NEXT, #name)

static int found, reduced;

static void sleeps(const char *name) {
    const char *value = getenv(name);
    if (value) usleep(atoi(value));
}

int PMPI_Alltoall(const void *from, int count, MPI_Datatype type, void *to, int received, MPI_Datatype type_to, MPI_Comm comm) {
    REAL(PMPI_Alltoall);
    sleeps("SLOW_LIBRARY");
    return real(from, count, type, to, received, type_to, comm);
}

int PMPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    REAL(PMPI_Isend);
    static int sent;
    const char *after = getenv("SLOW_AFTER");
    if (tag < WORDS && after && sent++ >= atoi(after)) sleeps("SLOW_OURS");
    static int in_step;
    if (tag > 0 && tag < BARRIER && !in_step) sleeps("SLOW_FREE");
    in_step = tag == BARRIER;
    if (tag < BARRIER && getenv("STEPS")) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("step %d at %ld%09ld\n", tag, now.tv_sec, now.tv_nsec);
    }
    return real(from, count, type, to, tag, comm, request);
}

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made) {
    REAL(PMPI_Comm_split_type);
    found++;
    if (getenv("APART")) return PMPI_Comm_split(comm, key, 0, made);
    return real(comm, type, key, info, made);
}

int PMPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    REAL(PMPI_Allreduce);
    reduced++;
    return real(from, to, count, type, op, comm);
}

int MPI_Finalize(void) {
    REAL(MPI_Finalize);
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("nodes looked for %d times, %d reductions\n", found, reduced);
    return real();
}
