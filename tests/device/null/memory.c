// Memory of the device and of the host: addresses are real; a device's pages are never touched, and read as zeros.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <string.h>
#include <sys/mman.h>

#define KIB (1ul << 10)
#define MIB (1ul << 20)
#define GRANULE 512ul            // cudaMalloc rounds up to this
#define MAPPED_GRANULE (2 * MIB) // granularity of cuMemCreate
// Larger reads of a device are not carried out: no caller looks at the result, and the host may lack the memory.
#define MOST_READ (64 * MIB)
// The driver stages larger copies of pageable memory, and returns when their last part has left the host.
#define STAGED (64 * KIB)

typedef enum { DEVICE, PINNED, REGISTERED, PAGEABLE } Kind;

typedef struct Block {
    uintptr_t start;
    size_t bytes;
    Kind kind;
    int device;
} Block;

// Sorted by address, so that bisection finds the block of any pointer.
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

// Removes the block that begins at `start` from the list.
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
    cudaError_t error = refuse_in_capture();
    if (error || !bytes) return error;
    bytes = (bytes + GRANULE - 1) & ~(GRANULE - 1);
    if (!memory_take(current_device, bytes)) return remember(cudaErrorMemoryAllocation);
    if (!(*start = reserve(bytes))) {
        memory_give(current_device, bytes);
        return remember(cudaErrorMemoryAllocation);
    }
    add(*start, bytes, DEVICE, current_device);
    return cudaSuccess;
}

cudaError_t cudaFree(void *start) {
    Block block;
    if (!start) return cudaSuccess;
    cudaError_t error = refuse_in_capture();
    if (error) return error;
    if (!take_out(start, &block)) return remember(cudaErrorInvalidValue);
    munmap(start, block.bytes);
    memory_give(block.device, block.bytes);
    return cudaSuccess;
}

CALL(cudaMemGetInfo, AT(size_t, 0) = memory_free_bytes(current_device); AT(size_t, 1) = device_bytes())

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
    cudaError_t error = refuse_in_capture();
    if (error) return error;
    bytes = bytes ? bytes : 1;
    if (posix_memalign(start, 4 * KIB, bytes)) return remember(cudaErrorMemoryAllocation);
    add(*start, bytes, PINNED, current_device);
    return cudaSuccess;
}

CALL(cudaFreeHost, Block block; if (a0 && take_out((void *)a0, &block)) free((void *)a0))
CALL(cudaHostRegister, add((void *)a0, (size_t)a1, REGISTERED, current_device))
CALL(cudaHostUnregister, Block block;
     return take_out((void *)a0, &block) ? cudaSuccess : remember(cudaErrorInvalidValue))

// ---- Copies and fills

static Kind kind_of(const void *pointer) {
    Block block;
    return find(pointer, &block) ? block.kind : PAGEABLE;
}

// Reads of a device give zeros, since a kernel, which computes nothing here, may have had to write there.
static void carry(void *to, const void *from, size_t bytes) {
    if (kind_of(to) == DEVICE) return;
    if (kind_of(from) != DEVICE) memmove(to, from, bytes);
    else if (bytes <= MOST_READ) memset(to, 0, bytes);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t handle) {
    Stream *stream = stream_of(handle);
    stream_put(stream, &(Work){.kind = WORK_COPY, .bytes = (double)bytes, .direction = kind});
    if (stream->capture) return cudaSuccess;
    carry(to, from, bytes);
    if (kind_of(to) == PAGEABLE || (kind_of(from) == PAGEABLE && bytes > STAGED)) stream_wait(stream);
    return cudaSuccess;
}

static void fill(size_t bytes, cudaStream_t stream) {
    stream_put(stream_of(stream), &(Work){.kind = WORK_FILL, .bytes = (double)bytes});
}

CALL(cudaMemsetAsync, fill((size_t)a2, (cudaStream_t)a3))

// ---- Segments that grow: addresses first, memory later

CALL(cuMemGetAllocationGranularity, AT(size_t, 0) = MAPPED_GRANULE)
CALL(cuMemAddressReserve, AT(void *, 0) = reserve((size_t)a1);
     return AT(void *, 0) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY)
CALL(cuMemAddressFree, munmap((void *)a0, (size_t)a1))

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags) {
    int device = properties->location.id;
    if (!memory_take(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    Block *block = malloc(sizeof *block);
    *block = (Block){0, bytes, DEVICE, device};
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)block;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    Block *block = (Block *)(uintptr_t)handle;
    memory_give(block->device, block->bytes);
    free(block);
    return CUDA_SUCCESS;
}

CALL(cuMemMap, add((void *)a0, (size_t)a1, DEVICE, ((Block *)a3)->device))

CUresult cuMemUnmap(CUdeviceptr start, size_t bytes) {
    Block block;
    for (CUdeviceptr at = start; at < start + bytes && take_out((void *)at, &block);) at += block.bytes;
    return CUDA_SUCCESS;
}
