// Kernels: those of torch and its libraries, of Triton, and their modules. Launches are checked, counted and not done.
#define _GNU_SOURCE
#include "null.h"
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 1024u
#define MOST_BLOCKS_BESIDE 65535u  // along y and z

static cudaError_t launch(dim3 grid, dim3 block, cudaStream_t stream) {
    double blocks = (double)grid.x * grid.y * grid.z, threads = (double)block.x * block.y * block.z;
    if (!blocks || !threads || threads > MOST_THREADS || grid.y > MOST_BLOCKS_BESIDE || grid.z > MOST_BLOCKS_BESIDE) {
        trace("a launch of %u x %u x %u blocks of %u x %u x %u threads", grid.x, grid.y, grid.z, block.x, block.y,
              block.z);
        return remember(cudaErrorInvalidConfiguration);
    }
    stream_put(stream_of(stream), &(Work){.kind = WORK_KERNEL, .threads = blocks * threads});
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
    (void)kernel;
    (void)arguments;
    (void)shared;
    return launch(grid, block, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments) {
    (void)kernel;
    (void)arguments;
    return launch(config->gridDim, config->blockDim, config->stream);
}

CUresult cuLaunchKernel(CUfunction kernel, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared, CUstream stream, void **arguments, void **extra) {
    (void)kernel;
    (void)shared;
    (void)arguments;
    (void)extra;
    cudaError_t error = launch((dim3){x, y, z}, (dim3){block_x, block_y, block_z}, (cudaStream_t)stream);
    return error ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction kernel, void **arguments, void **extra) {
    return cuLaunchKernel(kernel, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                          c->sharedMemBytes, c->hStream, arguments, extra);
}

// ---- What nvcc puts around every kernel<<<...>>>

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

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *(void **)stream = pushed.stream;
    return cudaSuccess;
}

void **__cudaRegisterFatBinary(void *binary) {
    (void)binary;
    return calloc(1, 64);
}

char __cudaInitModule(void **binary) {
    (void)binary;
    return 1;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    *kernel = (cudaKernel_t)function;
    return cudaSuccess;
}

// ---- What a kernel needs

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    (void)kernel;
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = (int)MOST_THREADS;
    attributes->numRegs = 64;
    attributes->binaryVersion = attributes->ptxVersion = 90;
    attributes->maxDynamicSharedSizeBytes = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    return cudaSuccess;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction kernel) {
    (void)kernel;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? (int)MOST_THREADS : 0;
    return CUDA_SUCCESS;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel, int threads,
                                                                   size_t shared, unsigned flags) {
    (void)kernel;
    (void)threads;
    (void)shared;
    (void)flags;
    *blocks = 2;
    return cudaSuccess;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction kernel, int threads, size_t shared) {
    (void)kernel;
    (void)threads;
    (void)shared;
    *blocks = 2;
    return CUDA_SUCCESS;
}

// A cubin names the device that it is compiled for in its flags, elsewhere since its ABI's version 8.
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

CUresult cuModuleGetFunction(CUfunction *kernel, CUmodule module, const char *name) {
    (void)module;
    (void)name;
    *kernel = calloc(1, 64);
    return CUDA_SUCCESS;
}
