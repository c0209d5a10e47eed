// NVIDIA's management library without a driver, for the real nvidia-ml-py. What it answers is told by variables:
// NULL_DEVICE_COUNT, NULL_DEVICE_NAME; NULL_NVML_INIT (nvmlInit's error), NULL_NVML_LOST (the index of a lost board),
// NULL_NVML_MIG (instances of each device), NULL_NVML_PIDS (a comma list), NULL_NVML_MODE (compute mode),
// NULL_NVML_REASONS (of clocks), NULL_NVML_MIB (memory), NULL_NVML_DENY (functions, or * for all but names and counts)
// and NULL_NVML_DENY_CODE (the error of those).
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long u64;

typedef enum {
    SUCCESS = 0,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15,
    LIBRARY_MISMATCH = 18,
} Answer;

static const struct { Answer answer; const char *sentence; } SENTENCES[] = {
    {SUCCESS, "Success"},
    {NOT_SUPPORTED, "Not Supported"},
    {NO_PERMISSION, "Insufficient Permissions"},
    {NOT_FOUND, "Not Found"},
    {INSUFFICIENT_SIZE, "Insufficient Size"},
    {DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {GPU_IS_LOST, "GPU is lost"},
    {LIBRARY_MISMATCH, "Driver/library version mismatch"},
};

static u64 number_of(const char *variable, u64 otherwise) {
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static int is_in(const char *list, const char *word) {
    char copy[1024], *rest = copy, *one;
    snprintf(copy, sizeof copy, "%s", list);
    while ((one = strsep(&rest, ",")))
        if (!strcmp(one, word)) return 1;
    return 0;
}

static Answer denied(const char *function) {
    const char *list = getenv("NULL_NVML_DENY");
    static const char *always = "nvmlDeviceGetCount_v2,nvmlDeviceGetHandleByIndex_v2,nvmlDeviceGetPciInfo_v3,"
                                "nvmlDeviceGetName,nvmlDeviceGetUUID,nvmlSystemGetDriverVersion";
    int is_denied = list && (strcmp(list, "*") ? is_in(list, function) : !is_in(always, function));
    return is_denied ? (Answer)number_of("NULL_NVML_DENY_CODE", NOT_SUPPORTED) : SUCCESS;
}

#define UNLESS_DENIED                    \
    do {                                 \
        Answer no = denied(__func__);    \
        if (no) return no;               \
    } while (0)

Answer nvmlInitWithFlags(unsigned flags) { return (Answer)number_of("NULL_NVML_INIT", SUCCESS); }
Answer nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Answer nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(Answer answer) {
    for (size_t i = 0; i < sizeof SENTENCES / sizeof *SENTENCES; i++)
        if (SENTENCES[i].answer == answer) return SENTENCES[i].sentence;
    return "Unknown Error";
}

// ---- Handles: a device's index from 1 on, and above it, from 1 on too, that of an instance of MIG

typedef uintptr_t Handle;

static Handle handle_of(u64 device, u64 instance_and_one) { return (device + 1) | instance_and_one << 16; }
static unsigned device_of(Handle handle) { return (unsigned)(handle & 0xffff) - 1; }
static int instance_of(Handle handle) { return (int)(handle >> 16) - 1; }

static u64 devices(void) { return number_of("NULL_DEVICE_COUNT", 1); }
static u64 instances(void) { return number_of("NULL_NVML_MIG", 0); }

static void write_uuid(Handle handle, char *text, size_t room) {
    unsigned d = device_of(handle), b = 0xA0 + d;
    if (instance_of(handle) >= 0) {
        snprintf(text, room, "MIG-%08x-0000-0000-0000-%012x", d, (unsigned)instance_of(handle));
    } else {
        snprintf(text, room, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b, b, b, b,
                 b, b, b, b, b, b, b, b, b, b, b);
    }
}

Answer nvmlDeviceGetCount_v2(unsigned *count) {
    UNLESS_DENIED;
    *count = (unsigned)devices();
    return SUCCESS;
}

Answer nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle *handle) {
    UNLESS_DENIED;
    if (index >= devices()) return NOT_FOUND;
    if (index == number_of("NULL_NVML_LOST", ~0ull)) return GPU_IS_LOST;
    *handle = handle_of(index, 0);
    return SUCCESS;
}

Answer nvmlDeviceGetHandleByUUID(const char *uuid, Handle *handle) {
    UNLESS_DENIED;
    char text[96];
    for (u64 device = 0; device < devices(); device++) {
        for (u64 instance = 0; instance <= instances(); instance++) {
            *handle = handle_of(device, instance);
            write_uuid(*handle, text, sizeof text);
            if (!strcmp(text, uuid)) return SUCCESS;
        }
    }
    return NOT_FOUND;
}

Answer nvmlDeviceGetHandleByPciBusId_v2(const char *address, Handle *handle) {
    UNLESS_DENIED;
    unsigned domain, bus;
    if (sscanf(address, "%x:%x", &domain, &bus) != 2 || bus < 0x10 || bus - 0x10 >= devices()) return NOT_FOUND;
    *handle = handle_of(bus - 0x10, 0);
    return SUCCESS;
}

Answer nvmlDeviceGetMigDeviceHandleByIndex(Handle device, unsigned index, Handle *handle) {
    UNLESS_DENIED;
    if (index >= instances()) return NOT_FOUND;
    *handle = handle_of(device_of(device), index + 1);
    return SUCCESS;
}

Answer nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Handle instance, Handle *handle) {
    UNLESS_DENIED;
    *handle = handle_of(device_of(instance), 0);
    return SUCCESS;
}

// ---- Words

#define ANSWER_TEXT(function, ...)                          \
    Answer function(Handle handle, char *text, unsigned room) { \
        UNLESS_DENIED;                                      \
        __VA_ARGS__;                                        \
        return SUCCESS;                                     \
    }

static void write_name(Handle handle, char *text, size_t room) {
    const char *name = getenv("NULL_DEVICE_NAME"), *kind = instance_of(handle) < 0 ? "" : " MIG 1g.10gb";
    snprintf(text, room, "%s%s", name ? name : "NVIDIA H100 80GB HBM3", kind);
}

ANSWER_TEXT(nvmlDeviceGetUUID, write_uuid(handle, text, room))
ANSWER_TEXT(nvmlDeviceGetName, write_name(handle, text, room))
ANSWER_TEXT(nvmlDeviceGetVbiosVersion, snprintf(text, room, "96.00.74.00.01"))

Answer nvmlSystemGetDriverVersion(char *text, unsigned room) {
    UNLESS_DENIED;
    snprintf(text, room, "580.95.05");
    return SUCCESS;
}

Answer nvmlSystemGetNVMLVersion(char *text, unsigned room) {
    UNLESS_DENIED;
    snprintf(text, room, "13.580.95.05");
    return SUCCESS;
}

Answer nvmlSystemGetCudaDriverVersion_v2(int *version) {
    UNLESS_DENIED;
    *version = 13000;
    return SUCCESS;
}

// ---- Numbers: one for each function, whatever is asked beside the device

static u64 millijoules(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000) * 400;  // 400 W
}

#define ANSWER(function, Number, value)              \
    Answer function(Handle handle, Number *number) { \
        UNLESS_DENIED;                               \
        *number = (Number)(value);                   \
        return SUCCESS;                              \
    }
#define ANSWER_OF(function, Number, value)                         \
    Answer function(Handle handle, int asked, Number *number) {    \
        UNLESS_DENIED;                                             \
        *number = (Number)(value);                                 \
        return SUCCESS;                                            \
    }

ANSWER(nvmlDeviceGetIndex, unsigned, device_of(handle))
ANSWER(nvmlDeviceGetNumGpuCores, unsigned, 16896)
ANSWER(nvmlDeviceGetArchitecture, unsigned, 9)
ANSWER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 7)
ANSWER(nvmlDeviceGetPersistenceMode, int, 1)
ANSWER(nvmlDeviceGetComputeMode, int, number_of("NULL_NVML_MODE", 0))
ANSWER(nvmlDeviceGetPowerManagementLimit, unsigned, 700000)
ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, 700000)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, unsigned, 700000)
ANSWER(nvmlDeviceGetPowerUsage, unsigned, 400000)
ANSWER(nvmlDeviceGetTotalEnergyConsumption, u64, millijoules())
ANSWER(nvmlDeviceGetCurrentClocksEventReasons, u64, number_of("NULL_NVML_REASONS", 4))
ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, number_of("NULL_NVML_REASONS", 4))
ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 5)
ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 5)
ANSWER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 16)
ANSWER_OF(nvmlDeviceGetMaxClockInfo, unsigned, asked == 2 ? 2619 : 1980)
ANSWER_OF(nvmlDeviceGetClockInfo, unsigned, asked == 2 ? 2619 : 1755)
ANSWER_OF(nvmlDeviceGetTemperature, unsigned, 55)

Answer nvmlDeviceGetTotalEccErrors(Handle handle, int type, int counter, u64 *count) {
    UNLESS_DENIED;
    *count = 0;
    return SUCCESS;
}

Answer nvmlDeviceGetEccMode(Handle handle, int *current, int *pending) {
    UNLESS_DENIED;
    *current = *pending = 1;
    return SUCCESS;
}

Answer nvmlDeviceGetMigMode(Handle handle, unsigned *current, unsigned *pending) {
    UNLESS_DENIED;
    *current = *pending = instances() > 0;
    return SUCCESS;
}

Answer nvmlDeviceGetCudaComputeCapability(Handle handle, int *major, int *minor) {
    UNLESS_DENIED;
    *major = 9;
    *minor = 0;
    return SUCCESS;
}

Answer nvmlDeviceGetRemappedRows(Handle handle, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                 unsigned *failed) {
    UNLESS_DENIED;
    *corrected = *uncorrected = *pending = *failed = 0;
    return SUCCESS;
}

// ---- Structures, laid out as nvml.h has them

typedef struct { char legacy_address[16]; unsigned domain, bus, device, id, subsystem; char address[32]; } PciInfo;
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } MemoryWithReserved;
typedef struct { unsigned device, memory; } Utilisation;
typedef struct { unsigned version; int sensor, celsius; } Temperature;
typedef struct { unsigned pid; u64 used_bytes; unsigned device_instance, compute_instance; } Process;
typedef struct { u64 reference_ns, violation_ns; } Violation;
typedef struct { unsigned multiprocessors, engines[5], slices[2]; u64 memory_mib; } Attributes;

Answer nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo *info) {
    UNLESS_DENIED;
    *info = (PciInfo){.bus = 0x10 + device_of(handle), .id = 0x233010de};
    snprintf(info->address, sizeof info->address, "00000000:%02X:00.0", info->bus);
    snprintf(info->legacy_address, sizeof info->legacy_address, "0000:%02X:00.0", info->bus);
    return SUCCESS;
}

#define RESERVED_MIB 551ull

// NVML counts some 550 MiB that CUDA does not give, and its second form says that the driver keeps them.
Answer nvmlDeviceGetMemoryInfo(Handle handle, Memory *memory) {
    UNLESS_DENIED;
    u64 cuda_mib = number_of("NULL_DEVICE_MIB", 81008);
    memory->total = (instance_of(handle) < 0 ? number_of("NULL_NVML_MIB", cuda_mib + RESERVED_MIB) : 9728) << 20;
    memory->used = 600ull << 20;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

Answer nvmlDeviceGetMemoryInfo_v2(Handle handle, MemoryWithReserved *memory) {
    Memory first;
    Answer answer = nvmlDeviceGetMemoryInfo(handle, &first);
    if (answer) return answer;
    memory->total = first.total;
    memory->reserved = instance_of(handle) < 0 ? RESERVED_MIB << 20 : 0;
    memory->free = first.free;
    memory->used = first.used - memory->reserved;
    return SUCCESS;
}

Answer nvmlDeviceGetAttributes_v2(Handle handle, Attributes *attributes) {
    UNLESS_DENIED;
    if (instance_of(handle) < 0) return NOT_SUPPORTED;
    *attributes = (Attributes){.multiprocessors = 16, .slices = {1, 1}, .memory_mib = 9728};
    return SUCCESS;
}

Answer nvmlDeviceGetUtilizationRates(Handle handle, Utilisation *rates) {
    UNLESS_DENIED;
    if (instances()) return NOT_SUPPORTED;
    *rates = (Utilisation){97, 40};
    return SUCCESS;
}

Answer nvmlDeviceGetTemperatureV(Handle handle, Temperature *temperature) {
    UNLESS_DENIED;
    temperature->celsius = 55;
    return SUCCESS;
}

Answer nvmlDeviceGetViolationStatus(Handle handle, int policy, Violation *violation) {
    UNLESS_DENIED;
    *violation = (Violation){0, 0};
    return SUCCESS;
}

// A process of another container has a pid that means nothing here, and memory that is not told: all bits set.
Answer nvmlDeviceGetComputeRunningProcesses_v3(Handle handle, unsigned *count, Process *processes) {
    UNLESS_DENIED;
    char copy[256], *rest = copy, *one;
    unsigned found = 0, room = *count;
    const char *pids = getenv("NULL_NVML_PIDS");
    snprintf(copy, sizeof copy, "%s", pids ? pids : "");
    while (*copy && (one = strsep(&rest, ","))) {
        if (processes && found < room) processes[found] = (Process){(unsigned)atoi(one), ~0ull, ~0u, ~0u};
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

Answer nvmlDeviceGetComputeRunningProcesses(Handle handle, unsigned *count, Process *processes) {
    return nvmlDeviceGetComputeRunningProcesses_v3(handle, count, processes);
}

#define ANSWER_NO_PROCESSES(function)                                        \
    Answer function(Handle handle, unsigned *count, Process *processes) {    \
        UNLESS_DENIED;                                                       \
        *count = 0;                                                          \
        return SUCCESS;                                                      \
    }

ANSWER_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
ANSWER_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)

Answer nvmlDeviceGetGpuFabricInfoV(Handle handle, void *info) { return SUCCESS; }  // It is in none: all zeros.

// ---- What an H100 of its own has not

#define ANSWER_NOT_SUPPORTED(function) \
    Answer function(void) { return NOT_SUPPORTED; }

ANSWER_NOT_SUPPORTED(nvmlDeviceGetRetiredPagesPendingStatus)
ANSWER_NOT_SUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
ANSWER_NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
