/* Constants of mpi.h. Open MPI's are addresses of variables of its library, which `find` looks up by name. */
#include <mpi.h>

#ifdef OPEN_MPI
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) ((type)find(#global))
#endif

#define CONSTANT(type, name) \
    type topocoll_##name(void *(*find)(const char *)) { \
        (void)find; \
        return name; \
    }

CONSTANT(MPI_Comm, MPI_COMM_WORLD)
CONSTANT(MPI_Comm, MPI_COMM_NULL)
CONSTANT(MPI_Datatype, MPI_DATATYPE_NULL)
CONSTANT(MPI_Datatype, MPI_UINT8_T)
CONSTANT(MPI_Datatype, MPI_INT64_T)
CONSTANT(MPI_Errhandler, MPI_ERRORS_RETURN)
CONSTANT(MPI_Info, MPI_INFO_NULL)
CONSTANT(MPI_Op, MPI_MIN)
CONSTANT(MPI_Request, MPI_REQUEST_NULL)
CONSTANT(int, MPI_ANY_SOURCE)
CONSTANT(int, MPI_CART)
CONSTANT(int, MPI_COMM_TYPE_SHARED)
CONSTANT(int, MPI_PROC_NULL)
