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
} topocoll_kind;

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
 `parameters` null or `name=value` pairs with commas between; `ports` 0 for the machine's own. On
 an error, `*out` is null.

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
 Makes the state of a rank's exchanges; null for a null plan. It allocates; the calls below
 allocate only messages of errors.

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
 exchange.

 # Safety
 `exchange` is one that is not freed and no other thread uses; `buffers` is readable, and its
 memories have its sizes and stay in place until the exchange is done, begun again or
 freed. They do not overlap.
 */
enum topocoll_status topocoll_exchange_begin(struct topocoll_exchange *exchange,
                                             uint64_t block_bytes,
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

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOPOCOLL_H */
