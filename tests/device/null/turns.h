// How processes share a device in modelled time. `progress`: in ns, how far the work of this process has come on a
// device. It is the time of CLOCK_MONOTONIC as long as the process has the device to itself, or nothing to do there.
#pragma once

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
