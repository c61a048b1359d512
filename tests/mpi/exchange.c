/* Checks every block of every exchange, byte for byte: operations x datatypes x counts x
 * communicators, in place and not; with `few`, fewer counts; with `world`, fewer counts on
 * MPI_COMM_WORLD only; with `alltoall`, of these MPI_Alltoall only. Or `soak SECONDS SEED` and optionally `faults`:
 * random exchanges from the seed. Does not use topocoll. Exit status 1 with the first errors. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int errors = 0;
static int world_rank;

/* Whether an exchange may end with an error, and how many did. */
static int may_fail = 0, failed = 0;

/* Whether an exchange that ended with this code went wrong. */
static int went_wrong(int code, const int *to, const int *expected, size_t ints) {
    if (code != MPI_SUCCESS && may_fail) return !++failed;
    return code != MPI_SUCCESS || memcmp(to, expected, ints * sizeof(int)) != 0;
}

/* Whether all ints of a memory are what `release` writes. */
static int untouched(const int *memory, size_t ints) {
    for (size_t i = 0; i < ints; i++)
        if (memory[i] != 0x33333333) return 0;
    return 1;
}

/* Frees a memory after an exchange. One that failed must be done with it: what the program then writes
 * there must not be received, nor be written over, for some exchanges that fail after it. */
static void release(int code, int *memory, size_t ints) {
    static struct { int *memory; size_t ints; } kept[16];
    static int next = 0;
    if (code != MPI_SUCCESS) {
        memset(memory, 0x33, ints * sizeof(int));
        int *fresh = memory;
        size_t all = ints;
        memory = kept[next].memory, ints = kept[next].ints;
        kept[next].memory = fresh, kept[next].ints = all;
        next = (next + 1) % 16;
        if (memory && !untouched(memory, ints) && errors++ < 5)
            printf("rank %d: memory of an exchange that failed, written after it\n", world_rank);
    }
    free(memory);
}

/* Element e of the block that `from` has for `to`. */
static int value(int from, int to, int e) { return from * 1000003 + to * 10007 + e * 13 + 1; }

/* A datatype, and where the ints of its element i lie in memory, in ints. */
struct shape {
    const char *name;
    MPI_Datatype type;
    int ints;      /* of an element */
    int place[4];  /* of each of them */
    int extent;    /* in ints */
};

static struct shape shapes[6];

static void make_shapes(void) {
    shapes[0] = (struct shape){"int", MPI_INT, 1, {0}, 1};
    shapes[1] = (struct shape){"holes", 0, 2, {0, 2}, 4};
    MPI_Datatype vector;
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 4 * sizeof(int), &shapes[1].type);
    MPI_Type_free(&vector);
    shapes[2] = (struct shape){"backwards", 0, 2, {1, 0}, 2};
    int one[2] = {1, 1}, back[2] = {1, 0};
    MPI_Type_indexed(2, one, back, MPI_INT, &shapes[2].type);
    shapes[3] = (struct shape){"contiguous", 0, 2, {0, 1}, 2};
    MPI_Type_contiguous(2, MPI_INT, &shapes[3].type);
    shapes[4] = (struct shape){"bytes", MPI_BYTE, 1, {0}, 1};
    shapes[5] = (struct shape){"2int", MPI_2INT, 2, {0, 1}, 2};
    for (int i = 1; i < 4; i++) MPI_Type_commit(&shapes[i].type);
}

/* Elements of a shape for so many ints. */
static int elements(const struct shape *s, int ints) {
    return s->type == MPI_BYTE ? ints * (int)sizeof(int) : ints / s->ints;
}

static int span(const struct shape *s, int ints) { return ints / s->ints * s->extent; }

static int *at(const struct shape *s, int *buffer, int ints, int block, int e) {
    return buffer + block * span(s, ints) + e / s->ints * s->extent + s->place[e % s->ints];
}

static int members(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

static void try(MPI_Comm comm, const char *name, int gather, int in_place, int s, int r, int ints) {
    const struct shape *send = &shapes[s], *receive = &shapes[r];
    int n = members(comm), rank;
    MPI_Comm_rank(comm, &rank);
    int sends = gather ? 1 : n;
    size_t send_ints = (size_t)sends * span(send, ints) + 1, got_ints = (size_t)n * span(receive, ints) + 1;
    int *from = malloc(send_ints * sizeof(int)), *to = malloc(got_ints * sizeof(int));
    int *expected = malloc(got_ints * sizeof(int));
    memset(from, 0x55, send_ints * sizeof(int));
    memset(to, 0xaa, got_ints * sizeof(int));
    memset(expected, 0xaa, got_ints * sizeof(int));
    for (int block = 0; block < n; block++)
        for (int e = 0; e < ints; e++) {
            int to_whom = gather ? 0 : block;
            if (block < sends) *at(send, from, ints, block, e) = value(rank, to_whom, e);
            *at(receive, expected, ints, block, e) = value(block, gather ? 0 : rank, e);
            if (in_place && (!gather || block == rank))
                *at(receive, to, ints, block, e) = value(rank, to_whom, e);
        }
    const void *given = in_place ? MPI_IN_PLACE : from;
    int count = elements(send, ints), counted = elements(receive, ints);
    int code;
#if MPI_VERSION >= 4
    if (s % 2 == 1)
        code = gather
            ? MPI_Allgather_c(given, count, send->type, to, counted, receive->type, comm)
            : MPI_Alltoall_c(given, count, send->type, to, counted, receive->type, comm);
    else
#endif
        code = gather
            ? MPI_Allgather(given, count, send->type, to, counted, receive->type, comm)
            : MPI_Alltoall(given, count, send->type, to, counted, receive->type, comm);
    if (went_wrong(code, to, expected, got_ints) && errors++ < 5)
        printf("rank %d: %s on %s, %s to %s%s, %d ints, code %d: wrong\n", world_rank,
               gather ? "allgather" : "alltoall", name, send->name, receive->name,
               in_place ? " in place" : "", ints, code);
    release(code, from, send_ints);
    release(code, to, got_ints);
    free(expected);
}

/* Ints that `from` has for `to`, some none; the same both ways for exchanges in place. */
static int weight(int from, int to, int ints) {
    return (from * to + from + to) % 5 * ints / 2 * 2;
}

/* Blocks in descending order, with room between, or dense in ascending order. */
static void try_vector(MPI_Comm comm, const char *name, int in_place, int dense, int s, int r, int ints) {
    const struct shape *send = &shapes[s], *receive = &shapes[r];
    int n = members(comm), rank, room = 5 * ints;
    MPI_Comm_rank(comm, &rank);
    int counts[2][64], displacements[2][64], whole[2][64], first[2][64], used[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        const struct shape *shape = side ? receive : send;
        for (int i = 0; i < n; i++) {
            whole[side][i] = weight(rank, i, ints);
            first[side][i] = dense ? used[side] : (n - 1 - i) * room;
            used[side] += whole[side][i];
            counts[side][i] = elements(shape, whole[side][i]);
            displacements[side][i] = elements(shape, first[side][i]);
        }
    }
    size_t from_ints = (size_t)n * span(send, room) + 1, to_ints = (size_t)n * span(receive, room) + 1;
    int *from = malloc(from_ints * sizeof(int)), *to = malloc(to_ints * sizeof(int));
    int *expected = malloc(to_ints * sizeof(int));
    memset(from, 0x55, from_ints * sizeof(int));
    memset(to, 0xaa, to_ints * sizeof(int));
    memset(expected, 0xaa, to_ints * sizeof(int));
    for (int i = 0; i < n; i++)
        for (int e = 0; e < whole[0][i]; e++) {
            *at(send, from + span(send, first[0][i]), 0, 0, e) = value(rank, i, e);
            *at(receive, expected + span(receive, first[1][i]), 0, 0, e) = value(i, rank, e);
            if (in_place) *at(receive, to + span(receive, first[1][i]), 0, 0, e) = value(rank, i, e);
        }
    const void *given = in_place ? MPI_IN_PLACE : from;
    int code;
#if MPI_VERSION >= 4
    if (s % 2 == 1) {
        MPI_Count large[2][64];
        MPI_Aint places[2][64];
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < n; i++)
                large[side][i] = counts[side][i], places[side][i] = displacements[side][i];
        code = MPI_Alltoallv_c(given, large[0], places[0], send->type, to, large[1], places[1], receive->type, comm);
    } else
#endif
        code = MPI_Alltoallv(given, counts[0], displacements[0], send->type, to, counts[1],
                             displacements[1], receive->type, comm);
    if (went_wrong(code, to, expected, to_ints) && errors++ < 5)
        printf("rank %d: alltoallv on %s, %s to %s%s%s, %d ints, code %d: wrong\n", world_rank, name,
               send->name, receive->name, in_place ? " in place" : "", dense ? " dense" : "", ints, code);
    release(code, from, from_ints);
    release(code, to, to_ints);
    free(expected);
}

/* Ints of a rank's block: about the same, or far apart, some none. */
static int share(int from, int ints, int apart) {
    return (apart ? from % 3 * (from + 1) : 1 + from % 2) * ints / 2 * 2;
}

/* A gather of blocks in descending order, with room between, or dense in ascending order. */
static void try_gather(MPI_Comm comm, const char *name, int in_place, int dense, int apart, int s, int r, int ints) {
    const struct shape *send = &shapes[s], *receive = &shapes[r];
    int n = members(comm), rank, room = 2 * (n + 1) * ints, used = 0;
    MPI_Comm_rank(comm, &rank);
    int counts[64], displacements[64], whole[64], first[64];
    for (int i = 0; i < n; i++) {
        whole[i] = share(i, ints, apart);
        first[i] = dense ? used : (n - 1 - i) * room;
        used += whole[i];
        counts[i] = elements(receive, whole[i]);
        displacements[i] = elements(receive, first[i]);
    }
    size_t from_ints = (size_t)span(send, room) + 1, to_ints = (size_t)n * span(receive, room) + 1;
    int *from = malloc(from_ints * sizeof(int)), *to = malloc(to_ints * sizeof(int));
    int *expected = malloc(to_ints * sizeof(int));
    memset(from, 0x55, from_ints * sizeof(int));
    memset(to, 0xaa, to_ints * sizeof(int));
    memset(expected, 0xaa, to_ints * sizeof(int));
    for (int i = 0; i < n; i++)
        for (int e = 0; e < whole[i]; e++) {
            if (i == rank) *at(send, from, 0, 0, e) = value(i, 0, e);
            *at(receive, expected + span(receive, first[i]), 0, 0, e) = value(i, 0, e);
            if (in_place && i == rank) *at(receive, to + span(receive, first[i]), 0, 0, e) = value(i, 0, e);
        }
    const void *given = in_place ? MPI_IN_PLACE : from;
    int count = elements(send, whole[rank]), code;
#if MPI_VERSION >= 4
    if (s % 2 == 1) {
        MPI_Count large[64];
        MPI_Aint places[64];
        for (int i = 0; i < n; i++) large[i] = counts[i], places[i] = displacements[i];
        code = MPI_Allgatherv_c(given, count, send->type, to, large, places, receive->type, comm);
    } else
#endif
        code = MPI_Allgatherv(given, count, send->type, to, counts, displacements, receive->type, comm);
    if (went_wrong(code, to, expected, to_ints) && errors++ < 5)
        printf("rank %d: allgatherv on %s, %s to %s%s%s%s, %d ints, code %d: wrong\n", world_rank, name,
               send->name, receive->name, in_place ? " in place" : "", dense ? " dense" : "",
               apart ? " far apart" : "", ints, code);
    release(code, from, from_ints);
    release(code, to, to_ints);
    free(expected);
}

/* Drawn alike by all ranks. */
static unsigned seed;
static int draw(int below) { return rand_r(&seed) % below; }

static void try_drawn(MPI_Comm comm) {
    int which = draw(4), in_place = draw(3) == 0, dense = draw(2), apart = draw(2), s = draw(6), other = draw(6);
    int r = in_place ? s : other, ints = 2 * draw(1 << draw(12));
    if (which < 2) try(comm, "a communicator drawn", which, in_place, s, r, ints);
    else if (which == 2) try_vector(comm, "a communicator drawn", in_place, dense, s, r, ints % 512);
    else try_gather(comm, "a communicator drawn", in_place, dense, apart, s, r, ints % 128);
}

/* Some of the world's ranks in any order, or all of them in a torus or mesh. */
static MPI_Comm drawn(int n) {
    MPI_Comm comm;
    if (draw(3) > 0) {
        int colours = 1 + draw(3), colour = 0, key = 0;
        for (int i = 0; i < n; i++) {
            int its_colour = draw(colours), its_key = draw(n);
            if (i == world_rank) colour = its_colour, key = its_key;
        }
        MPI_Comm_split(MPI_COMM_WORLD, colour, key, &comm);
        return comm;
    }
    int dims[3] = {0, 0, 0}, periods[3], dimensions = 1 + draw(3);
    for (int i = 0; i < 3; i++) periods[i] = draw(2);
    MPI_Dims_create(n, dimensions, dims);
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &comm);
    return comm;
}

/* KiB of this process in memory, without shared windows, whose number is limited. */
static long resident(void) {
    long pages = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld %ld", &pages, &shared) != 2) errors++;
    if (file) fclose(file);
    return (pages - shared) * 4;
}

/* Until the time is over: no wrong bytes, and no more memory at the end than after a fifth. An
 * exchange that failed leaves messages behind that nobody receives, so its communicator stays. */
static void soak(int n, double seconds) {
    double start = MPI_Wtime();
    long settled = 0, exchanges = 0, failures = 0, grown, most;
    for (int on = 1; on;) {
        MPI_Comm comm = drawn(n);
        int times = 1 + draw(20), somebody = 0;
        if (may_fail) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        for (int i = 0; i < times && !somebody; i++, exchanges++) {
            try_drawn(comm);
            if (may_fail) MPI_Allreduce(&failed, &somebody, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        }
        failures += somebody > 0;
        failed = 0;
        if (!somebody) MPI_Comm_free(&comm);
        double passed = MPI_Wtime() - start;
        if (!settled && passed > seconds / 5) settled = resident();
        on = passed < seconds && failures < 500;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    grown = resident() - (settled ? settled : resident());
    MPI_Allreduce(&grown, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    if (world_rank == 0) printf("%ld exchanges, %ld failed, %ld KiB more\n", exchanges, failures, most);
    if (!may_fail && most > 32 << 10) errors++;
}

static int few = 0, only_world = 0, only_alltoall = 0;

static void all(MPI_Comm comm, const char *name) {
    static const int sizes[] = {0, 2, 8, 130, 4096};
    for (int gather = 0; gather < 2 - only_alltoall; gather++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += 1 + few)
            for (int s = 0; s < 6; s++) {
                int r = (s + 1 + (int)i) % 6;
                try(comm, name, gather, 0, s, r, sizes[i]);
                try(comm, name, gather, 0, s, s, sizes[i]);
                try(comm, name, gather, 1, s, s, sizes[i]);
                for (int dense = 0; gather && dense < 2; dense++) {
                    try_vector(comm, name, 0, dense, s, r, sizes[i]);
                    try_vector(comm, name, 1, dense, s, s, sizes[i]);
                    if (sizes[i] > 130) continue;
                    for (int apart = 0; apart < 2; apart++) {
                        try_gather(comm, name, 0, dense, apart, s, r, sizes[i]);
                        try_gather(comm, name, 1, dense, apart, s, s, sizes[i]);
                    }
                }
            }
}

static void other_communicators(int n) {
    MPI_Comm other;
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        all(other, "a duplicate");
        MPI_Comm_free(&other);
    }
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &other);
    all(other, "ranks reversed");
    MPI_Comm_free(&other);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &other);
    all(other, "every second rank");
    MPI_Comm_free(&other);

    for (int wraps = 0; wraps < 2; wraps++) {
        int dims[2] = {0, 0}, periods[2] = {wraps, wraps};
        MPI_Dims_create(n, 2, dims);
        MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &other);
        all(other, wraps ? "a torus" : "a mesh");
        MPI_Comm_free(&other);
    }

    /* Both halves exchange through an inter-communicator. */
    if (n > 1) {
        MPI_Comm half, inter;
        int low = world_rank < n / 2;
        MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? n / 2 : 0, 7, &inter);
        int remote, own = world_rank, got[64];
        MPI_Comm_remote_size(inter, &remote);
        MPI_Allgather(&own, 1, MPI_INT, got, 1, MPI_INT, inter);
        for (int i = 0; i < remote; i++)
            if (got[i] != (low ? n / 2 : 0) + i && errors++ < 5)
                printf("rank %d: inter-communicator: wrong\n", world_rank);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
}

static void every_communicator(int n) {
    all(MPI_COMM_WORLD, "world");
    if (!only_world) other_communicators(n);
    /* A receive of the program from anybody matches nothing of an exchange. */
    MPI_Request any;
    int token = -1;
    MPI_Irecv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
    try(MPI_COMM_WORLD, "world beside a receive from anybody", 0, 0, 0, 0, 6);
    MPI_Send(&n, 1, MPI_INT, (world_rank + 1) % n, 3, MPI_COMM_WORLD);
    MPI_Wait(&any, MPI_STATUS_IGNORE);
    if (token != n) errors++;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    few = argc == 2;
    only_alltoall = few && strcmp(argv[1], "alltoall") == 0;
    only_world = only_alltoall || (few && strcmp(argv[1], "world") == 0);
    make_shapes();
    if (argc > 2) {
        seed = atoi(argv[3]);
        may_fail = argc > 4;
        soak(n, atof(argv[2]));
    } else {
        every_communicator(n);
    }

    for (int i = 1; i < 4; i++) MPI_Type_free(&shapes[i].type);
    int sum = 0;
    MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum != 0;
}
