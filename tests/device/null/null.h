// A CUDA device that computes nothing: calls succeed, memory is reserved and never touched, streams and graphs keep books.
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>

#define MOST_DEVICES 64  // 8 boards and 7 instances of each

// ---- The seam of time (clock.c): all work and every wait pass here, and nothing else in these files knows a clock.

enum WorkKind { WORK_KERNEL, WORK_PRODUCT, WORK_COPY, WORK_FILL };

// One thing that a device does. What a kernel reads and writes is not known: `threads` is its size.
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
    struct Stream *next;   // of all streams of this process
    int device;
    int priority;
    Capture *capture;      // NULL unless it is capturing
    uint64_t issued;       // so many works and waits were put on it
    uint64_t waited;       // so many of them the host has waited for
    int unjoined;          // of a capture that it has not been joined to since it was forked off
    uint64_t done_ns;      // clock.c: when its work so far is done
} Stream;

// Puts works on the stream, with one call of the host for all of them; returns when the host has issued it.
void clock_issue(Stream *stream, const Work *works, int count);
// Returns the moment at which all work of the stream so far is done.
uint64_t clock_done_ns(Stream *stream);
// Lets the stream do nothing more before this moment.
void clock_hold(Stream *stream, uint64_t done_ns);
// Returns whether the moment has passed.
int clock_passed(uint64_t done_ns);
// Lets the calling thread wait for the moment, without its processor, of which the machines that run tests have few.
void clock_wait(uint64_t done_ns);
// Returns the time between two moments that have passed.
double clock_between_ns(uint64_t first_ns, uint64_t last_ns);

// ---- streams.c

Stream *stream_of(cudaStream_t handle);           // the current device's own for the legacy and the per-thread stream
void stream_put(Stream *stream, const Work *work);  // on its graph where it captures, else on the device
void stream_wait(Stream *stream);                 // of the host; counts as one where there is anything to wait for
cudaError_t refuse_in_capture(void);            // an error where this thread may not make such a call now

// ---- devices.c

extern __thread int current_device;
int device_count(void);
int physical_device(int device);                  // by its number on this host
size_t device_bytes(void);                        // what CUDA says there is
long number_of(const char *variable, long otherwise);
int device_attribute(CUdevice_attribute attribute);
int is_client_of_mps(void);
int is_instance(void);                            // of MIG
double part_of_mps(void);                         // of the device's multiprocessors, that this process may use
const char *device_name(void);
cudaError_t remember(cudaError_t error);          // for cudaGetLastError

// ---- shared.c: the memory and the time of all devices, shared by the processes that NULL_DEVICE_SHARED names a file to

int memory_take(int device, size_t bytes);        // 0 where there is no room
void memory_give(int device, size_t bytes);
size_t memory_free_bytes(int device);

// `progress`: in ns, how far the work of this process has come on a device. It is the time of CLOCK_MONOTONIC as long as
// the process has the device to itself, or nothing to do there.

// Returns the time of CLOCK_MONOTONIC.
double time_ns(void);
// Returns this process's progress by now.
double turns_now_ns(int device);
// Tells that this process has work until so much progress.
void turns_work(int device, double progress_ns);
// Lets the calling thread sleep until so much progress.
void turns_wait(int device, double progress_ns);
// Returns the time at which the process had come so far.
double turns_time_ns(int device, double progress_ns);

// ---- What tests ask through ctypes

extern unsigned long long null_device_waits;      // calls in which the host waits for a device
extern unsigned long long null_device_launches;
