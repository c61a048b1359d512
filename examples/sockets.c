/* An event loop over sockets that never block: each of six processes exchanges a block with every other by
 * poll, reads and writes, three times. A message of the next exchange waits in its socket. Prints the chosen
 * algorithm and the last blocks of rank 3. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <topocoll.h>
#include <unistd.h>

#define RANKS 6
#define BLOCK 100000
#define ROUNDS 3
#define MOST 64 /* messages under way */

struct header {
    uint32_t number, tag; /* of the exchange, and in it */
    uint64_t bytes;
};

/* The connection to a rank: messages to send in order, and the message that arrives. */
struct peer {
    int fd;
    struct {
        topocoll_action action;
        struct header header;
    } sends[MOST];
    int first, count;
    uint64_t sent;
    struct header header;
    uint64_t got; /* bytes of the header and of the message */
};

static struct peer peers[RANKS];
static topocoll_action posted[MOST];
static int posted_count;
static topocoll_exchange *exchange;
static uint32_t number;

static void check(topocoll_status status) {
    if (status == TOPOCOLL_STATUS_OK) return;
    fprintf(stderr, "%s\n", topocoll_exchange_message(exchange));
    exit(1);
}

/* The posted receive of the message whose header has arrived from a rank. */
static topocoll_action *receive_of(uint32_t rank) {
    for (int i = 0; i < posted_count && peers[rank].header.number == number; i++)
        if (posted[i].peer == rank && posted[i].tag == peers[rank].header.tag) return &posted[i];
    return NULL;
}

/* Whether bytes from this rank have a place now; otherwise they wait in the socket. */
static int can_read(uint32_t rank) { return peers[rank].got < sizeof(struct header) || receive_of(rank); }

static void fails(const char *what) {
    perror(what);
    exit(1);
}

static void read_from(uint32_t rank) {
    struct peer *peer = &peers[rank];
    while (can_read(rank)) {
        char *to = (char *)&peer->header + peer->got;
        uint64_t left = sizeof peer->header - peer->got;
        topocoll_action *action = NULL;
        if (peer->got >= sizeof peer->header) {
            uint64_t done = peer->got - sizeof peer->header;
            action = receive_of(rank);
            if (peer->header.bytes == done || peer->header.bytes != action->bytes) {
                uint64_t token = action->token;
                *action = posted[--posted_count];
                peer->got = 0;
                check(topocoll_exchange_complete(exchange, token, peer->header.bytes));
                continue;
            }
            to = (char *)action->data + done, left = peer->header.bytes - done;
        }
        ssize_t bytes = read(peer->fd, to, left);
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (bytes <= 0) fails("read");
        peer->got += bytes;
    }
}

static void write_to(uint32_t rank) {
    struct peer *peer = &peers[rank];
    while (peer->count > 0) {
        topocoll_action *action = &peer->sends[peer->first].action;
        struct header *header = &peer->sends[peer->first].header;
        uint64_t head = peer->sent < sizeof *header ? sizeof *header - peer->sent : 0;
        uint64_t done = head ? 0 : peer->sent - sizeof *header;
        struct iovec parts[2] = {{(char *)(header + 1) - head, head}, {action->data + done, action->bytes - done}};
        ssize_t bytes = writev(peer->fd, parts, 2);
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (bytes < 0) fails("write");
        peer->sent += bytes;
        if (peer->sent < sizeof *header + action->bytes) return;
        check(topocoll_exchange_complete(exchange, action->token, action->bytes));
        peer->first = (peer->first + 1) % MOST, peer->count--, peer->sent = 0;
    }
}

/* Starts what can be started; returns whether the exchange is done. */
static int advance(void) {
    for (;;) {
        topocoll_action action;
        check(topocoll_exchange_poll(exchange, &action));
        if (action.kind == TOPOCOLL_KIND_DONE) return 1;
        if (action.kind == TOPOCOLL_KIND_WAIT) return 0;
        if (action.kind == TOPOCOLL_KIND_RECEIVE) {
            posted[posted_count++] = action;
            continue;
        }
        struct peer *peer = &peers[action.peer];
        int last = (peer->first + peer->count++) % MOST;
        peer->sends[last].action = action;
        peer->sends[last].header = (struct header){number, action.tag, action.bytes};
    }
}

static void exchange_blocks(uint32_t rank) {
    char message[200];
    topocoll_request request = {0};
    request.size = sizeof request;
    request.machine = "cluster:3,3";
    request.operation = "alltoall";
    request.block_bytes = BLOCK;
    request.rank = rank;
    request.message = message, request.message_bytes = sizeof message;
    topocoll_plan *plan;
    if (topocoll_plan_make(&request, &plan) != TOPOCOLL_STATUS_OK) {
        fprintf(stderr, "%s\n", message);
        exit(1);
    }
    if (topocoll_plan_most_outstanding(plan) > MOST) exit(2);
    topocoll_buffers buffers = {0};
    buffers.input_bytes = topocoll_plan_input_bytes(plan, BLOCK);
    buffers.output_bytes = topocoll_plan_output_bytes(plan, BLOCK);
    buffers.work_bytes = topocoll_plan_workspace_bytes(plan, BLOCK);
    uint8_t *input = calloc(1, buffers.input_bytes);
    buffers.input = input;
    buffers.output = malloc(buffers.output_bytes);
    buffers.work = malloc(buffers.work_bytes + 1);
    exchange = topocoll_exchange_new(plan);
    for (number = 0; number < ROUNDS; number++) {
        for (int to = 0; to < RANKS; to++) snprintf((char *)input + to * BLOCK, BLOCK, "%u:%u->%d", number, rank, to);
        check(topocoll_exchange_begin(exchange, BLOCK, &buffers));
        while (!advance()) {
            struct pollfd fds[RANKS];
            for (uint32_t i = 0; i < RANKS; i++) {
                short events = (can_read(i) ? POLLIN : 0) | (peers[i].count > 0 ? POLLOUT : 0);
                fds[i] = (struct pollfd){i == rank ? -1 : peers[i].fd, events, 0};
            }
            if (poll(fds, RANKS, -1) < 0 && errno != EINTR) fails("poll");
            for (uint32_t i = 0; i < RANKS; i++) {
                if (fds[i].revents & POLLOUT) write_to(i);
                if (fds[i].revents & (POLLIN | POLLHUP) && can_read(i)) read_from(i);
            }
        }
    }
    if (rank == 3) {
        printf("%s, predicted %s\n", topocoll_plan_algorithm(plan), topocoll_plan_seconds(plan) > 0 ? "a time" : "nothing");
        for (int from = 0; from < RANKS; from++) printf("%s ", (char *)buffers.output + from * BLOCK);
        printf("\n");
    }
    topocoll_exchange_free(exchange);
    topocoll_plan_free(plan);
    free(input), free(buffers.output), free(buffers.work);
}

int main(void) {
    int fds[RANKS][RANKS];
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < a; b++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair)) fails("socketpair");
            fds[a][b] = pair[0], fds[b][a] = pair[1];
        }
    for (int rank = 0; rank < RANKS; rank++)
        if (fork() == 0) {
            for (int a = 0; a < RANKS; a++)
                for (int b = 0; b < RANKS; b++) {
                    if (a == b) continue;
                    if (a == rank) peers[b].fd = fds[a][b];
                    else close(fds[a][b]);
                }
            exchange_blocks(rank);
            return 0;
        }
    int failed = 0, status;
    while (wait(&status) > 0) failed |= status;
    return failed != 0;
}
