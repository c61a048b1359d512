/* topocoll: all-to-all and all-gather schedules, driven over the caller's transport.
 * Written by cbindgen from crates/capi/src/lib.rs; tests/c.rs compares. */

#ifndef TOPOCOLL_H
#define TOPOCOLL_H

#include <stddef.h>
#include <stdint.h>

/*
 Changes when programs compiled against an earlier header no longer run.
 */
#define TOPOCOLL_ABI_VERSION 1

/*
 The result of a call.
 */
typedef enum topocoll_status {
  /*
   Success.
   */
  TOPOCOLL_STATUS_OK = 0,
  /*
   A null pointer, text that is not UTF-8, a parameter that is not `name=value`, is set twice or
   has no algorithm, or a call before the one that it must follow.
   */
  TOPOCOLL_STATUS_ARGUMENT = 1,
  /*
   An unknown machine, algorithm, parameter or rank, or an algorithm that is not applicable.
   */
  TOPOCOLL_STATUS_PLAN = 2,
  /*
   A buffer that is too small, a message of another length, a token that is not outstanding, or a
   stopped exchange.
   */
  TOPOCOLL_STATUS_EXCHANGE = 3,
  /*
   A defect of the library.
   */
  TOPOCOLL_STATUS_BUG = 4,
} topocoll_status;

/*
 The kind of an action.
 */
typedef enum topocoll_kind {
  /*
   Start sending `bytes` bytes from `data`; they stay unchanged until the token is completed.
   */
  TOPOCOLL_KIND_SEND = 0,
  /*
   Start receiving `bytes` bytes at `data`; they belong to the message until it is completed.
   */
  TOPOCOLL_KIND_RECEIVE = 1,
  /*
   Wait until a message is completed.
   */
  TOPOCOLL_KIND_WAIT = 2,
  /*
   The output is complete.
   */
  TOPOCOLL_KIND_DONE = 3,
  /*
   Copy bytes; only `topocoll_exchange_next` asks for it.
   */
  TOPOCOLL_KIND_COPY = 4,
} topocoll_kind;

/*
 A memory of an exchange.
 */
typedef enum topocoll_memory {
  /*
   Blocks in order of destinations; read only. In place there is none.
   */
  TOPOCOLL_MEMORY_INPUT = 0,
  /*
   Blocks in order of sources; in place, the blocks to send at first.
   */
  TOPOCOLL_MEMORY_OUTPUT = 1,
  /*
   Workspace.
   */
  TOPOCOLL_MEMORY_WORK = 2,
} topocoll_memory;

/*
 One rank's exchanges, one after another.
 */
typedef struct topocoll_exchange topocoll_exchange;

/*
 One rank's plan.
 */
typedef struct topocoll_plan topocoll_plan;

/*
 The memories of an exchange. They stay in place until the exchange is done or freed.
 */
typedef struct topocoll_buffers {
  /*
   Blocks in order of destinations; read only.
   */
  const uint8_t *input;
  /*
   Its bytes.
   */
  uint64_t input_bytes;
  /*
   Blocks in order of sources.
   */
  uint8_t *output;
  /*
   Its bytes.
   */
  uint64_t output_bytes;
  /*
   Workspace; may be null if none is needed.
   */
  uint8_t *work;
  /*
   Its bytes.
   */
  uint64_t work_bytes;
} topocoll_buffers;

/*
 An action. For a send or receive, it has all that a transport needs.
 */
typedef struct topocoll_action {
  /*
   The kind.
   */
  enum topocoll_kind kind;
  /*
   The rank at the other end.
   */
  uint32_t peer;
  /*
   The tag, equal at both ends.
   */
  uint32_t tag;
  /*
   The argument of `topocoll_exchange_complete`.
   */
  uint64_t token;
  /*
   The first byte; a send only reads.
   */
  uint8_t *data;
  /*
   The number of bytes.
   */
  uint64_t bytes;
} topocoll_action;

/*
 Bytes of a memory. Offsets count the bytes of blocks in order, wherever the caller keeps them: with
 blocks of one size, byte i belongs to block i / `block_bytes`.
 */
typedef struct topocoll_region {
  /*
   The memory.
   */
  enum topocoll_memory memory;
  /*
   The first byte.
   */
  uint64_t offset;
  /*
   The number of bytes.
   */
  uint64_t bytes;
} topocoll_region;

/*
 An action in terms of regions.
 */
typedef struct topocoll_event {
  /*
   The kind.
   */
  enum topocoll_kind kind;
  /*
   The rank at the other end of a message.
   */
  uint32_t peer;
  /*
   The tag, equal at both ends.
   */
  uint32_t tag;
  /*
   The argument of `topocoll_exchange_complete`.
   */
  uint64_t token;
  /*
   The bytes to send, the place to receive in, or the bytes to copy.
   */
  struct topocoll_region region;
  /*
   Of a copy, where its bytes go.
   */
  struct topocoll_region to;
} topocoll_event;

/*
 A request for a plan. Set all of it to zero first: zero and null mean the machine's own or nothing.
 */
typedef struct topocoll_request {
  /*
   `sizeof(topocoll_request)`; later versions of the library accept this size too.
   */
  uint64_t size;
  /*
   A machine file, a shipped machine or a short form such as `torus:8x8`.
   */
  const char *machine;
  /*
   A machine or file whose timing is used, or null for the machine's own.
   */
  const char *timing;
  /*
   `alltoall` or `allgather`.
   */
  const char *operation;
  /*
   A name, or null for the one predicted to be fastest.
   */
  const char *algorithm;
  /*
   Null, or `name=value` pairs with commas between.
   */
  const char *parameters;
  /*
   Bytes of a block, for the choice; exchanges may have others.
   */
  uint64_t block_bytes;
  /*
   Ports of a rank, and of a node where `node_ports` is 0; or 0. More than can be used are cut.
   */
  uint32_t ports;
  /*
   The rank, as the machine numbers it.
   */
  uint32_t rank;
  /*
   Ranks that exchange among themselves, in the order of their blocks; null for all. Messages
   name peers as the machine numbers them.
   */
  const uint32_t *ranks;
  /*
   The number of these.
   */
  uint32_t rank_count;
  /*
   Not 0 for an exchange whose input lies in the output, as with `MPI_IN_PLACE`.
   */
  uint32_t in_place;
  /*
   Room for the message of an error, or null.
   */
  char *message;
  /*
   Its bytes; a longer message is cut.
   */
  uint64_t message_bytes;
  /*
   Ports of a node of several ranks to and from other nodes, or 0 for those of a rank.
   */
  uint32_t node_ports;
  /*
   Not 0 for exchanges of blocks of several sizes, by `topocoll_exchange_begin_v` or
   `topocoll_exchange_start_v`: algorithms that pass blocks on are left out, and a named one is
   refused. The choice is that for blocks of `block_bytes`, about the mean.
   */
  uint32_t sizes_differ;
  /*
   Groups that exchange at the same time, each among its own ranks; null for none. A name such as `peers`
   or `dim:0,2`, or the ranks of a group in each line. The plan is that of the group of `rank`, the choice
   that for all groups together.
   */
  const char *groups;
} topocoll_request;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the library's interface; compare it with `TOPOCOLL_ABI_VERSION`.
 */
uint32_t topocoll_abi_version(void);

/*
 The message of the last call of this thread that failed. Valid until the next call fails.
 */
const char *topocoll_message(void);

/*
 Makes the plan of one rank.

 `machine_name` is a file, a shipped machine or a short form such as `torus:8x8`; `operation`
 `alltoall` or `allgather`; `algorithm` a name, or null for the one predicted to be fastest;
 `parameters` null or `name=value` pairs with commas between; `ports` 0 for the machine's own, and cut
 to those that its ranks can use. On an error, `*out` is null. `topocoll_plan_make` takes more.

 # Safety
 Texts end with a zero byte; `out` may be written to.
 */
enum topocoll_status topocoll_plan_new(const char *machine_name,
                                       const char *operation,
                                       const char *algorithm,
                                       const char *parameters,
                                       uint64_t block_bytes,
                                       uint32_t ports,
                                       uint32_t rank,
                                       struct topocoll_plan **out);

/*
 Frees a plan; its exchanges remain valid. Null is ignored.

 # Safety
 `plan` is null or from `topocoll_plan_new`, and not freed before.
 */
void topocoll_plan_free(struct topocoll_plan *plan);

/*
 Bytes of the input for blocks of `block_bytes`, which may differ from the planned size.

 # Safety
 `plan` is null or a plan that is not freed.
 */
uint64_t topocoll_plan_input_bytes(const struct topocoll_plan *plan, uint64_t block_bytes);

/*
 Bytes of the output.

 # Safety
 `plan` is null or a plan that is not freed.
 */
uint64_t topocoll_plan_output_bytes(const struct topocoll_plan *plan, uint64_t block_bytes);

/*
 Bytes of workspace.

 # Safety
 `plan` is null or a plan that is not freed.
 */
uint64_t topocoll_plan_workspace_bytes(const struct topocoll_plan *plan, uint64_t block_bytes);

/*
 Steps, and tags: the tags of messages are below this.

 # Safety
 `plan` is null or a plan that is not freed.
 */
uint64_t topocoll_plan_steps(const struct topocoll_plan *plan);

/*
 Messages sent and received in all.

 # Safety
 `plan` is null or a plan that is not freed.
 */
uint64_t topocoll_plan_messages(const struct topocoll_plan *plan);

/*
 The most messages outstanding at once.

 # Safety
 `plan` is null or a plan that is not freed.
 */
uint64_t topocoll_plan_most_outstanding(const struct topocoll_plan *plan);

/*
 Makes the state of a rank's exchanges; null for a null plan. It allocates, and so does the first exchange of
 blocks of several sizes; the other calls below allocate only messages of errors.

 # Safety
 `plan` is null or a plan that is not freed.
 */
struct topocoll_exchange *topocoll_exchange_new(const struct topocoll_plan *plan);

/*
 Frees an exchange, at any time. Null is ignored.

 # Safety
 `exchange` is null or from `topocoll_exchange_new`, and not freed before.
 */
void topocoll_exchange_free(struct topocoll_exchange *exchange);

/*
 Begins an exchange of blocks of `block_bytes` in these buffers, in any state of the previous
 exchange. In place the input is not used.

 # Safety
 `exchange` is one that is not freed and no other thread uses; `buffers` is readable, and its
 memories have its sizes and stay in place until the exchange is done, begun again or
 freed. They do not overlap.
 */
enum topocoll_status topocoll_exchange_begin(struct topocoll_exchange *exchange,
                                             uint64_t block_bytes,
                                             const struct topocoll_buffers *buffers);

/*
 The same for blocks of several sizes, as `topocoll_plan_bytes_v` takes them.

 # Safety
 As `topocoll_exchange_begin`; lists that are not null have as many sizes as there are blocks.
 */
enum topocoll_status topocoll_exchange_begin_v(struct topocoll_exchange *exchange,
                                               const uint64_t *send,
                                               const uint64_t *receive,
                                               const struct topocoll_buffers *buffers);

/*
 Performs the copies that are due, and returns the next action.

 # Safety
 As `topocoll_exchange_begin`; `out` may be written to.
 */
enum topocoll_status topocoll_exchange_poll(struct topocoll_exchange *exchange,
                                            struct topocoll_action *out);

/*
 Records that a message of `bytes` has been sent or received. Another number than the action's
 stops the exchange.

 # Safety
 `exchange` is one that is not freed and no other thread uses.
 */
enum topocoll_status topocoll_exchange_complete(struct topocoll_exchange *exchange,
                                                uint64_t token,
                                                uint64_t bytes);

/*
 Stops an exchange. The caller withdraws the outstanding messages.

 # Safety
 `exchange` is one that is not freed and no other thread uses.
 */
enum topocoll_status topocoll_exchange_cancel(struct topocoll_exchange *exchange);

/*
 Bytes of the memories of an exchange of blocks of several sizes: of the input, the output and the
 workspace. `send` has the bytes of each block to send, by destination, in an all-gather of the one
 block; `receive` those of each block to receive, by source. The sizes of blocks for other ranks
 must not matter to this rank, so algorithms are refused that pass them on, such as `bruck`: a request
 with `sizes_differ` chooses another one. A block that the rank keeps has one size in both lists.

 # Safety
 `plan` is null or a plan that is not freed; lists that are not null have as many sizes as there
 are blocks; `bytes` is null or has room for three.
 */
enum topocoll_status topocoll_plan_bytes_v(const struct topocoll_plan *plan,
                                           const uint64_t *send,
                                           const uint64_t *receive,
                                           uint64_t *bytes);

/*
 Begins an exchange of blocks of `block_bytes` in memories that only the caller knows, in any state
 of the previous exchange. `topocoll_exchange_next` gives its actions.

 # Safety
 `exchange` is one that is not freed and no other thread uses.
 */
enum topocoll_status topocoll_exchange_start(struct topocoll_exchange *exchange,
                                             uint64_t block_bytes);

/*
 The same for blocks of several sizes, as `topocoll_plan_bytes_v` takes them.

 # Safety
 `exchange` is one that is not freed and no other thread uses; lists that are not null have as many
 sizes as there are blocks.
 */
enum topocoll_status topocoll_exchange_start_v(struct topocoll_exchange *exchange,
                                               const uint64_t *send,
                                               const uint64_t *receive);

/*
 The next action in terms of regions. A copy is done when the next call begins; copies come one
 piece at a time.

 # Safety
 `exchange` is one that is not freed and no other thread uses; `out` may be written to.
 */
enum topocoll_status topocoll_exchange_next(struct topocoll_exchange *exchange,
                                            struct topocoll_event *out);

/*
 The message of the exchange's last call that failed; null for a null exchange. Valid until its next
 call fails.

 # Safety
 `exchange` is null or one that is not freed and no other thread uses.
 */
const char *topocoll_exchange_message(struct topocoll_exchange *exchange);

/*
 Makes the plan that a request describes. On an error, `*out` is null, and `message` of the request
 has the text.

 # Safety
 `request` is readable, its texts end with a zero byte, its lists and its room have the given
 sizes; `out` may be written to.
 */
enum topocoll_status topocoll_plan_make(const struct topocoll_request *request,
                                        struct topocoll_plan **out);

/*
 The name of the plan's algorithm; null for a null plan. Valid as long as the plan.

 # Safety
 `plan` is null or a plan that is not freed.
 */
const char *topocoll_plan_algorithm(const struct topocoll_plan *plan);

/*
 Its parameters, `name=value` pairs with commas between, as a request takes them; null for a null
 plan. Valid as long as the plan.

 # Safety
 `plan` is null or a plan that is not freed.
 */
const char *topocoll_plan_parameters(const struct topocoll_plan *plan);

/*
 Its predicted seconds for blocks of the planned size. Not a number where nothing was predicted:
 for a null plan, an algorithm that was named to `topocoll_plan_new`, or counts that take too much
 memory.

 # Safety
 `plan` is null or a plan that is not freed.
 */
double topocoll_plan_seconds(const struct topocoll_plan *plan);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOPOCOLL_H */
