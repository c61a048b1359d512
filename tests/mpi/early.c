/* Calls with arguments that are wrong from the start, on one rank, some or all: every rank returns, a rank
 * whose arguments the library refuses gets its class, and the communicator works again. Does not use
 * topocoll.
 *
 *   early tries COUNT SEED USED [inside]  faults drawn by the seed, each on a communicator with up to USED calls of each
 *                              operation before; exit status 1 with the first errors, 2 after 20
 *                              seconds in one try. With more than one call before, sizes are within a
 *                              power of two, and a call that the library must refuse is marked by WRONG (even.c);
 *                              inside Open MPI, all ranks have a fault that it refuses before its component gets the call
 *   early classes FAULT        the error class of a fault on all ranks, one line for each operation
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALLTOALL, ALLGATHER, ALLTOALLV, ALLGATHERV, OPERATIONS };
static const char *operations[] = {"alltoall", "allgather", "alltoallv", "allgatherv"};

enum {
    SEND_UNCOMMITTED, RECEIVE_UNCOMMITTED, SEND_TYPE_NULL, RECEIVE_TYPE_NULL, SEND_NULL, RECEIVE_NULL,
    SEND_NEGATIVE, RECEIVE_NEGATIVE, RECEIVE_IN_PLACE, COUNTS_NULL, PLACES_NULL, ALIASED, SEND_LONGER, RECEIVE_LONGER,
    COPY_FAILS, DELETE_FAILS, BOTH_LONGER, EMPTY, FAULTS
};
static const char *faults[] = {
    "send-uncommitted", "receive-uncommitted", "send-type-null", "receive-type-null", "send-null", "receive-null",
    "send-negative", "receive-negative", "receive-in-place", "counts-null", "places-null", "aliased", "send-longer",
    "receive-longer", "copy-fails", "delete-fails", "both-longer", "empty"
};

#define RANKS 16
#define INTS 64

static int n, rank, errors = 0, try = 0, longer = 20, inside = 0;
static char doing[100];
static int from[RANKS * INTS], to[RANKS * INTS];
static MPI_Datatype raw;

/* One call of `count` ints a block, with a fault or -1. */
static int call(int operation, int fault, int count, MPI_Comm comm) {
    int sends[RANKS], receives[RANKS], places[RANKS];
    int sent = count, received = count, *send_counts = sends, *receive_counts = receives, *displacements = places;
    void *send = from, *receive = to;
    MPI_Datatype send_type = MPI_INT, receive_type = MPI_INT;
    for (int i = 0; i < n * INTS; i++) from[i] = operation % 2 ? rank : 100 * rank + i / count, to[i] = -1;
    switch (fault) {
    case SEND_UNCOMMITTED: send_type = raw; break;
    case RECEIVE_UNCOMMITTED: receive_type = raw; break;
    case SEND_TYPE_NULL: send_type = MPI_DATATYPE_NULL; break;
    case RECEIVE_TYPE_NULL: receive_type = MPI_DATATYPE_NULL; break;
    case SEND_NULL: send = NULL; break;
    case RECEIVE_NULL: receive = NULL; break;
    case SEND_NEGATIVE: sent = -1; break;
    case RECEIVE_NEGATIVE: received = -1; break;
    case RECEIVE_IN_PLACE: receive = MPI_IN_PLACE; break;
    case ALIASED: receive = operation % 2 ? from - rank * count : from; break;
    case COUNTS_NULL: send_counts = receive_counts = NULL; break;
    case PLACES_NULL: displacements = NULL; break;
    case SEND_LONGER: sent += longer; break;
    case RECEIVE_LONGER: received += longer; break;
    case BOTH_LONGER: sent += longer, received += longer; break;
    case EMPTY: sent = received = 0; break;
    }
    for (int i = 0; i < n; i++) sends[i] = sent, receives[i] = received, places[i] = i * count;
    switch (operation) {
    case ALLTOALL: return MPI_Alltoall(send, sent, send_type, receive, received, receive_type, comm);
    case ALLGATHER: return MPI_Allgather(send, sent, send_type, receive, received, receive_type, comm);
    case ALLTOALLV:
        return MPI_Alltoallv(send, send_counts, displacements, send_type, receive, receive_counts, displacements,
                             receive_type, comm);
    }
    return MPI_Allgatherv(send, sent, send_type, receive, receive_counts, displacements, receive_type, comm);
}

static void hangs(int signal) {
    (void)signal;
    if (write(STDERR_FILENO, doing, strlen(doing)) < 0) _exit(3);
    _exit(2);
}

static int class_of(int code) {
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    return class;
}

/* Whether the blocks are what a call without a fault leaves. */
static int right(int operation, int count) {
    for (int i = 0; i < n * count; i++)
        if (to[i] != (operation % 2 ? i / count : 100 * (i / count) + rank)) return 0;
    return 1;
}

/* Whether an operation can have a fault. */
static int applies(int operation, int fault) {
    if (fault == COUNTS_NULL || fault == PLACES_NULL) return operation >= ALLTOALLV;
    /* A rank sends no message for a block that it thinks is empty. */
    return fault != EMPTY || operation < ALLTOALLV;
}

/* Whether Open MPI 4.1 returns at once, with an error or without one. */
static int returns(int operation, int fault) {
    switch (fault) {
    case SEND_NULL: case RECEIVE_NULL: case ALIASED: case COPY_FAILS: case DELETE_FAILS: case BOTH_LONGER: return 0;
    case RECEIVE_UNCOMMITTED: case RECEIVE_LONGER: return operation % 2 == 0;
    case RECEIVE_NEGATIVE: return operation != ALLGATHERV;
    }
    return 1;
}

static int copy_fails(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag) {
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_ERR_OTHER;
}

static int delete_fails(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value;
    return *(int *)extra ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Duplicates or frees a communicator whose attribute's callback fails, which leaves it as it is. False if it
 * is freed all the same: MPICH ignores the failure where the callback of another attribute follows. */
static int fail_callback(int fault, MPI_Comm comm) {
    int key, fails = 1;
    MPI_Comm other = comm;
    MPI_Comm_create_keyval(fault == COPY_FAILS ? copy_fails : MPI_COMM_NULL_COPY_FN,
                           fault == DELETE_FAILS ? delete_fails : MPI_COMM_NULL_DELETE_FN, &key, &fails);
    MPI_Comm_set_attr(comm, key, NULL);
    int code = fault == COPY_FAILS ? MPI_Comm_dup(comm, &other) : MPI_Comm_free(&other);
    fails = 0;
    if (code != MPI_SUCCESS) MPI_Comm_delete_attr(comm, key);
    MPI_Comm_free_keyval(&key);
    return code != MPI_SUCCESS;
}

static void wrong(const char *what, int operation, int fault, int class) {
    if (errors++ < 5)
        printf("rank %d, try %d, %s %s: %s, class %d\n", rank, try, operations[operation], faults[fault], what, class);
}

/* A fault on some ranks, and calls after it. */
static void attempt(int most, MPI_Comm apart) {
    int operation = random() % OPERATIONS, fault = random() % (most > 1 ? BOTH_LONGER : FAULTS);
    int used = random() % (most + 1);
    int who = random() % 3, faulty = random() % n, some = random(), count = 1 + random() % 40;
    if (inside && returns(operation, fault)) who = 2;
    int has = who == 0 ? rank == faulty : who == 1 ? some >> rank & 1 : 1;
    if (!applies(operation, fault)) return;
    /* Open MPI 4.1.4 crashes. */
    if (inside && operation == ALLGATHERV && fault == COUNTS_NULL) return;
    if (most > 1) longer = 1, count += (count & (count + 1)) == 0;
    snprintf(doing, sizeof doing, "try %d: %s %s after %d calls\n", try, operations[operation], faults[fault], used);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < used * OPERATIONS; i++)
        if (call(i % OPERATIONS, -1, count, comm) != MPI_SUCCESS || !right(i % OPERATIONS, count))
            wrong("before it", i % OPERATIONS, fault, 0);
    if (fault == COPY_FAILS || fault == DELETE_FAILS) {
        if (!fail_callback(fault, comm)) return;
    } else {
        int any;
        if (has) setenv("WRONG", "1", 1);
        int class = class_of(call(operation, has ? fault : -1, count, comm)), told = class != MPI_SUCCESS;
        unsetenv("WRONG");
        MPI_Allreduce(&told, &any, 1, MPI_INT, MPI_MAX, apart);
        if (class == MPI_SUCCESS && any && !has && !right(operation, count)) wrong("wrong blocks", operation, fault, class);
        if (has && fault < ALIASED && class == MPI_SUCCESS) wrong("no error", operation, fault, class);
    }
    for (int i = 0; i < 3 * OPERATIONS; i++) {
        int class = class_of(call((operation + i) % OPERATIONS, -1, count, comm));
        if (class != MPI_SUCCESS) wrong("does not serve again", operation, fault, class);
        else if (!right((operation + i) % OPERATIONS, count)) wrong("wrong blocks after it", operation, fault, class);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    MPI_Comm apart;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(1, MPI_INT, &raw);
    if (strcmp(argv[1], "classes") == 0) {
        int fault = 0;
        while (strcmp(faults[fault], argv[2]) != 0) fault++;
        for (int operation = 0; operation < OPERATIONS; operation++) {
            if (!applies(operation, fault)) continue;
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            int class = class_of(call(operation, fault, 3, comm));
            if (rank == 0) printf("%s %s %d\n", operations[operation], faults[fault], class), fflush(stdout);
            MPI_Comm_free(&comm);
        }
    } else {
        inside = argc > 5;
        srandom(atoi(argv[3]));
        signal(SIGALRM, hangs);
        for (int last = atoi(argv[2]); try < last; try++) {
            alarm(20);
            attempt(atoi(argv[4]), apart);
        }
    }
    int sum;
    MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, apart);
    MPI_Finalize();
    return sum != 0;
}
