/* Blocks of several sizes in memory that the CPU does not address, as that of a device: the library names
 * regions, and the program copies, sends and receives. Four of the eight ranks of a torus exchange, in one
 * process, twice. Prints the last blocks of the last of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <topocoll.h>

#define RANKS 4
#define ROOM 64

/* Ranks of the machine that exchange, and the bytes that each sends to each. */
static const uint32_t ranks[RANKS] = {6, 0, 3, 5};
static const uint64_t sizes[RANKS][RANKS] = {{2, 4, 0, 6}, {5, 3, 7, 4}, {4, 0, 2, 5}, {6, 4, 5, 3}};

/* The memories of each rank, by topocoll_memory. Only the two functions below touch them. */
static char device[RANKS][3][ROOM];

static char *address(int rank, topocoll_region region) { return device[rank][region.memory] + region.offset; }

static void copy(int from, topocoll_region source, int to, topocoll_region target) {
    memmove(address(to, target), address(from, source), source.bytes);
}

static void check(topocoll_exchange *exchange, topocoll_status status) {
    if (status == TOPOCOLL_STATUS_OK) return;
    fprintf(stderr, "%s\n", exchange ? topocoll_exchange_message(exchange) : topocoll_message());
    exit(1);
}

static int index_of(uint32_t rank) {
    int i = 0;
    while (ranks[i] != rank) i++;
    return i;
}

int main(void) {
    topocoll_exchange *exchange[RANKS];
    topocoll_event sends[RANKS][RANKS], receives[RANKS][RANKS];
    int send_count[RANKS] = {0}, receive_count[RANKS] = {0};
    for (int i = 0; i < RANKS; i++) {
        topocoll_request request = {0};
        request.size = sizeof request;
        request.machine = "torus:4x2";
        request.operation = "alltoall";
        request.sizes_differ = 1; /* every block is sent straight, so only two ranks need its size */
        request.rank = ranks[i];
        request.ranks = ranks;
        request.rank_count = RANKS;
        request.block_bytes = 4;
        topocoll_plan *plan;
        check(NULL, topocoll_plan_make(&request, &plan));
        exchange[i] = topocoll_exchange_new(plan);
        topocoll_plan_free(plan);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < RANKS; i++) {
            uint64_t row[RANKS], column[RANKS];
            for (int other = 0; other < RANKS; other++) {
                row[other] = sizes[i][other] + round;
                column[other] = sizes[other][i] + round;
            }
            char *at = device[i][TOPOCOLL_MEMORY_INPUT];
            for (int to = 0; to < RANKS; to++)
                for (uint64_t byte = 0; byte < row[to]; byte++) *at++ = "abcd"[i];
            check(exchange[i], topocoll_exchange_start_v(exchange[i], row, column));
        }
        for (int done = 0; done < RANKS;) {
            done = 0;
            for (int i = 0; i < RANKS; i++) {
                topocoll_event event;
                for (;;) {
                    check(exchange[i], topocoll_exchange_next(exchange[i], &event));
                    if (event.kind == TOPOCOLL_KIND_COPY) copy(i, event.region, i, event.to);
                    else if (event.kind == TOPOCOLL_KIND_SEND) sends[i][send_count[i]++] = event;
                    else if (event.kind == TOPOCOLL_KIND_RECEIVE) receives[i][receive_count[i]++] = event;
                    else break;
                }
                done += event.kind == TOPOCOLL_KIND_DONE;
            }
            /* A transfer from device to device, where both ends have been asked for. */
            for (int i = 0; i < RANKS; i++)
                for (int s = 0; s < send_count[i]; s++) {
                    topocoll_event send = sends[i][s];
                    int to = index_of(send.peer), r = 0;
                    while (r < receive_count[to] && (receives[to][r].peer != ranks[i] || receives[to][r].tag != send.tag)) r++;
                    if (r == receive_count[to]) continue;
                    topocoll_event receive = receives[to][r];
                    copy(i, send.region, to, receive.region);
                    receives[to][r] = receives[to][--receive_count[to]];
                    sends[i][s--] = sends[i][--send_count[i]];
                    check(exchange[i], topocoll_exchange_complete(exchange[i], send.token, send.region.bytes));
                    check(exchange[to], topocoll_exchange_complete(exchange[to], receive.token, receive.region.bytes));
                }
        }
    }
    printf("%.64s\n", device[RANKS - 1][TOPOCOLL_MEMORY_OUTPUT]);
    for (int i = 0; i < RANKS; i++) topocoll_exchange_free(exchange[i]);
    return 0;
}
