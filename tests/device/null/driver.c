// The driver's interface, as far as torch and Triton use it beside the runtime's, and how they find its functions.
#define _GNU_SOURCE
#include "null.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define VERSION 13000

static int context;  // There is one for each process; nobody looks into it.

CUresult cuInit(unsigned flags) {
    (void)flags;
    return device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

// NVRTC asks for it, and takes a driver that has none.
CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    (void)id;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuDriverGetVersion(int *version) {
    *version = VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return ordinal < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetCount(int *count) {
    *count = device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    *value = device_attribute(attribute);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device) {
    (void)device;
    snprintf(name, (size_t)room, "%s", device_name());
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    (void)device;
    *bytes = device_bytes();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *current) {
    *current = (CUcontext)&context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    *device = current_device;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *is_active) {
    (void)device;
    *flags = 0;
    *is_active = 1;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *primary, CUdevice device) {
    (void)device;
    *primary = (CUcontext)&context;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    // What is asked of it is the context or the address itself.
    *(void **)value = attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ? (void *)pointer : &context;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **sentence) {
    *sentence = cudaGetErrorString((cudaError_t)error);
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = cudaGetErrorName((cudaError_t)error);
    return CUDA_SUCCESS;
}

static CUresult nothing(void) { return CUDA_SUCCESS; }

static void *function_of(const char *name) {
    static void *self;
    char versioned[256];
    if (!self) {
        Dl_info found;
        dladdr((void *)cuInit, &found);
        self = dlopen(found.dli_fname, RTLD_NOW);
    }
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    void *function = dlsym(self, versioned);
    if (!function) function = dlsym(self, name);
    if (!function) trace("%s is asked for, and does nothing", name);
    return function ? function : (void *)nothing;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result) {
    (void)version;
    (void)flags;
    *function = function_of(name);
    if (result) *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
