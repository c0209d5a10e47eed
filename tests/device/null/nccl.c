// NCCL: its version, and communicators whose collectives leave all memory as it is: ranks meet without their devices.
#include <nccl.h>
#include <stdlib.h>

struct ncclComm {
    int count, rank;
};

ncclResult_t ncclGetVersion(int *version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) { return result ? "an NCCL error" : "no error"; }

const char *ncclGetLastError(ncclComm_t communicator) {
    (void)communicator;
    return "";
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *error) {
    (void)communicator;
    *error = ncclSuccess;
    return ncclSuccess;
}

// What torch calls it with: 32-bit gradients, summed over all ranks. Single numbers are votes of ranks.
unsigned long long null_device_reduced;

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
    (void)from, (void)to, (void)operation, (void)communicator, (void)stream;
    if (type == ncclFloat32 && count > 1) null_device_reduced += count;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int count, ncclUniqueId id, int rank, ncclConfig_t *config) {
    (void)id, (void)config;
    *made = malloc(sizeof **made);
    **made = (struct ncclComm){count, rank};
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    free(communicator);
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t communicator, int *count) {
    *count = communicator->count;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t communicator, int *rank) {
    *rank = communicator->rank;
    return ncclSuccess;
}
