// NCCL, whose collectives succeed and leave all memory as it is, and the sizes of cuSOLVER's workspaces.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <nccl.h>

#define WORKSPACE 4096

CALL(ncclGetVersion, AT(int, 0) = NCCL_VERSION_CODE)
CALL(ncclCommGetAsyncError, AT(int, 1) = ncclSuccess)

const char *ncclGetLastError(ncclComm_t communicator) { return ""; }

// Number of 32-bit gradients that torch has reduced over ranks. Reductions of a single number are votes of ranks.
unsigned long long null_device_reduced;

CALL(ncclAllReduce, if ((int)a3 == ncclFloat32 && a2 > 1) null_device_reduced += (size_t)a2)

CALL(cusolverDnSgetrf_bufferSize, AT(int, 5) = WORKSPACE)
CALL(cusolverDnDgetrf_bufferSize, AT(int, 5) = WORKSPACE)
CALL(cusolverDnSorgqr_bufferSize, AT(int, 7) = WORKSPACE)
CALL(cusolverDnDorgqr_bufferSize, AT(int, 7) = WORKSPACE)
CALL(cusolverDnXgeqrf_bufferSize, AT(size_t, 10) = AT(size_t, 11) = WORKSPACE)
