// The driver's functions that torch and Triton use beside the runtime's, and the look-up by which they find them.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <dlfcn.h>
#include <stdio.h>

#define VERSION 13000

static int context;  // One for each process; nothing reads it.

CALL(cuInit, return device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE)
// NVRTC asks for a table, and works without one.
CALL(cuGetExportTable, AT(void *, 0) = NULL; return CUDA_ERROR_NOT_FOUND)
CALL(cuDriverGetVersion, AT(int, 0) = VERSION)
CALL(cudaDriverGetVersion, AT(int, 0) = VERSION)
CALL(cudaRuntimeGetVersion, AT(int, 0) = VERSION)

CALL(cuDeviceGet, AT(int, 0) = (int)a1; return (int)a1 < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE)
CALL(cuDeviceGetCount, AT(int, 0) = device_count())
CALL(cuDeviceGetAttribute, AT(int, 0) = device_attribute((CUdevice_attribute)a1))
CALL(cuDeviceGetName, snprintf((char *)a0, (size_t)(int)a1, "%s", device_name()))
CALL(cuDeviceTotalMem_v2, AT(size_t, 0) = device_bytes())

CALL(cuCtxGetCurrent, AT(void *, 0) = &context)
CALL(cuCtxGetDevice, AT(int, 0) = current_device)
CALL(cuDevicePrimaryCtxGetState, AT(unsigned, 1) = 0; AT(int, 2) = 1)
CALL(cuDevicePrimaryCtxRetain, AT(void *, 0) = &context)
// Callers ask for a pointer's context, or for the address itself.
CALL(cuPointerGetAttribute, AT(void *, 0) = (int)a1 == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ? (void *)a2 : &context)

CALL(cuGetErrorString, AT(const char *, 1) = cudaGetErrorString((cudaError_t)a0))
CALL(cuGetErrorName, AT(const char *, 1) = cudaGetErrorName((cudaError_t)a0))

static CUresult nothing(void) { return CUDA_SUCCESS; }

static void *function_of(const char *name) {
    static void *self;
    char versioned[256];
    if (!self) {
        Dl_info found;
        dladdr((void *)nothing, &found);
        self = dlopen(found.dli_fname, RTLD_NOW);
    }
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    void *function = dlsym(self, versioned);
    if (!function) function = dlsym(self, name);
    return function ? function : (void *)nothing;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result) {
    *function = function_of(name);
    if (result) *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
