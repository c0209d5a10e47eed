// cuSOLVER: factorisations need a workspace, and say how large.
#define _GNU_SOURCE
#include "null.h"
#include <cusolverDn.h>

#define WORKSPACE 4096

#define LU(letter, Number)                                                                                     \
    cusolverStatus_t cusolverDn##letter##getrf_bufferSize(cusolverDnHandle_t handle, int m, int n, Number *a,  \
                                                          int lda, int *elements) {                            \
        *elements = WORKSPACE;                                                                                 \
        return CUSOLVER_STATUS_SUCCESS;                                                                        \
    }
#define ORTHOGONAL(letter, Number)                                                                             \
    cusolverStatus_t cusolverDn##letter##orgqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k,      \
                                                          const Number *a, int lda, const Number *tau,         \
                                                          int *elements) {                                     \
        *elements = WORKSPACE;                                                                                 \
        return CUSOLVER_STATUS_SUCCESS;                                                                        \
    }

LU(S, float)
LU(D, double)
ORTHOGONAL(S, float)
ORTHOGONAL(D, double)

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
                                             cudaDataType type, const void *a, int64_t lda, cudaDataType type_tau,
                                             const void *tau, cudaDataType compute, size_t *device_bytes,
                                             size_t *host_bytes) {
    *device_bytes = *host_bytes = WORKSPACE;
    return CUSOLVER_STATUS_SUCCESS;
}
