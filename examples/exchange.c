/* Eight ranks of a torus exchange 8 blocks each, three times, over the program's own transport: a list of
 * messages in one process, which keeps their order. A fast rank is in the next exchange before others have
 * ended this one. Prints the last blocks of rank 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <topocoll.h>

#define RANKS 8
#define BLOCK 8
#define ROUNDS 3

struct message {
    uint32_t from, to, tag;
    uint64_t bytes;
    uint8_t *data;
    struct message *next;
};

/* Messages sent and not yet received, and the receives that each rank waits for. */
static struct message *under_way;
static topocoll_action waiting[RANKS][16];
static int waiting_count[RANKS];

static void check(topocoll_status status) {
    if (status != TOPOCOLL_STATUS_OK) {
        fprintf(stderr, "%s\n", topocoll_message());
        exit(1);
    }
}

static void send_message(uint32_t from, const topocoll_action *action) {
    struct message *message = malloc(sizeof *message), **last = &under_way;
    *message = (struct message){from, action->peer, action->tag, action->bytes, NULL, NULL};
    message->data = malloc(action->bytes);
    memcpy(message->data, action->data, action->bytes);
    while (*last) last = &(*last)->next;
    *last = message;
}

/* Completes receives of a rank whose messages have arrived. */
static int receive_messages(uint32_t rank, topocoll_exchange *exchange) {
    int any = 0;
    for (int i = 0; i < waiting_count[rank]; i++) {
        topocoll_action *action = &waiting[rank][i];
        struct message **at = &under_way, *found;
        while ((found = *at) && !(found->to == rank && found->from == action->peer && found->tag == action->tag))
            at = &found->next;
        if (!found) continue;
        if (found->bytes == action->bytes) memcpy(action->data, found->data, found->bytes);
        check(topocoll_exchange_complete(exchange, action->token, found->bytes));
        *at = found->next;
        free(found->data);
        free(found);
        waiting[rank][i--] = waiting[rank][--waiting_count[rank]];
        any = 1;
    }
    return any;
}

static topocoll_exchange *exchange[RANKS];
static topocoll_buffers buffers[RANKS];
static uint8_t *input[RANKS];
static int round_of[RANKS];

static void begin(uint32_t rank) {
    for (int to = 0; to < RANKS; to++)
        snprintf((char *)input[rank] + to * BLOCK, BLOCK, "%d:%u->%d", round_of[rank], rank, to);
    check(topocoll_exchange_begin(exchange[rank], BLOCK, &buffers[rank]));
}

int main(void) {
    if (topocoll_abi_version() != TOPOCOLL_ABI_VERSION) return 2;

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        topocoll_plan *plan;
        check(topocoll_plan_new("torus:4x2", "alltoall", NULL, NULL, BLOCK, 0, rank, &plan));
        buffers[rank].input_bytes = topocoll_plan_input_bytes(plan, BLOCK);
        buffers[rank].output_bytes = topocoll_plan_output_bytes(plan, BLOCK);
        buffers[rank].work_bytes = topocoll_plan_workspace_bytes(plan, BLOCK);
        buffers[rank].input = input[rank] = malloc(buffers[rank].input_bytes);
        buffers[rank].output = malloc(buffers[rank].output_bytes);
        buffers[rank].work = malloc(buffers[rank].work_bytes + 1);
        exchange[rank] = topocoll_exchange_new(plan);
        begin(rank);
        topocoll_plan_free(plan); /* the exchange stays valid */
    }

    for (int done = 0; done < RANKS;) {
        done = 0;
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            topocoll_action action;
            do {
                check(topocoll_exchange_poll(exchange[rank], &action));
                if (action.kind == TOPOCOLL_KIND_SEND) {
                    send_message(rank, &action);
                    check(topocoll_exchange_complete(exchange[rank], action.token, action.bytes));
                } else if (action.kind == TOPOCOLL_KIND_RECEIVE) {
                    waiting[rank][waiting_count[rank]++] = action;
                } else if (action.kind == TOPOCOLL_KIND_DONE) {
                    if (++round_of[rank] >= ROUNDS) break;
                    begin(rank);
                }
            } while (action.kind != TOPOCOLL_KIND_WAIT || receive_messages(rank, exchange[rank]));
            done += round_of[rank] >= ROUNDS;
        }
    }

    for (int from = 0; from < RANKS; from++) printf("%s ", (char *)buffers[3].output + from * BLOCK);
    printf("\n");
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        topocoll_exchange_free(exchange[rank]);
        free(input[rank]);
        free(buffers[rank].output);
        free(buffers[rank].work);
    }
    return 0;
}
