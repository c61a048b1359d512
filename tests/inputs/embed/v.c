/* Default choices for blocks of several sizes, on five machines at three sizes. */
#include <stdio.h>
#include <topocoll.h>
int main(void) {
    const char *machines[] = {"full:4", "full:16", "torus:4x4", "cluster:2,2", "cluster:4*4"};
    uint64_t sizes[16], bytes[3];
    for (int i = 0; i < 16; i++) sizes[i] = 5;
    for (int i = 0; i < 5; i++)
        for (int block = 64; block < 1 << 21; block *= 32) {
            topocoll_plan *plan;
            topocoll_request request = {sizeof request};
            request.machine = machines[i];
            request.operation = "alltoall";
            request.block_bytes = block;
            request.rank = 1;
            request.sizes_differ = 1;
            if (topocoll_plan_make(&request, &plan) || topocoll_plan_bytes_v(plan, sizes, sizes, bytes)) {
                puts(topocoll_message());
                continue;
            }
            printf("%s %d B: %s\n", machines[i], block, topocoll_plan_algorithm(plan));
            topocoll_plan_free(plan);
        }
    return 0;
}
