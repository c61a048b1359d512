/* Open MPI's component `coll_topocoll`: the library's way into the core, which is libtopocoll_mpi.so in the same folder
 * (src/drop_in/component.rs). A module of a communicator has the functions of the module below, and the core's state.
 * Built for one release of Open MPI, whose structures it shares. */
#define _GNU_SOURCE
#include "ompi_config.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/errhandler/errcode-internal.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mpi/c/bindings.h"
#include "ompi/request/request.h"
#include "opal/mca/base/mca_base_var.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
/* An argument of several numbers. */
#define MADE(level, numbers) MCA_BASE_MAKE_VERSION(level, numbers)
#ifndef RELEASE
#define RELEASE TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(OMPI_RELEASE_VERSION)
#endif

#define CALLS(each) each(alltoall) each(alltoallv) each(allgather) each(allgatherv)

/* A module: the core's state of its communicator, and functions of the module below with their modules. */
typedef struct {
    mca_coll_base_module_t super;
    void *state;
#define BELOW(call)                          \
    mca_coll_base_module_##call##_fn_t call; \
    mca_coll_base_module_t *call##_module;
    CALLS(BELOW)
} module_t;

#define EQUAL const void *from, int count, MPI_Datatype of, void *to, int room, MPI_Datatype as, MPI_Comm comm
#define SEVERAL \
    const void *from, const int *counts, const int *begins, MPI_Datatype of, void *to, const int *rooms, \
        const int *places, MPI_Datatype as, MPI_Comm comm
#define GATHERED \
    const void *from, int count, MPI_Datatype of, void *to, const int *rooms, const int *places, MPI_Datatype as, \
        MPI_Comm comm

/* The core's functions. */
static struct {
    int (*alltoall)(EQUAL, void **, mca_coll_base_module_alltoall_fn_t, mca_coll_base_module_t *);
    int (*alltoallv)(SEVERAL, void **, mca_coll_base_module_alltoallv_fn_t, mca_coll_base_module_t *);
    int (*allgather)(EQUAL, void **, mca_coll_base_module_allgather_fn_t, mca_coll_base_module_t *);
    int (*allgatherv)(GATHERED, void **, mca_coll_base_module_allgatherv_fn_t, mca_coll_base_module_t *);
    void (*split)(MPI_Comm, const int *);
    void (*replace)(const char *, void *);
    void (*forget)(void **);
    void (*finish)(void);
} core;

#define DEFINE(call, parameters, ...)                                                             \
    static int call(parameters, mca_coll_base_module_t *super) {                                  \
        module_t *module = (module_t *)super;                                                     \
        return core.call(__VA_ARGS__, comm, &module->state, module->call, module->call##_module); \
    }
DEFINE(alltoall, EQUAL, from, count, of, to, room, as)
DEFINE(alltoallv, SEVERAL, from, counts, begins, of, to, rooms, places, as)
DEFINE(allgatherv, GATHERED, from, count, of, to, rooms, places, as)

/* The library splits a communicator by color and key, which it gathers; then the groups are known. */
static int allgather(EQUAL, mca_coll_base_module_t *super) {
    module_t *module = (module_t *)super;
    int code = core.allgather(from, count, of, to, room, as, comm, &module->state, module->allgather,
                              module->allgather_module);
    if (code == MPI_SUCCESS && room == 2 && as == MPI_INT) core.split(comm, to);
    return code;
}

/* Messages of the core on the program's communicators, with tags that no program has and the library does not use. No
 * handler hears of an error: the core tells the other ranks first. By names of mpi.h, in place of these. */
static int inner(int tag) {
    const int barrier = (1 << 15) - 2; /* words.rs, engine.rs: words are above it, messages of steps below */
    return tag < barrier ? -4 : barrier - 2 - tag;
}

static int isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    return ompi_errcode_get_mpi_code(
        MCA_PML_CALL(isend(from, count, type, to, inner(tag), MCA_PML_BASE_SEND_STANDARD, comm, request)));
}

static int irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
    return ompi_errcode_get_mpi_code(MCA_PML_CALL(irecv(to, count, type, from, inner(tag), comm, request)));
}

static int send_now(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    int code = MPI_SUCCESS;
    OMPI_CHECK_DATATYPE_FOR_SEND(code, type, count);
    OMPI_CHECK_USER_BUFFER(code, from, type, count);
    if (code != MPI_SUCCESS || to == MPI_PROC_NULL) return code;
    return ompi_errcode_get_mpi_code(
        MCA_PML_CALL(send(from, count, type, to, inner(tag), MCA_PML_BASE_SEND_STANDARD, comm)));
}

static int receive_now(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    int code = MPI_SUCCESS;
    OMPI_CHECK_DATATYPE_FOR_RECV(code, type, count);
    OMPI_CHECK_USER_BUFFER(code, to, type, count);
    if (code != MPI_SUCCESS || from == MPI_PROC_NULL) return code;
    return ompi_errcode_get_mpi_code(MCA_PML_CALL(recv(to, count, type, from, inner(tag), comm, status)));
}

static int iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status) {
    return ompi_errcode_get_mpi_code(MCA_PML_CALL(iprobe(from, inner(tag), comm, there, status)));
}

/* Frees requests that have failed, as the library does before it calls a handler. */
static int tested(int code, int count, MPI_Request *requests) {
    for (int i = 0; code != OMPI_SUCCESS && i < count; i++)
        if (REQUEST_COMPLETE(requests[i]) && requests[i]->req_status.MPI_ERROR != MPI_SUCCESS) ompi_request_free(&requests[i]);
    return ompi_errcode_get_mpi_code(code);
}

static int test_all(int count, MPI_Request *requests, int *all, MPI_Status *statuses) {
    return tested(ompi_request_test_all(count, requests, all, statuses), count, requests);
}

static int test_some(int count, MPI_Request *requests, int *some, int *ended, MPI_Status *statuses) {
    return tested(ompi_request_test_some(count, requests, some, ended, statuses), count, requests);
}

/* A communicator with messages under way stays when it is freed: another one may not have its number. */
static void keep(MPI_Comm comm) { OBJ_RETAIN(comm); }

static const struct {
    const char *name;
    void *function;
} replaced[] = {
    {"PMPI_Isend", isend},        {"PMPI_Irecv", irecv},
    {"PMPI_Send", send_now},      {"PMPI_Recv", receive_now},
    {"PMPI_Testall", test_all},   {"PMPI_Testsome", test_some},
    {"PMPI_Iprobe", iprobe},      {"topocoll_keep", keep},
};

static int enable(mca_coll_base_module_t *super, MPI_Comm comm) {
    module_t *module = (module_t *)super;
#define HAS(call) if (comm->c_coll->coll_##call == NULL) return OMPI_ERROR;
    CALLS(HAS)
#define SAVE(call)                                           \
    module->call = comm->c_coll->coll_##call;                \
    module->call##_module = comm->c_coll->coll_##call##_module; \
    OBJ_RETAIN(module->call##_module);
    CALLS(SAVE)
    return OMPI_SUCCESS;
}

static void construct(module_t *module) {
    module->super.coll_module_enable = enable;
    module->state = NULL;
#define DEFAULT(call)               \
    module->super.coll_##call = call; \
    module->call##_module = NULL;
    CALLS(DEFAULT)
}

static void destruct(module_t *module) {
    core.forget(&module->state);
#define RELEASE_BELOW(call) if (module->call##_module != NULL) OBJ_RELEASE(module->call##_module);
    CALLS(RELEASE_BELOW)
}

static OBJ_CLASS_INSTANCE(module_t, mca_coll_base_module_t, construct, destruct);

static int priority = 40;

/* Parameters that the core reads in the environment, and what they say. */
static const char *const parameters[][2] = {
    {"algorithm", "alltoall:NAME,allgather:NAME forces algorithms; a bare NAME forces its own operation, and the other "
                  "one is the library's; NAME+window passes messages inside a node through a shared window"},
    {"machine", "A machine file, a shipped machine or a short form, of as many ranks as MPI_COMM_WORLD"},
    {"sync", "free or barrier: schedules run without barriers between steps, or with them; unless set, trials have both"},
    {"tune", "on (unless set) decides by measuring, off by prediction; a file keeps the results for the next run"},
    {"trace", "1 prints each choice and its reason, and a table when MPI is finalized"},
};
#define COUNT (sizeof parameters / sizeof *parameters)
static char *values[COUNT];

__attribute__((visibility("default"))) extern mca_coll_base_component_t mca_coll_topocoll_component;

static int registers(void) {
    const mca_base_component_t *own = &mca_coll_topocoll_component.collm_version;
    mca_base_component_var_register(own, "priority", "Priority of the component; 0 for never", MCA_BASE_VAR_TYPE_INT, NULL,
                                    0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY, &priority);
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = NULL;
        mca_base_component_var_register(own, parameters[i][0], parameters[i][1], MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
                                        OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, &values[i]);
    }
    return OMPI_SUCCESS;
}

/* The component is not used; the first process says why. */
static int refuse(const char *reason, const char *value) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL || strcmp(rank, "0") == 0)
        fprintf(stderr, "topocoll: warning: the component coll_topocoll is not used: %s %s\n", reason, value);
    return OMPI_ERR_NOT_AVAILABLE;
}

static void finishes(void) { core.finish(); }
static ompi_hook_base_component_t hooks = {.hookm_mpi_finalize_top = finishes};

static int opens(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING], path[PATH_MAX];
    int length;
    /* The preloaded drop-in has the program's calls already. */
    if (priority <= 0 || dlsym(RTLD_DEFAULT, "topocoll_alltoall") != NULL) return OMPI_ERR_NOT_AVAILABLE;
    PMPI_Get_library_version(version, &length);
    version[strcspn(version, ",")] = 0;
    if (strcmp(version, "Open MPI v" RELEASE) != 0) return refuse("it was built for Open MPI v" RELEASE ", and this is", version);
    Dl_info own;
    if (dladdr(&mca_coll_topocoll_component, &own) == 0) return OMPI_ERR_NOT_AVAILABLE;
    const char *end = strrchr(own.dli_fname, '/');
    int folder = end == NULL ? 0 : (int)(end + 1 - own.dli_fname);
    snprintf(path, sizeof path, "%.*slibtopocoll_mpi.so", folder, own.dli_fname);
    /* Local: its MPI_ functions are for the preloaded drop-in. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return refuse("", dlerror());
#define FIND(call) \
    if ((*(void **)&core.call = dlsym(library, "topocoll_" #call)) == NULL) return refuse("", dlerror());
    CALLS(FIND) FIND(split) FIND(replace) FIND(forget) FIND(finish)
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "OMPI_MCA_coll_topocoll_%s", parameters[i][0]);
        if (values[i] != NULL) setenv(path, values[i], 1);
    }
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) core.replace(replaced[i].name, replaced[i].function);
    return ompi_hook_base_register_callbacks(&hooks);
}

static int closes(void) {
    ompi_hook_base_deregister_callbacks(&hooks);
    return OMPI_SUCCESS;
}

static int init(bool progress_threads, bool threads) {
    (void)progress_threads, (void)threads;
    return OMPI_SUCCESS;
}

static mca_coll_base_module_t *query(MPI_Comm comm, int *own) {
    *own = priority;
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return NULL;
    return &OBJ_NEW(module_t)->super;
}

mca_coll_base_component_t mca_coll_topocoll_component = {
    .collm_version = {
        MCA_COLL_BASE_VERSION_2_0_0,
        .mca_component_name = "topocoll",
        MADE(component, VERSION),
        .mca_open_component = opens,
        .mca_close_component = closes,
        .mca_register_component_params = registers,
    },
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = init,
    .collm_comm_query = query,
};
