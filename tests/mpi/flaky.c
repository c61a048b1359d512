/* Preloaded beside the drop-in: of the messages that it sends for exchanges, one in LATE is late by up
 * to two milliseconds, and one in FAIL and all to rank REFUSE are refused; none where a variable is
 * missing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

/* Tags from here on are of words between ranks: who failed must be able to say so. */
#define WORDS 32767

static int one_in(const char *name) {
    const char *value = getenv(name);
    return value && random() % atoi(value) == 0;
}

int PMPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    static int (*real)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    if (!real) {
        real = (int (*)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))dlsym(RTLD_NEXT, "PMPI_Isend");
        srandom(getpid());
    }
    if (tag < WORDS && one_in("LATE")) usleep(random() % 2000);
    const char *refuse = getenv("REFUSE");
    if (tag < WORDS && ((refuse && to == atoi(refuse)) || one_in("FAIL"))) return MPI_ERR_OTHER;
    return real(from, count, type, to, tag, comm, request);
}
