/* A loop of all-to-all by a plan of this library over the messages of MPI; with an argument, ranks are in step. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <topocoll.h>
enum { BLOCK = 3 };
static void check(topocoll_status status) {
    if (status != TOPOCOLL_STATUS_OK) fprintf(stderr, "%s\n", topocoll_message()), MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    int rank, ranks, open = 0, at;
    char machine[20];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    topocoll_plan *plan;
    snprintf(machine, sizeof machine, "full:%d", ranks);
    check(topocoll_plan_new(machine, "alltoall", NULL, NULL, BLOCK, 0, rank, &plan));
    MPI_Request requests[topocoll_plan_most_outstanding(plan) + 1];
    topocoll_action actions[topocoll_plan_most_outstanding(plan) + 1], *new;
    uint64_t work = topocoll_plan_workspace_bytes(plan, BLOCK), all = BLOCK * ranks;
    uint8_t *in = malloc(all), *out = malloc(all);
    topocoll_buffers buffers = {in, all, out, all, malloc(work + 1), work};
    topocoll_exchange *exchange = topocoll_exchange_new(plan);
    for (int round = 0; round < 100; round++) {
        for (int to = 0; to < ranks; to++) in[BLOCK * to] = round, in[BLOCK * to + 1] = rank, in[BLOCK * to + 2] = to;
        check(topocoll_exchange_begin(exchange, BLOCK, &buffers));
        uint64_t step = 1, in_step = argc > 1 ? topocoll_plan_steps(plan) : 0;
        while (check(topocoll_exchange_poll(exchange, new = &actions[open])), new->kind != TOPOCOLL_KIND_DONE) {
            for (; new->kind != TOPOCOLL_KIND_WAIT && step < in_step && step <= new->tag; step++) MPI_Barrier(MPI_COMM_WORLD);
            if (new->kind == TOPOCOLL_KIND_SEND)
                MPI_Isend(new->data, new->bytes, MPI_BYTE, new->peer, new->tag, MPI_COMM_WORLD, &requests[open++]);
            else if (new->kind == TOPOCOLL_KIND_RECEIVE)
                MPI_Irecv(new->data, new->bytes, MPI_BYTE, new->peer, new->tag, MPI_COMM_WORLD, &requests[open++]);
            else {
                MPI_Waitany(open, requests, &at, MPI_STATUS_IGNORE);
                check(topocoll_exchange_complete(exchange, actions[at].token, actions[at].bytes));
                actions[at] = actions[--open], requests[at] = requests[open];
            }
        }
        for (; step < in_step; step++) MPI_Barrier(MPI_COMM_WORLD);
        for (int from = 0; from < ranks; from++)
            if (out[BLOCK * from] != round || out[BLOCK * from + 1] != from) return 1;
    }
    if (rank == 0) puts("every rank has its blocks, 100 times");
    return MPI_Finalize();
}
