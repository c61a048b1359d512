/* Only preprocessed: what build.rs asks of the MPI's header. */
#include <mpi.h>
topocoll_mpi_version MPI_VERSION
#ifdef OPEN_MPI
topocoll_open_mpi
#endif
