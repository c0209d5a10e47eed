// A CUDA device that computes nothing: calls succeed, memory is reserved and never touched, and works are counted.
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>

#define MOST_DEVICES 64  // 8 boards and 7 instances of each

// ---- Time (clock.c): all work and every wait pass through these functions. Only shared.c models time beside it.

enum WorkKind { WORK_KERNEL, WORK_PRODUCT, WORK_COPY, WORK_FILL };

// A device's unit of work. A kernel's reads and writes are not known: `threads` stands for its size.
typedef struct Work {
    enum WorkKind kind;
    double flops;          // of a product
    double bytes;          // of a product's operands and result, a copy, a fill
    int width;             // bytes of a product's operand
    int tf32;              // is fp32's product allowed to run in TF32?
    double threads;        // of a kernel
    enum cudaMemcpyKind direction;  // of a copy
} Work;

typedef struct Graph {
    Work *works;
    int count, room;
} Graph;

typedef struct Capture Capture;

typedef struct Stream {
    struct Stream *next;   // in the list of all streams of this process
    int device;
    int priority;
    Capture *capture;      // NULL unless it is capturing
    uint64_t issued;       // number of works and waits put on it
    uint64_t waited;       // number of them that the host has waited for
    int unjoined;          // forked off a capture and not yet joined to it again
    uint64_t done_ns;      // clock.c: when its work so far is done
} Stream;

// Puts works on the stream with one launch; returns when the host has issued it.
void clock_issue(Stream *stream, const Work *works, int count);
// Returns the moment at which all work of the stream so far is done.
uint64_t clock_done_ns(Stream *stream);
// Lets the stream do nothing more before this moment.
void clock_hold(Stream *stream, uint64_t done_ns);
// Returns whether the moment has passed.
int clock_passed(uint64_t done_ns);
// Lets the calling thread sleep until the moment: the machines that run tests have few processors.
void clock_wait(uint64_t done_ns);
// Returns the time between two moments that have passed.
double clock_between_ns(uint64_t first_ns, uint64_t last_ns);

// ---- streams.c

Stream *stream_of(cudaStream_t handle);           // the current device's own for the legacy and the per-thread stream
void stream_put(Stream *stream, const Work *work);  // on the graph of its capture, else on the device
void stream_wait(Stream *stream);                 // the host waits; counted if there is work that it has not waited for
cudaError_t refuse_in_capture(void);            // an error where this thread may not make such a call now

// ---- devices.c

extern __thread int current_device;
int device_count(void);
int physical_device(int device);                  // by its number on this host
size_t device_bytes(void);                        // total memory that CUDA reports
long number_of(const char *variable, long otherwise);
int device_attribute(CUdevice_attribute attribute);
int is_client_of_mps(void);
int is_instance(void);                            // is it an instance of MIG?
double part_of_mps(void);                         // share of the device's multiprocessors that this process may use
const char *device_name(void);
cudaError_t remember(cudaError_t error);          // keeps an error for cudaGetLastError

// ---- shared.c: memory and time of all devices, shared by the processes whose NULL_DEVICE_SHARED names one file

int memory_take(int device, size_t bytes);        // 0 where the memory is not free
void memory_give(int device, size_t bytes);
size_t memory_free_bytes(int device);

// `progress`: how far the work of this process has come on a device, in ns. It passes as CLOCK_MONOTONIC does while the
// process has the device to itself, or has no work there.

// Returns the time of CLOCK_MONOTONIC.
double time_ns(void);
// Returns this process's present progress.
double turns_now_ns(int device);
// Notes that this process has work until this progress.
void turns_work(int device, double progress_ns);
// Lets the calling thread sleep until this progress.
void turns_wait(int device, double progress_ns);
// Returns the time of CLOCK_MONOTONIC at which the process reached this progress.
double turns_time_ns(int device, double progress_ns);

// ---- A counter that tests read through ctypes

extern unsigned long long null_device_waits; // calls in which the host waits for a device
