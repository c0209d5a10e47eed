// The devices that this process sees, and their properties: an H100's numbers.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define FIRST_BUS 0x10
#define FIRST_BYTE 0xA0  // each byte of a device's UUID is this plus its number
#define MOST_WHOLE 8
#define MOST_INSTANCES 7
#define INSTANCE_MULTIPROCESSORS 16

__thread int current_device = 0;
static __thread cudaError_t last_error = cudaSuccess;

long number_of(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text && *text ? atol(text) : otherwise;
}

cudaError_t remember(cudaError_t error) {
    if (error) last_error = error;
    return error;
}

// Fills `physical` with the numbers of the devices that CUDA_VISIBLE_DEVICES names, by index or by UUID; returns their
// count. A process sees one instance of MIG, by nvml.c's name. Instances have numbers after MOST_WHOLE whole devices.
static int visible(int *physical) {
    int there = (int)number_of("NULL_DEVICE_COUNT", 1), count = 0;
    int instances = (int)number_of("NULL_NVML_MIG", 0);
    const char *asked = getenv("CUDA_VISIBLE_DEVICES");
    unsigned device = 0, instance = 0;
    if (instances && (!asked || sscanf(asked, "MIG-%8x-0000-0000-0000-%12x", &device, &instance) == 2)) {
        physical[0] = MOST_WHOLE + (int)device * MOST_INSTANCES + (int)instance;
        return (int)device < there && (int)instance < instances;
    }
    if (!asked) {
        for (; count < there; count++) physical[count] = count;
        return count;
    }
    char copy[1024], *rest = copy, *word;
    snprintf(copy, sizeof copy, "%s", asked);
    while (count < MOST_DEVICES && (word = strsep(&rest, ","))) {
        unsigned byte = 0;
        long found = -1;
        if (sscanf(word, "GPU-%2x", &byte) == 1) found = (long)byte - FIRST_BYTE;
        else sscanf(word, "%ld", &found);
        if (found < 0 || found >= there) break;  // As in CUDA, devices after a wrong one are not seen.
        physical[count++] = (int)found;
    }
    return count;
}

int device_count(void) {
    int physical[MOST_DEVICES];
    return visible(physical);
}

int physical_device(int device) {
    int physical[MOST_DEVICES];
    return device < visible(physical) ? physical[device] : 0;
}

int is_instance(void) { return physical_device(0) >= MOST_WHOLE; }

// 79.11 GiB, as torch shows for an H100 of 80 GB; an instance has 9.5 GiB.
size_t device_bytes(void) { return is_instance() ? 9728 * MIB : (size_t)number_of("NULL_DEVICE_MIB", 81008) * MIB; }

const char *device_name(void) {
    static char name[256];
    const char *told = getenv("NULL_DEVICE_NAME");
    snprintf(name, sizeof name, "%s%s", told ? told : "NVIDIA H100 80GB HBM3", is_instance() ? " MIG 1g.10gb" : "");
    return name;
}

#define PROPERTY(name) offsetof(struct cudaDeviceProp, name)
#define SHARED(part) PROPERTY(shared##Mem##part)

// Each attribute with its value and the offset of its property, 0 if the runtime has no such property.
static const struct {
    CUdevice_attribute attribute;
    int value;
    size_t property;
} ATTRIBUTES[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024, PROPERTY(maxThreadsPerBlock)},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024, PROPERTY(maxThreadsDim[0])},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024, PROPERTY(maxThreadsDim[1])},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64, PROPERTY(maxThreadsDim[2])},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647, PROPERTY(maxGridSize[0])},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535, PROPERTY(maxGridSize[1])},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535, PROPERTY(maxGridSize[2])},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152, SHARED(PerBlock)},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536, PROPERTY(totalConstMem)},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32, PROPERTY(warpSize)},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647, PROPERTY(memPitch)},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536, PROPERTY(regsPerBlock)},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512, PROPERTY(textureAlignment)},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132, PROPERTY(multiProcessorCount)},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1, PROPERTY(concurrentKernels)},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120, PROPERTY(memoryBusWidth)},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800, PROPERTY(l2CacheSize)},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048, PROPERTY(maxThreadsPerMultiProcessor)},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3, PROPERTY(asyncEngineCount)},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1, PROPERTY(unifiedAddressing)},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9, PROPERTY(major)},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0, PROPERTY(minor)},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1, 0},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472, SHARED(PerMultiprocessor)},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536, PROPERTY(regsPerMultiprocessor)},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1, 0},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1, PROPERTY(cooperativeLaunch)},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448, SHARED(PerBlockOptin)},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1, 0},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32, PROPERTY(maxBlocksPerMultiProcessor)},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024, 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1, PROPERTY(memoryPoolsSupported)},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1, 0},
};
#define ATTRIBUTE_COUNT (sizeof ATTRIBUTES / sizeof *ATTRIBUTES)

// Returns whether a daemon's pipe is in the folder where this process looks for one.
int is_client_of_mps(void) {
    char control[1024];
    const char *pipes = getenv("CUDA_MPS_PIPE_DIRECTORY");
    if (!pipes) return 0;
    snprintf(control, sizeof control, "%s/control", pipes);
    return !access(control, F_OK);
}

double part_of_mps(void) {
    return is_client_of_mps() ? (double)number_of("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", 100) / 100 : 1;
}

int device_attribute(CUdevice_attribute attribute) {
    if (attribute == CU_DEVICE_ATTRIBUTE_MPS_ENABLED) return is_client_of_mps();
    int value = 0;
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++)
        if (ATTRIBUTES[i].attribute == attribute) value = ATTRIBUTES[i].value;
    if (attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) return value;
    return (int)((is_instance() ? INSTANCE_MULTIPROCESSORS : value) * part_of_mps());
}

static int board_of(int physical) { return physical < MOST_WHOLE ? physical : (physical - MOST_WHOLE) / MOST_INSTANCES; }

// An instance's UUID has its board's number in byte 3 and its own number in the last byte.
static void write_uuid(int physical, unsigned char bytes[16]) {
    memset(bytes, physical < MOST_WHOLE ? FIRST_BYTE + physical : 0, 16);
    if (physical < MOST_WHOLE) return;
    bytes[3] = (unsigned char)board_of(physical);
    bytes[15] = (unsigned char)((physical - MOST_WHOLE) % MOST_INSTANCES);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", device_name());
    write_uuid(physical_device(device), (unsigned char *)p->uuid.bytes);
    p->totalGlobalMem = device_bytes();
    p->pciBusID = FIRST_BUS + board_of(physical_device(device));
    // Some properties are longer than an int: on a little-endian processor their lowest bytes come first.
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++)
        if (ATTRIBUTES[i].property)
            *(int *)((char *)p + ATTRIBUTES[i].property) = device_attribute(ATTRIBUTES[i].attribute);
    return cudaSuccess;
}

CALL(cudaGetDeviceCount, AT(int, 0) = device_count(); return AT(int, 0) ? cudaSuccess : remember(cudaErrorNoDevice))
CALL(cudaGetDevice, AT(int, 0) = current_device)
CALL(cudaDeviceGetAttribute, AT(int, 0) = device_attribute((CUdevice_attribute)a1))
CALL(cudaDeviceGetPCIBusId, snprintf((char *)a0, (size_t)(int)a1, "0000:%02X:00.0",
                                     FIRST_BUS + board_of(physical_device((int)a2))))
CALL(cudaDeviceGetStreamPriorityRange, AT(int, 0) = 0; AT(int, 1) = -5)
CALL(cudaDeviceCanAccessPeer, AT(int, 0) = (int)a1 != (int)a2)

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= device_count()) return remember(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

#define ERROR(name, sentence) {name, #name, sentence}

static const struct { cudaError_t error; const char *name, *sentence; } ERRORS[] = {
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(cudaErrorUnknown, "an error that the null device has no words for"),
};

static int place_of(cudaError_t error) {
    int last = sizeof ERRORS / sizeof *ERRORS - 1, place = 0;
    while (place < last && ERRORS[place].error != error) place++;
    return place;
}

const char *cudaGetErrorString(cudaError_t error) { return ERRORS[place_of(error)].sentence; }
const char *cudaGetErrorName(cudaError_t error) { return ERRORS[place_of(error)].name; }
