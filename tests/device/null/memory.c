// Memory of the device and of the host: addresses are real, a device's pages are never touched and read as zeros.
#define _GNU_SOURCE
#include "null.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KIB (1ul << 10)
#define MIB (1ul << 20)
#define GRANULE 512ul            // of cudaMalloc
#define MAPPED_GRANULE (2 * MIB) // of cuMemCreate
// Larger reads of a device are not carried out: nobody looks at what they would hold, and the host has less memory.
#define MOST_READ (64 * MIB)
// The driver stages what is larger and not pinned, and returns when the last of it has left the host.
#define STAGED (64 * KIB)

typedef enum { DEVICE, PINNED, REGISTERED } Kind;

typedef struct Block {
    uintptr_t start;
    size_t bytes;
    Kind kind;
    int device;
} Block;

// By address, so that the block of any pointer is found by halving.
static Block *blocks;
static size_t count, room;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static size_t place_of(uintptr_t address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle].start + blocks[middle].bytes <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void add(const void *start, size_t bytes, Kind kind, int device) {
    pthread_mutex_lock(&guard);
    if (count == room) blocks = realloc(blocks, (room = room ? 2 * room : 1024) * sizeof *blocks);
    size_t place = place_of((uintptr_t)start);
    memmove(blocks + place + 1, blocks + place, (count++ - place) * sizeof *blocks);
    blocks[place] = (Block){(uintptr_t)start, bytes, kind, device};
    pthread_mutex_unlock(&guard);
}

static int find(const void *pointer, Block *block) {
    pthread_mutex_lock(&guard);
    size_t place = place_of((uintptr_t)pointer);
    int found = place < count && blocks[place].start <= (uintptr_t)pointer;
    if (found) *block = blocks[place];
    pthread_mutex_unlock(&guard);
    return found;
}

// Takes out the block that begins there.
static int take_out(const void *start, Block *block) {
    pthread_mutex_lock(&guard);
    size_t place = place_of((uintptr_t)start);
    int found = place < count && blocks[place].start == (uintptr_t)start;
    if (found) {
        *block = blocks[place];
        memmove(blocks + place, blocks + place + 1, (--count - place) * sizeof *blocks);
    }
    pthread_mutex_unlock(&guard);
    return found;
}

static void *reserve(size_t bytes) {
    void *start = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

// ---- The device's memory

cudaError_t cudaMalloc(void **start, size_t bytes) {
    *start = NULL;
    cudaError_t error = refuse_in_capture("cudaMalloc");
    if (error || !bytes) return error;
    bytes = (bytes + GRANULE - 1) & ~(GRANULE - 1);
    if (!ledger_take(current_device, bytes)) return remember(cudaErrorMemoryAllocation);
    if (!(*start = reserve(bytes))) {
        ledger_give(current_device, bytes);
        return remember(cudaErrorMemoryAllocation);
    }
    add(*start, bytes, DEVICE, current_device);
    return cudaSuccess;
}

cudaError_t cudaFree(void *start) {
    Block block;
    if (!start) return cudaSuccess;
    cudaError_t error = refuse_in_capture("cudaFree");
    if (error) return error;
    if (!take_out(start, &block)) return remember(cudaErrorInvalidValue);
    munmap(start, block.bytes);
    ledger_give(block.device, block.bytes);
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **start, size_t bytes, cudaStream_t stream) {
    (void)stream;
    return cudaMalloc(start, bytes);
}

cudaError_t cudaFreeAsync(void *start, cudaStream_t stream) {
    (void)stream;
    return cudaFree(start);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *free_bytes = ledger_free_bytes(current_device);
    *total_bytes = device_bytes();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer) {
    Block block;
    memset(attributes, 0, sizeof *attributes);
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = current_device;
    if (find(pointer, &block)) {
        attributes->type = block.kind == DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
        attributes->device = block.device;
        attributes->devicePointer = (void *)pointer;
        attributes->hostPointer = block.kind == DEVICE ? NULL : (void *)pointer;
    }
    return cudaSuccess;
}

// ---- The host's pinned memory

cudaError_t cudaHostAlloc(void **start, size_t bytes, unsigned flags) {
    (void)flags;
    cudaError_t error = refuse_in_capture("cudaHostAlloc");
    if (error) return error;
    bytes = bytes ? bytes : 1;
    if (posix_memalign(start, 4 * KIB, bytes)) return remember(cudaErrorMemoryAllocation);
    add(*start, bytes, PINNED, current_device);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *start) {
    Block block;
    if (start && take_out(start, &block)) free(start);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *start, size_t bytes, unsigned flags) {
    (void)flags;
    add(start, bytes, REGISTERED, current_device);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *start) {
    Block block;
    return take_out(start, &block) ? cudaSuccess : remember(cudaErrorInvalidValue);
}

// ---- Copies and fills

static int is_on_device(const void *pointer) {
    Block block;
    return find(pointer, &block) && block.kind == DEVICE;
}

static int is_pageable(const void *pointer) {
    Block block;
    return !find(pointer, &block);
}

// A kernel that did nothing may have had to write what is read: so all of it is as new.
static void carry(void *to, const void *from, size_t bytes) {
    if (is_on_device(to)) return;
    if (!is_on_device(from)) memmove(to, from, bytes);
    else if (bytes <= MOST_READ) memset(to, 0, bytes);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t handle) {
    Stream *stream = stream_of(handle);
    stream_put(stream, &(Work){.kind = WORK_COPY, .bytes = (double)bytes, .direction = kind});
    if (stream->capture) return cudaSuccess;
    carry(to, from, bytes);
    if (is_pageable(to) || (is_pageable(from) && bytes > STAGED)) stream_wait(stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    cudaError_t error = refuse_in_capture("cudaMemcpy");
    if (error) return error;
    error = cudaMemcpyAsync(to, from, bytes, kind, NULL);
    stream_wait(stream_of(NULL));
    return error;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int device, const void *from, int other, size_t bytes, cudaStream_t stream) {
    (void)device;
    (void)other;
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    for (size_t row = 0; row < height; row++)
        cudaMemcpyAsync((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, kind, stream);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *start, int value, size_t bytes, cudaStream_t handle) {
    (void)start;
    (void)value;
    stream_put(stream_of(handle), &(Work){.kind = WORK_FILL, .bytes = (double)bytes});
    return cudaSuccess;
}

cudaError_t cudaMemset(void *start, int value, size_t bytes) { return cudaMemsetAsync(start, value, bytes, NULL); }

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    static char symbols[64 * KIB];
    (void)symbol;
    *address = symbols;
    return cudaSuccess;
}

// ---- Segments that grow: addresses first, memory later

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags flags) {
    (void)properties;
    (void)flags;
    *bytes = MAPPED_GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *start, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags) {
    (void)alignment;
    (void)wanted;
    (void)flags;
    *start = (CUdeviceptr)reserve(bytes);
    return *start ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr start, size_t bytes) {
    munmap((void *)start, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags) {
    (void)flags;
    int device = properties->location.id;
    if (!ledger_take(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    Block *block = malloc(sizeof *block);
    *block = (Block){0, bytes, DEVICE, device};
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)block;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    Block *block = (Block *)(uintptr_t)handle;
    ledger_give(block->device, block->bytes);
    free(block);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr start, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    (void)offset;
    (void)flags;
    add((void *)start, bytes, DEVICE, ((Block *)(uintptr_t)handle)->device);
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr start, size_t bytes) {
    Block block;
    for (CUdeviceptr at = start; at < start + bytes && take_out((void *)at, &block);) at += block.bytes;
    return CUDA_SUCCESS;
}
