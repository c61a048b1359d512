/* build.rs only preprocesses this, to read constants of mpi.h. */
#include <mpi.h>
topocoll_mpi_version MPI_VERSION
#ifdef OPEN_MPI
topocoll_open_mpi
#endif
