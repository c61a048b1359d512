/* Preloaded beside the drop-in: of the messages that it sends for exchanges, one in LATE is late by up
 * to two milliseconds, and one in FAIL and all to rank REFUSE are refused; none where a variable is
 * missing. With INSIDE the messages of Open MPI's component. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

static int one_in(const char *name) {
    const char *value = getenv(name);
    return value && random() % atoi(value) == 0;
}

/* Whether a message is refused. */
static int disturbed(int to) {
    if (one_in("LATE")) usleep(random() % 2000);
    const char *refuse = getenv("REFUSE");
    return (refuse && to == atoi(refuse)) || one_in("FAIL");
}

/* Words between ranks pass: who failed must be able to say so. */
#ifdef INSIDE
#include "ompi/mca/pml/pml.h"

static mca_pml_base_module_isend_fn_t real;
static int splits;

static int isend(const void *from, size_t count, MPI_Datatype type, int to, int tag, mca_pml_base_send_mode_t mode, MPI_Comm comm,
                 MPI_Request *request) {
    return tag == -4 && !splits && disturbed(to) ? MPI_ERR_OTHER : real(from, count, type, to, tag, mode, comm, request);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, required, provided);
    srandom(getpid());
    real = mca_pml.pml_isend;
    mca_pml.pml_isend = isend;
    return code;
}

/* The library gathers the colors by the component: an error would be one of the split. */
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *new) {
    splits = 1;
    int code = PMPI_Comm_split(comm, color, key, new);
    splits = 0;
    return code;
}

int MPI_Init(int *argc, char ***argv) {
    int provided;
    return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}
#else
#define WORDS 32767

int PMPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    static int (*real)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    if (!real) {
        real = (int (*)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))dlsym(RTLD_NEXT, "PMPI_Isend");
        srandom(getpid());
    }
    return tag < WORDS && disturbed(to) ? MPI_ERR_OTHER : real(from, count, type, to, tag, comm, request);
}
#endif
