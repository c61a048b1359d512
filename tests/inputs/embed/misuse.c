#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <math.h>
#include <topocoll.h>
static int n, bad;
#define T(name, expr, cond) do { n++; long r = (long)(expr); int ok = (cond); if (!ok) bad++; printf("%2d %s %-42s -> %ld : %s\n", n, ok ? "ok " : "BAD", name, r, topocoll_message() ? topocoll_message() : "(null)"); } while (0)
static topocoll_plan *mk(const char *m, const char *a, uint32_t r) { topocoll_plan *p = NULL; topocoll_plan_new(m, "alltoall", a, NULL, 64, 0, r, &p); return p; }
static void *thr(void *v) { topocoll_plan *p = v; for (int i = 0; i < 200; i++) { topocoll_exchange *x = topocoll_exchange_new(p); topocoll_exchange_start(x, 8); topocoll_event e; do { if (topocoll_exchange_next(x, &e)) break; if (e.kind == TOPOCOLL_KIND_SEND || e.kind == TOPOCOLL_KIND_RECEIVE) topocoll_exchange_complete(x, e.token, e.region.bytes); } while (e.kind != TOPOCOLL_KIND_DONE); topocoll_exchange_free(x); topocoll_plan *q; topocoll_plan_new("nonsense", "alltoall", 0, 0, 1, 0, 0, &q); if (!strstr(topocoll_message(), "nonsense")) abort(); } return NULL; }
int main(void) {
    topocoll_plan *p = (void *)1;
    T("null machine", topocoll_plan_new(NULL, "alltoall", NULL, NULL, 64, 0, 0, &p), r == 1 && !p);
    T("null operation", topocoll_plan_new("full:4", NULL, NULL, NULL, 64, 0, 0, &p), r == 1);
    T("null out", topocoll_plan_new("full:4", "alltoall", NULL, NULL, 64, 0, 0, NULL), r == 1);
    T("unknown machine", topocoll_plan_new("torus:0x8", "alltoall", NULL, NULL, 64, 0, 0, &p), r == 2);
    T("machine file missing", topocoll_plan_new("/nonexistent/m.toml", "alltoall", NULL, NULL, 64, 0, 0, &p), r == 2);
    T("directory as machine", topocoll_plan_new("/", "alltoall", NULL, NULL, 64, 0, 0, &p), r == 2);
    T("unknown op", topocoll_plan_new("full:4", "allreduce", NULL, NULL, 64, 0, 0, &p), r == 1 || r == 2);
    T("unknown algorithm", topocoll_plan_new("full:4", "alltoall", "brook", NULL, 64, 0, 0, &p), r == 2);
    T("param without algorithm", topocoll_plan_new("full:4", "alltoall", NULL, "radix=2", 64, 0, 0, &p), r == 1);
    T("param twice", topocoll_plan_new("full:4", "alltoall", "bruck", "radix=2,radix=3", 64, 0, 0, &p), r == 1);
    T("param garbage", topocoll_plan_new("full:4", "alltoall", "bruck", "radix", 64, 0, 0, &p), r == 1);
    T("param value garbage", topocoll_plan_new("full:4", "alltoall", "bruck", "radix=999999999999999999999", 64, 0, 0, &p), r == 2);
    T("rank out of range", topocoll_plan_new("full:4", "alltoall", NULL, NULL, 64, 0, 4, &p), r == 2);
    T("block 0", topocoll_plan_new("full:4", "alltoall", NULL, NULL, 0, 0, 0, &p), r == 2);
    T("block 2^64-1", topocoll_plan_new("full:4", "alltoall", NULL, NULL, UINT64_MAX, 0, 0, &p), r == 2);
    T("ports 2^32-1 are cut", topocoll_plan_new("full:4", "alltoall", NULL, NULL, 64, UINT32_MAX, 0, &p), r == 0); topocoll_plan_free(p);
    T("not UTF-8", topocoll_plan_new("full:\xff\xfe", "alltoall", NULL, NULL, 64, 0, 0, &p), r == 1);
    T("2^31 ranks", topocoll_plan_new("full:2147483648", "alltoall", "direct", NULL, 64, 0, 0, &p), r == 2);
    T("huge torus", topocoll_plan_new("torus:99999x99999", "alltoall", NULL, NULL, 64, 0, 0, &p), r == 2);
    topocoll_request q = {0};
    T("request size 0", topocoll_plan_make(&q, &p), r == 1);
    q.size = sizeof q;
    T("request empty", topocoll_plan_make(&q, &p), r == 1);
    T("request null", topocoll_plan_make(NULL, &p), r == 1);
    q.size = sizeof q + 8; q.machine = "full:4"; q.operation = "alltoall"; q.block_bytes = 8;
    T("request too large size", topocoll_plan_make(&q, &p), r == 1);
    q.size = 8;
    T("request size 8", topocoll_plan_make(&q, &p), r == 1);
    q.size = sizeof q; uint32_t dup[] = {1, 1}; q.ranks = dup; q.rank_count = 2; q.rank = 1;
    T("subset with duplicates", topocoll_plan_make(&q, &p), r == 2 || r == 1);
    uint32_t out4[] = {1, 9}; q.ranks = out4;
    T("subset out of range", topocoll_plan_make(&q, &p), r == 2 || r == 1);
    uint32_t ok2[] = {1, 3}; q.ranks = ok2; q.rank = 0;
    T("rank not in subset", topocoll_plan_make(&q, &p), r == 2 || r == 1);
    q.ranks = NULL; q.rank_count = 2; q.rank = 1;
    T("rank_count without ranks", topocoll_plan_make(&q, &p), r == 1);
    q.ranks = ok2; q.rank_count = 0;
    T("ranks with rank_count 0", topocoll_plan_make(&q, &p), r == 1 || r == 2);
    if (!topocoll_plan_make(&q, &p)) { printf("   (accepted: ranks non-null, count 0 -> messages %lu)\n", (long)topocoll_plan_messages(p)); topocoll_plan_free(p); }
    char m[1] = {'x'}; q.message = m; q.message_bytes = 1; q.machine = "nope"; q.ranks = NULL;
    T("message room of 1", topocoll_plan_make(&q, &p), r == 2 && m[0] == 0);
    q.message_bytes = 100; q.message = NULL;
    T("message null, bytes 100", topocoll_plan_make(&q, &p), r == 1 || r == 2);
    char m5[12]; memset(m5, 'x', 12); q.message = m5; q.message_bytes = 12; q.machine = "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";
    T("message cut", topocoll_plan_make(&q, &p), r == 2); printf("   cut: '%s'\n", m5);
    q.size = sizeof q; memset(&q, 0, sizeof q); q.size = sizeof q; q.machine = "full:4"; q.operation = "alltoall"; q.block_bytes = 8; q.timing = "nope";
    T("timing unknown", topocoll_plan_make(&q, &p), r == 2);
    T("plan free null", (topocoll_plan_free(NULL), 0), 1);
    T("input_bytes null", topocoll_plan_input_bytes(NULL, 8), r == 0);
    T("workspace null", topocoll_plan_workspace_bytes(NULL, 8), r == 0);
    T("algorithm null", topocoll_plan_algorithm(NULL), r == 0);
    T("seconds null", isnan(topocoll_plan_seconds(NULL)), r == 1);
    T("exchange_new null", topocoll_exchange_new(NULL), r == 0);
    T("poll null", topocoll_exchange_poll(NULL, NULL), r == 1);
    T("begin null", topocoll_exchange_begin(NULL, 1, NULL), r == 1);
    T("complete null", topocoll_exchange_complete(NULL, 1, 1), r == 1);
    T("cancel null", topocoll_exchange_cancel(NULL), r == 1);
    T("exchange_message null", topocoll_exchange_message(NULL), r == 0);
    p = mk("full:4", "bruck", 1);
    topocoll_exchange *x = topocoll_exchange_new(p);
    topocoll_action a; topocoll_event e;
    T("poll before begin", topocoll_exchange_poll(x, &a), r == 1);
    T("next before start", topocoll_exchange_next(x, &e), r == 1);
    T("complete before begin", topocoll_exchange_complete(x, 0, 0), r != 0);
    T("cancel before begin", topocoll_exchange_cancel(x), 1);
    uint8_t in[4 * 64], out[4 * 64], w[4096];
    topocoll_buffers b = {in, 4 * 64 - 1, out, 4 * 64, w, 4096};
    memset(in, 7, sizeof in);
    T("input 1 short", topocoll_exchange_begin(x, 64, &b), r == 3);
    b.input_bytes = 256; b.output_bytes = 255;
    T("output 1 short", topocoll_exchange_begin(x, 64, &b), r == 3);
    b.output_bytes = 256; b.work_bytes = 0; b.work = NULL;
    T("work null", topocoll_exchange_begin(x, 64, &b), r == 3 || r == 1);
    b.work_bytes = 4096; 
    T("work null with bytes", topocoll_exchange_begin(x, 64, &b), r == 3 || r == 1);
    b.work = w; b.input = NULL;
    T("input null with bytes", topocoll_exchange_begin(x, 64, &b), r == 3 || r == 1);
    b.input = in;
    T("block 2^63", topocoll_exchange_begin(x, 1ull << 63, &b), r == 3 || r == 1);
    T("block 2^64-1", topocoll_exchange_begin(x, UINT64_MAX, &b), r == 3 || r == 1);
    T("block 0", topocoll_exchange_begin(x, 0, &b), 1);
    T("start block 2^64-1", topocoll_exchange_start(x, UINT64_MAX), 1);
    if (topocoll_exchange_next(x, &e) == 0) printf("   event kind %d bytes %lu\n", e.kind, (long)e.region.bytes);
    T("workspace 2^64-1", topocoll_plan_workspace_bytes(p, UINT64_MAX), r == -1);
    T("begin ok", topocoll_exchange_begin(x, 64, &b), r == 0);
    T("next after begin (wrong family)", topocoll_exchange_next(x, &e), r != 0);
    T("begin ok", topocoll_exchange_begin(x, 64, &b), r == 0);
    T("poll out null", topocoll_exchange_poll(x, NULL), r == 1);
    T("poll", topocoll_exchange_poll(x, &a), r == 0); printf("   kind %d peer %u tag %u bytes %lu\n", a.kind, a.peer, a.tag, (long)a.bytes);
    uint64_t tok = a.token;
    T("complete wrong token", topocoll_exchange_complete(x, 12345678, a.bytes), r == 3);
    T("complete right", topocoll_exchange_complete(x, tok, a.bytes), r == 0);
    T("complete twice", topocoll_exchange_complete(x, tok, a.bytes), r == 3);
    T("poll", topocoll_exchange_poll(x, &a), r == 0);
    T("complete short", topocoll_exchange_complete(x, a.token, a.bytes - 1), r == 3);
    T("poll stopped", topocoll_exchange_poll(x, &a), r == 3);
    T("begin again", topocoll_exchange_begin(x, 64, &b), r == 0);
    T("stale token", topocoll_exchange_complete(x, tok, 64), r == 3);
    T("start then poll", (topocoll_exchange_start(x, 8), topocoll_exchange_poll(x, &a)), r != 0);
    uint64_t S[4] = {1, 2, 3, 4}, R[4] = {1, 2, 3, 4}, by[3];
    T("v on bruck", topocoll_plan_bytes_v(p, S, R, by), r != 0);
    T("begin_v null buffers", topocoll_exchange_begin_v(x, S, R, NULL), r == 1);
    topocoll_plan *pd = mk("full:4", "direct", 1);
    topocoll_exchange *xd = topocoll_exchange_new(pd);
    T("bytes_v null send", topocoll_plan_bytes_v(pd, NULL, R, by), r == 1);
    T("bytes_v null bytes", topocoll_plan_bytes_v(pd, S, R, NULL), 1);
    uint64_t H[4] = {UINT64_MAX, UINT64_MAX, 1, 1};
    T("bytes_v overflow", topocoll_plan_bytes_v(pd, H, R, by), r != 0);
    T("own block differs", topocoll_plan_bytes_v(pd, (uint64_t[]){1, 2, 3, 4}, (uint64_t[]){1, 99, 3, 4}, by), r != 0);
    T("start_v own block differs", topocoll_exchange_start_v(xd, (uint64_t[]){1, 2, 3, 4}, (uint64_t[]){1, 99, 3, 4}), r != 0);
    T("start_v overflow", topocoll_exchange_start_v(xd, H, H), r != 0);
    topocoll_plan_free(pd); /* exchange stays valid */
    b = (topocoll_buffers){in, 10, out, 256, w, 4096};
    T("begin_v after plan free", topocoll_exchange_begin_v(xd, S, R, &b), r == 0);
    T("poll after plan free", topocoll_exchange_poll(xd, &a), r == 0);
    b.input_bytes = 9;
    T("begin_v short", topocoll_exchange_begin_v(xd, S, R, &b), r == 3);
    T("poll after failed begin_v", topocoll_exchange_poll(xd, &a), r != 0);
    T("cancel", topocoll_exchange_cancel(xd), r == 0);
    T("complete after cancel", topocoll_exchange_complete(xd, a.token, a.bytes), r != 0);
    topocoll_exchange_free(xd); topocoll_exchange_free(NULL);
    pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(t + i, 0, thr, p);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    T("two threads, one plan", 0, 1);
    topocoll_exchange_free(x); topocoll_plan_free(p);
    /* fork after use: selection in child uses rayon pool? */
    T("abi", topocoll_abi_version(), r == TOPOCOLL_ABI_VERSION);
    printf("%d tried, %d BAD\n", n, bad);
    return 0;
}
