// NVIDIA's management library without a driver, for the real nvidia-ml-py. These variables decide its answers:
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
} Answer;

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

// Defines a function that runs these statements and succeeds, unless it is denied.
#define ANSWER(function, parameters, ...)     \
    Answer function parameters {              \
        Answer no = denied(#function);        \
        if (no) return no;                    \
        __VA_ARGS__;                          \
        return SUCCESS;                       \
    }

Answer nvmlInitWithFlags(unsigned flags) { return (Answer)number_of("NULL_NVML_INIT", SUCCESS); }
Answer nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Answer nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(Answer answer) { return "an error that the bindings have no words for"; }

// ---- Handles: a device's index plus 1 in the lower 16 bits, above them an instance's index plus 1, or 0 for none

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

ANSWER(nvmlDeviceGetCount_v2, (unsigned *count), *count = (unsigned)devices())

ANSWER(nvmlDeviceGetHandleByIndex_v2, (unsigned index, Handle *handle),
       if (index >= devices()) return NOT_FOUND;
       if (index == number_of("NULL_NVML_LOST", ~0ull)) return GPU_IS_LOST;
       *handle = handle_of(index, 0))

ANSWER(nvmlDeviceGetHandleByUUID, (const char *uuid, Handle *handle),
       char text[96];
       for (u64 at = 0; at < devices() * (instances() + 1); at++) {
           *handle = handle_of(at % devices(), at / devices());
           write_uuid(*handle, text, sizeof text);
           if (!strcmp(text, uuid)) return SUCCESS;
       }
       return NOT_FOUND)

ANSWER(nvmlDeviceGetHandleByPciBusId_v2, (const char *address, Handle *handle),
       unsigned domain, bus;
       if (sscanf(address, "%x:%x", &domain, &bus) != 2 || bus < 0x10 || bus - 0x10 >= devices()) return NOT_FOUND;
       *handle = handle_of(bus - 0x10, 0))

ANSWER(nvmlDeviceGetMigDeviceHandleByIndex, (Handle device, unsigned index, Handle *handle),
       if (index >= instances()) return NOT_FOUND;
       *handle = handle_of(device_of(device), index + 1))

// ---- Texts

static void write_name(Handle handle, char *text, size_t room) {
    const char *name = getenv("NULL_DEVICE_NAME"), *kind = instance_of(handle) < 0 ? "" : " MIG 1g.10gb";
    snprintf(text, room, "%s%s", name ? name : "NVIDIA H100 80GB HBM3", kind);
}

ANSWER(nvmlDeviceGetUUID, (Handle handle, char *text, unsigned room), write_uuid(handle, text, room))
ANSWER(nvmlDeviceGetName, (Handle handle, char *text, unsigned room), write_name(handle, text, room))
ANSWER(nvmlDeviceGetVbiosVersion, (Handle handle, char *text, unsigned room), snprintf(text, room, "96.00.74.00.01"))
ANSWER(nvmlSystemGetDriverVersion, (char *text, unsigned room), snprintf(text, room, "580.95.05"))
ANSWER(nvmlSystemGetCudaDriverVersion_v2, (int *version), *version = 13000)

// ---- Numbers: each function returns one, mostly the same for every argument

static u64 millijoules(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000) * 400;  // 400 W
}

#define NUMBER(function, Number, value) ANSWER(function, (Handle handle, Number *number), *number = (Number)(value))
#define NUMBER_OF(function, Number, value) \
    ANSWER(function, (Handle handle, int asked, Number *number), *number = (Number)(value))

NUMBER(nvmlDeviceGetNumGpuCores, unsigned, 16896)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 7)
NUMBER(nvmlDeviceGetPersistenceMode, int, 1)
NUMBER(nvmlDeviceGetComputeMode, int, number_of("NULL_NVML_MODE", 0))
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, 700000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, 700000)
NUMBER(nvmlDeviceGetPowerUsage, unsigned, 400000)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, u64, millijoules())
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, number_of("NULL_NVML_REASONS", 4))
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, number_of("NULL_NVML_REASONS", 4))
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 16)
NUMBER_OF(nvmlDeviceGetMaxClockInfo, unsigned, asked == 2 ? 2619 : 1980)
NUMBER_OF(nvmlDeviceGetClockInfo, unsigned, asked == 2 ? 2619 : 1755)
NUMBER_OF(nvmlDeviceGetTemperature, unsigned, 55)


ANSWER(nvmlDeviceGetTotalEccErrors, (Handle handle, int type, int counter, u64 *count), *count = 0)
ANSWER(nvmlDeviceGetEccMode, (Handle handle, int *current, int *pending), *current = *pending = 1)
ANSWER(nvmlDeviceGetMigMode, (Handle handle, unsigned *current, unsigned *pending), *current = *pending = instances() > 0)
ANSWER(nvmlDeviceGetRemappedRows, (Handle handle, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                   unsigned *failed),
       *corrected = *uncorrected = *pending = *failed = 0)

// ---- Structures, laid out as nvml.h has them

typedef struct { char legacy_address[16]; unsigned domain, bus, device, id, subsystem; char address[32]; } PciInfo;
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } MemoryWithReserved;
typedef struct { unsigned device, memory; } Utilisation;
typedef struct { unsigned version; int sensor, celsius; } Temperature;
typedef struct { unsigned pid; u64 used_bytes; unsigned device_instance, compute_instance; } Process;
typedef struct { u64 reference_ns, violation_ns; } Violation;
typedef struct { unsigned multiprocessors, engines[5], slices[2]; u64 memory_mib; } Attributes;

#define RESERVED_MIB 551ull

ANSWER(nvmlDeviceGetPciInfo_v3, (Handle handle, PciInfo *info),
       *info = (PciInfo){.bus = 0x10 + device_of(handle), .id = 0x233010de};
       snprintf(info->address, sizeof info->address, "00000000:%02X:00.0", info->bus);
       snprintf(info->legacy_address, sizeof info->legacy_address, "0000:%02X:00.0", info->bus))

// NVML counts some 550 MiB that CUDA does not, and the function's second form says that the driver reserves them.
ANSWER(nvmlDeviceGetMemoryInfo, (Handle handle, Memory *memory),
       u64 cuda_mib = number_of("NULL_DEVICE_MIB", 81008);
       memory->total = (instance_of(handle) < 0 ? number_of("NULL_NVML_MIB", cuda_mib + RESERVED_MIB) : 9728) << 20;
       memory->used = 600ull << 20;
       memory->free = memory->total - memory->used)

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

ANSWER(nvmlDeviceGetAttributes_v2, (Handle handle, Attributes *attributes),
       if (instance_of(handle) < 0) return NOT_SUPPORTED;
       *attributes = (Attributes){.multiprocessors = 16, .slices = {1, 1}, .memory_mib = 9728})

ANSWER(nvmlDeviceGetUtilizationRates, (Handle handle, Utilisation *rates),
       if (instances()) return NOT_SUPPORTED;
       *rates = (Utilisation){97, 40})

ANSWER(nvmlDeviceGetTemperatureV, (Handle handle, Temperature *temperature), temperature->celsius = 55)
ANSWER(nvmlDeviceGetViolationStatus, (Handle handle, int policy, Violation *violation), *violation = (Violation){0, 0})

// A process of another container has a pid that means nothing here, and unknown memory, with all bits set.
ANSWER(nvmlDeviceGetComputeRunningProcesses_v3, (Handle handle, unsigned *count, Process *processes),
       char copy[256], *rest = copy, *one;
       unsigned found = 0, room = *count;
       const char *pids = getenv("NULL_NVML_PIDS");
       snprintf(copy, sizeof copy, "%s", pids ? pids : "");
       while (*copy && (one = strsep(&rest, ","))) {
           if (processes && found < room) processes[found] = (Process){(unsigned)atoi(one), ~0ull, ~0u, ~0u};
           found++;
       }
       *count = found;
       if (found > room) return INSUFFICIENT_SIZE)

Answer nvmlDeviceGetComputeRunningProcesses(Handle handle, unsigned *count, Process *processes) {
    return nvmlDeviceGetComputeRunningProcesses_v3(handle, count, processes);
}

ANSWER(nvmlDeviceGetMPSComputeRunningProcesses_v3, (Handle handle, unsigned *count, Process *processes), *count = 0)
ANSWER(nvmlDeviceGetGraphicsRunningProcesses_v3, (Handle handle, unsigned *count, Process *processes), *count = 0)

Answer nvmlDeviceGetGpuFabricInfoV(Handle handle, void *info) { return SUCCESS; }  // in no fabric: all zeros

// ---- Features that a single H100 lacks

Answer nvmlDeviceGetRetiredPagesPendingStatus(void) { return NOT_SUPPORTED; }
Answer nvmlDeviceGetNvLinkRemoteDeviceType(void) { return NOT_SUPPORTED; }
Answer nvmlDeviceGetNvLinkRemotePciInfo_v2(void) { return NOT_SUPPORTED; }
