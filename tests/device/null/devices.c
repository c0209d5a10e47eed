// Which devices there are, and what is known of them: an H100's numbers.
#define _GNU_SOURCE
#include "null.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define VERSION 13000
#define FIRST_BUS 0x10
#define MOST_WHOLE 8
#define MOST_INSTANCES 7
#define INSTANCE_MULTIPROCESSORS 16

__thread int current_device = 0;
static __thread cudaError_t last_error = cudaSuccess;

long number_of(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text && *text ? atol(text) : otherwise;
}

void trace(const char *format, ...) {
    if (!number_of("NULL_DEVICE_TRACE", 0)) return;
    va_list values;
    va_start(values, format);
    fputs("[null device] ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
}

cudaError_t remember(cudaError_t error) {
    if (error) last_error = error;
    return error;
}


static void uuid_of(int physical, char *text, size_t room) {
    int b = 0xA0 + physical;
    snprintf(text, room, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b, b, b, b, b, b,
             b, b, b, b, b, b, b, b, b);
}

// Fills `physical` with the devices that CUDA_VISIBLE_DEVICES leaves, by index or by UUID, and returns how many. A process
// sees one instance of MIG, as nvml.c names it: they are devices of their own, and come after MOST_WHOLE whole ones.
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
    char copy[1024], *rest = copy, *word, uuid[64];
    snprintf(copy, sizeof copy, "%s", asked);
    while (count < MOST_DEVICES && (word = strsep(&rest, ","))) {
        char *end;
        long found = strtol(word, &end, 10);
        if (!*word || *end) {
            for (found = 0; found < there; found++) {
                uuid_of((int)found, uuid, sizeof uuid);
                if (strlen(word) > 4 && !strncmp(uuid, word, strlen(word))) break;
            }
        }
        if (found < 0 || found >= there) break;  // As CUDA does: what comes after a wrong one is not seen.
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

// 79.11 GiB, as torch shows an H100 of 80 GB; 9.5 GiB of an instance.
size_t device_bytes(void) { return is_instance() ? 9728 * MIB : (size_t)number_of("NULL_DEVICE_MIB", 81008) * MIB; }

const char *device_name(void) {
    static char name[256];
    const char *told = getenv("NULL_DEVICE_NAME");
    snprintf(name, sizeof name, "%s%s", told ? told : "NVIDIA H100 80GB HBM3", is_instance() ? " MIG 1g.10gb" : "");
    return name;
}

static const struct { int attribute, value; } ATTRIBUTES[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
};

// Is there a daemon's pipe where this process looks for one?
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
    for (size_t i = 0; i < sizeof ATTRIBUTES / sizeof *ATTRIBUTES; i++)
        if (ATTRIBUTES[i].attribute == (int)attribute) value = ATTRIBUTES[i].value;
    if (attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) return value;
    return (int)((is_instance() ? INSTANCE_MULTIPROCESSORS : value) * part_of_mps());
}

static int board_of(int physical) { return physical < MOST_WHOLE ? physical : (physical - MOST_WHOLE) / MOST_INSTANCES; }

// An instance's is its board's number, and in the end its own.
static void write_uuid(int physical, unsigned char bytes[16]) {
    memset(bytes, physical < MOST_WHOLE ? 0xA0 + physical : 0, 16);
    if (physical < MOST_WHOLE) return;
    bytes[3] = (unsigned char)board_of(physical);
    bytes[15] = (unsigned char)((physical - MOST_WHOLE) % MOST_INSTANCES);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", device_name());
    write_uuid(physical_device(device), (unsigned char *)p->uuid.bytes);
    p->totalGlobalMem = device_bytes();
    p->major = device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    p->minor = device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p->multiProcessorCount = device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p->warpSize = device_attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    p->sharedMemPerBlock = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p->sharedMemPerBlockOptin = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p->sharedMemPerMultiprocessor = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p->reservedSharedMemPerBlock = device_attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    p->regsPerBlock = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    p->regsPerMultiprocessor = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    p->maxThreadsPerBlock = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    p->maxThreadsPerMultiProcessor = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p->maxBlocksPerMultiProcessor = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    for (int axis = 0; axis < 3; axis++) {
        p->maxThreadsDim[axis] = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis);
        p->maxGridSize[axis] = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis);
    }
    p->memPitch = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    p->totalConstMem = device_attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    p->memoryBusWidth = device_attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    p->l2CacheSize = device_attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    p->textureAlignment = 512;
    p->asyncEngineCount = device_attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    p->unifiedAddressing = p->managedMemory = p->concurrentKernels = p->cooperativeLaunch = p->memoryPoolsSupported = 1;
    p->pciBusID = FIRST_BUS + board_of(physical_device(device));
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = device_count();
    return *count ? cudaSuccess : remember(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device) {
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= device_count()) return remember(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    (void)device;
    *value = device_attribute((CUdevice_attribute)attribute);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int device) {
    snprintf(text, (size_t)room, "0000:%02X:00.0", FIRST_BUS + board_of(physical_device(device)));
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

static const struct { cudaError_t error; const char *name, *sentence; } ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
};

const char *cudaGetErrorString(cudaError_t error) {
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].error == error) return ERRORS[i].sentence;
    return "an error that the null device has no words for";
}

const char *cudaGetErrorName(cudaError_t error) {
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].error == error) return ERRORS[i].name;
    return "cudaErrorUnknown";
}
