// Kernels of torch, its libraries and Triton, and their modules. Launches are checked and counted, and compute nothing.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <elf.h>
#include <string.h>

#define MOST_THREADS 1024u
#define MOST_BLOCKS_BESIDE 65535u  // along y and z

static cudaError_t launch(dim3 grid, dim3 block, cudaStream_t stream) {
    double blocks = (double)grid.x * grid.y * grid.z, threads = (double)block.x * block.y * block.z;
    if (!blocks || !threads || threads > MOST_THREADS || grid.y > MOST_BLOCKS_BESIDE || grid.z > MOST_BLOCKS_BESIDE)
        return remember(cudaErrorInvalidConfiguration);
    stream_put(stream_of(stream), &(Work){.kind = WORK_KERNEL, .threads = blocks * threads});
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
    return launch(grid, block, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream) {
    return launch(grid, block, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments) {
    return launch(config->gridDim, config->blockDim, config->stream);
}

static CUresult launch_of_driver(dim3 grid, dim3 block, CUstream stream) {
    return launch(grid, block, (cudaStream_t)stream) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CALL(cuLaunchKernel, dim3 grid = {(unsigned)a1, (unsigned)a2, (unsigned)a3};
     dim3 block = {(unsigned)a4, (unsigned)a5, (unsigned)a6};
     return launch_of_driver(grid, block, (CUstream)a8))

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction kernel, void **arguments, void **extra) {
    dim3 grid = {c->gridDimX, c->gridDimY, c->gridDimZ}, block = {c->blockDimX, c->blockDimY, c->blockDimZ};
    return launch_of_driver(grid, block, c->hStream);
}

// ---- The calls that nvcc puts around every kernel<<<...

static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

CALL(__cudaPopCallConfiguration, AT(dim3, 0) = pushed.grid; AT(dim3, 1) = pushed.block; AT(size_t, 2) = pushed.shared;
     AT(void *, 3) = pushed.stream)
CALL(__cudaInitModule, return 1)
CALL(__cudaGetKernel, AT(intptr_t, 0) = a1)

void **__cudaRegisterFatBinary(void *binary) { return calloc(1, 64); }

// ---- The resources that a kernel needs

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = (int)MOST_THREADS;
    attributes->numRegs = 64;
    attributes->binaryVersion = attributes->ptxVersion = 90;
    attributes->maxDynamicSharedSizeBytes = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    return cudaSuccess;
}

CALL(cuFuncGetAttribute, AT(int, 0) = (int)a1 == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? (int)MOST_THREADS : 0)
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, AT(int, 0) = 2)
CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, AT(int, 0) = 2)

// A cubin's flags name the device that it is compiled for: in the lowest byte, or in the next since ABI version 8.
static int is_for_another(const Elf64_Ehdr *image) {
    if (memcmp(image->e_ident, ELFMAG, SELFMAG)) return 0;
    unsigned name = image->e_ident[EI_ABIVERSION] < 8 ? image->e_flags & 0xff : image->e_flags >> 8 & 0xff;
    return name / 10 != 9;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    if (is_for_another(image)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *module = calloc(1, 64);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *path) { return cuModuleLoadData(module, path); }

CALL(cuModuleGetFunction, AT(void *, 0) = calloc(1, 64))
