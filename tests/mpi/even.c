/* Preloaded beside the drop-in: a call of the library that is marked by WRONG on a rank, as its arguments are wrong
 * there, ends with an error on all ranks. The library itself would return on that rank, and the others would wait. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

static int is_wrong(MPI_Comm comm) {
    int wrong = getenv("WRONG") != NULL;
    PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, comm);
    return wrong;
}

#define EVEN(name, parameters, arguments) \
    int name parameters { \
        static int(*real) parameters; \
        if (!real) real = (int(*) parameters)dlsym(RTLD_NEXT, #name); \
        return is_wrong(comm) ? MPI_ERR_OTHER : real arguments; \
    }

EVEN(PMPI_Alltoall, (const void *from, int sent, MPI_Datatype send, void *to, int received, MPI_Datatype receive, MPI_Comm comm),
     (from, sent, send, to, received, receive, comm))
EVEN(PMPI_Allgather, (const void *from, int sent, MPI_Datatype send, void *to, int received, MPI_Datatype receive, MPI_Comm comm),
     (from, sent, send, to, received, receive, comm))
EVEN(PMPI_Alltoallv,
     (const void *from, const int *sent, const int *begins, MPI_Datatype send, void *to, const int *received,
      const int *places, MPI_Datatype receive, MPI_Comm comm),
     (from, sent, begins, send, to, received, places, receive, comm))
EVEN(PMPI_Allgatherv,
     (const void *from, int sent, MPI_Datatype send, void *to, const int *received, const int *places, MPI_Datatype receive,
      MPI_Comm comm),
     (from, sent, send, to, received, places, receive, comm))
