// NCCL, whose collectives leave all memory as it is: ranks meet without their devices. cuSOLVER's sizes of workspaces.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <nccl.h>

#define WORKSPACE 4096

struct ncclComm {
    int count, rank;
};

CALL(ncclGetVersion, AT(int, 0) = NCCL_VERSION_CODE)
CALL(ncclCommGetAsyncError, AT(int, 1) = ncclSuccess)
FREES(ncclCommDestroy)
CALL(ncclCommCount, AT(int, 1) = ((ncclComm_t)a0)->count)
CALL(ncclCommUserRank, AT(int, 1) = ((ncclComm_t)a0)->rank)

const char *ncclGetErrorString(ncclResult_t result) { return result ? "an NCCL error" : "no error"; }
const char *ncclGetLastError(ncclComm_t communicator) { return ""; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int count, ncclUniqueId id, int rank, ncclConfig_t *config) {
    *made = malloc(sizeof **made);
    **made = (struct ncclComm){count, rank};
    return ncclSuccess;
}

// What torch calls it with: 32-bit gradients, summed over all ranks. Single numbers are votes of ranks.
unsigned long long null_device_reduced;

CALL(ncclAllReduce, if ((int)a3 == ncclFloat32 && a2 > 1) null_device_reduced += (size_t)a2)

CALL(cusolverDnSgetrf_bufferSize, AT(int, 5) = WORKSPACE)
CALL(cusolverDnDgetrf_bufferSize, AT(int, 5) = WORKSPACE)
CALL(cusolverDnSorgqr_bufferSize, AT(int, 7) = WORKSPACE)
CALL(cusolverDnDorgqr_bufferSize, AT(int, 7) = WORKSPACE)
CALL(cusolverDnXgeqrf_bufferSize, AT(size_t, 10) = AT(size_t, 11) = WORKSPACE)
