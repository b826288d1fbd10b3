// Open MPI's MPI_Allreduce, as the family foundation times it.
#include "foundation/allreduce_mpi.cpp"
