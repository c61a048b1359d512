/* topocoll: all-to-all and all-gather schedules, to be driven over a transport of one's own.
 * Written by cbindgen from crates/capi/src/lib.rs; tests/c.rs compares. */

#ifndef TOPOCOLL_H
#define TOPOCOLL_H

#include <stddef.h>
#include <stdint.h>

/*
 Changes whenever a program compiled against an earlier header would not run.
 */
#define TOPOCOLL_ABI_VERSION 1

/*
 How a call ended.
 */
typedef enum topocoll_status {
  /*
   As asked.
   */
  TOPOCOLL_STATUS_OK = 0,
  /*
   A null pointer, text that is not UTF-8, parameters that are no `name=value`, set one twice or
   are of no algorithm, or a call before the one that it follows.
   */
  TOPOCOLL_STATUS_ARGUMENT = 1,
  /*
   No such machine, algorithm, parameter or rank, or one that does not serve.
   */
  TOPOCOLL_STATUS_PLAN = 2,
  /*
   A buffer that is too small, a short message, a token that is not outstanding, or an exchange
   that was stopped.
   */
  TOPOCOLL_STATUS_EXCHANGE = 3,
  /*
   A defect of the library.
   */
  TOPOCOLL_STATUS_BUG = 4,
} topocoll_status;

/*
 What to do next.
 */
typedef enum topocoll_kind {
  /*
   Start sending `bytes` bytes from `data`; they stay until the token is completed.
   */
  TOPOCOLL_KIND_SEND = 0,
  /*
   Start receiving `bytes` bytes at `data`, which belong to the message until it is completed.
   */
  TOPOCOLL_KIND_RECEIVE = 1,
  /*
   Nothing before a message is completed.
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
 The memories of an exchange, to be left in place until it is done or freed.
 */
typedef struct topocoll_buffers {
  /*
   Blocks in order of destinations; only read.
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
   Workspace; may be null where none is needed.
   */
  uint8_t *work;
  /*
   Its bytes.
   */
  uint64_t work_bytes;
} topocoll_buffers;

/*
 An action, and for messages all that a transport needs.
 */
typedef struct topocoll_action {
  /*
   What to do.
   */
  enum topocoll_kind kind;
  /*
   The other end.
   */
  uint32_t peer;
  /*
   The same at both ends.
   */
  uint32_t tag;
  /*
   To be completed.
   */
  uint64_t token;
  /*
   The first byte; only read for sends.
   */
  uint8_t *data;
  /*
   How many.
   */
  uint64_t bytes;
} topocoll_action;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the interface that the library has; compare with `TOPOCOLL_ABI_VERSION`.
 */
uint32_t topocoll_abi_version(void);

/*
 What went wrong in the last call of this thread that failed. Valid until the next one fails.
 */
const char *topocoll_message(void);

/*
 Makes the plan of one rank.

 `machine_name` is a file, a shipped machine or a short form such as `torus:8x8`; `operation`
 `alltoall` or `allgather`; `algorithm` a name, or null for the one predicted to be fastest;
 `parameters` null or `name=value` pairs with commas between; `ports` 0 for the machine's own. `out`
 is null where there is no plan.

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
 Frees a plan; its exchanges may go on. Null is left alone.

 # Safety
 `plan` is null or from `topocoll_plan_new`, and not freed before.
 */
void topocoll_plan_free(struct topocoll_plan *plan);

/*
 Bytes of the input for blocks of `block_bytes`, which need not be those planned for.

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
 Steps, and tags: those of messages are below this.

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
 Makes the state of a rank's exchanges; null for a null plan. This is where memory is taken:
 the calls below take none, but for messages of errors.

 # Safety
 `plan` is null or a plan that is not freed.
 */
struct topocoll_exchange *topocoll_exchange_new(const struct topocoll_plan *plan);

/*
 Frees an exchange, in the middle if need be. Null is left alone.

 # Safety
 `exchange` is null or from `topocoll_exchange_new`, and not freed before.
 */
void topocoll_exchange_free(struct topocoll_exchange *exchange);

/*
 Begins an exchange of blocks of `block_bytes` in these buffers, whatever became of the one
 before.

 # Safety
 `exchange` is one that is not freed and no other thread uses; `buffers` is readable, and its
 memories are as long as it says and stay in place until the exchange is done, begun anew or
 freed. They do not overlap.
 */
enum topocoll_status topocoll_exchange_begin(struct topocoll_exchange *exchange,
                                             uint64_t block_bytes,
                                             const struct topocoll_buffers *buffers);

/*
 Does the copies that are due and says what to do next.

 # Safety
 As `topocoll_exchange_begin`; `out` may be written to.
 */
enum topocoll_status topocoll_exchange_poll(struct topocoll_exchange *exchange,
                                            struct topocoll_action *out);

/*
 Says that a message has been sent, or received, whole: `bytes` of it. Another number than the
 action's stops the exchange.

 # Safety
 `exchange` is one that is not freed and no other thread uses.
 */
enum topocoll_status topocoll_exchange_complete(struct topocoll_exchange *exchange,
                                                uint64_t token,
                                                uint64_t bytes);

/*
 Stops an exchange; what is outstanding is the caller's to withdraw.

 # Safety
 `exchange` is one that is not freed and no other thread uses.
 */
enum topocoll_status topocoll_exchange_cancel(struct topocoll_exchange *exchange);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOPOCOLL_H */
