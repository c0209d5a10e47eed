// Time on the null device. Without NULL_DEVICE_SCALE work is done as soon as it is issued. With it, time is modelled:
//
// - a product takes its operations at REACHED of the peak of its precision, or its bytes at the memory's bandwidth,
//   whichever is longer; a convolution in fp32 counts as one without TF32;
// - another kernel takes KERNEL_BYTES of memory for each of its threads; a fill its bytes, a copy within the device
//   twice as many; a copy from or to the host takes the bus;
// - each launch takes LAUNCH_NS more, on its stream. A graph is one launch of the sum of its works;
// - kernels of a process go one after the other, in the order of their issue, and so do copies in each direction;
// - a host that has issued QUEUE launches that are not done waits until half of them are;
// - all of that is multiplied by NULL_DEVICE_SCALE, so that the device takes longer than a slow host that issues it.
//
// A moment is how far the work of this process has come (shared.c), with the device in its upper bits.
#define _GNU_SOURCE
#include "null.h"
#include <stdlib.h>

#define REACHED 0.7
#define LAUNCH_NS 5000.0
#define MEMORY_BYTES_NS 3350.0  // of an H100 SXM's datasheet, as are the peaks
#define BUS_BYTES_NS 55.0       // PCIe 5.0 x16
#define KERNEL_BYTES 32.0
#define QUEUE 1024u
#define DEVICE_BIT 58

enum Engine { KERNELS, TO_DEVICE, TO_HOST, ENGINES };

typedef struct Queue {
    double engines_ns[ENGINES];  // when each engine has done its work
    double done_ns[QUEUE];
    unsigned long count;
} Queue;

static Queue queues[MOST_DEVICES];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

// ---- The model

static double scale(void) {
    static double known = -1;
    if (known < 0) known = getenv("NULL_DEVICE_SCALE") ? atof(getenv("NULL_DEVICE_SCALE")) : 0;
    return known;
}

// In operations per ns.
static double peak(const Work *product) {
    switch (product->width) {
    case 1: return 1979e3;
    case 2: return 989.5e3;
    case 4: return product->tf32 ? 494.5e3 : 67e3;
    default: return 67e3;
    }
}

static enum Engine engine_of(const Work *work) {
    if (work->kind != WORK_COPY) return KERNELS;
    if (work->direction == cudaMemcpyHostToDevice) return TO_DEVICE;
    return work->direction == cudaMemcpyDeviceToHost ? TO_HOST : KERNELS;
}

static double took_ns(const Work *work) {
    double computing_ns, reading_ns;
    switch (work->kind) {
    case WORK_PRODUCT:
        computing_ns = work->flops / (REACHED * peak(work));
        reading_ns = work->bytes / MEMORY_BYTES_NS;
        return computing_ns > reading_ns ? computing_ns : reading_ns;
    case WORK_COPY:
        return engine_of(work) == KERNELS ? 2 * work->bytes / MEMORY_BYTES_NS : work->bytes / BUS_BYTES_NS;
    case WORK_FILL: return work->bytes / MEMORY_BYTES_NS;
    default: return work->threads * KERNEL_BYTES / MEMORY_BYTES_NS;
    }
}

// ---- The seam

static double larger(double one, double other) { return one > other ? one : other; }

static double progress_of(uint64_t moment) { return (double)(moment & ((1ull << DEVICE_BIT) - 1)); }
static int device_of(uint64_t moment) { return (int)(moment >> DEVICE_BIT); }
static uint64_t moment_of(int device, double progress_ns) {
    return (uint64_t)device << DEVICE_BIT | (uint64_t)(progress_ns + 0.5);
}

static void wait_in_queue(Queue *queue, int device) {
    pthread_mutex_lock(&guard);
    int is_full = queue->count >= QUEUE && turns_now_ns(device) < queue->done_ns[queue->count % QUEUE];
    double half_ns = queue->done_ns[(queue->count + QUEUE / 2) % QUEUE];
    pthread_mutex_unlock(&guard);
    if (is_full) turns_wait(device, half_ns);
}

void clock_issue(Stream *stream, const Work *works, int count) {
    if (!scale() || !count) return;
    Queue *queue = &queues[stream->device];
    wait_in_queue(queue, stream->device);
    double sum_ns = LAUNCH_NS;
    for (int i = 0; i < count; i++) sum_ns += took_ns(&works[i]);
    enum Engine engine = count == 1 ? engine_of(works) : KERNELS;
    pthread_mutex_lock(&guard);
    double begin_ns = larger(progress_of(stream->done_ns), queue->engines_ns[engine]);
    begin_ns = larger(begin_ns, turns_now_ns(stream->device));
    double done_ns = begin_ns + scale() * sum_ns;
    queue->engines_ns[engine] = queue->done_ns[queue->count++ % QUEUE] = done_ns;
    stream->done_ns = moment_of(stream->device, done_ns);
    turns_work(stream->device, done_ns);
    pthread_mutex_unlock(&guard);
}

uint64_t clock_done_ns(Stream *stream) {
    if (!scale()) return (uint64_t)time_ns();
    double now_ns = turns_now_ns(stream->device);
    return moment_of(stream->device, larger(progress_of(stream->done_ns), now_ns));
}

void clock_hold(Stream *stream, uint64_t done_ns) {
    // Each device progresses at its own pace: if the moment is another device's, the host waits for it.
    if (device_of(done_ns) != stream->device) clock_wait(done_ns);
    else if (progress_of(done_ns) > progress_of(stream->done_ns)) stream->done_ns = done_ns;
}

int clock_passed(uint64_t done_ns) {
    return !scale() || turns_now_ns(device_of(done_ns)) + 1 >= progress_of(done_ns);
}

void clock_wait(uint64_t done_ns) {
    if (scale()) turns_wait(device_of(done_ns), progress_of(done_ns));
}

double clock_between_ns(uint64_t first_ns, uint64_t last_ns) {
    if (!scale()) return (double)last_ns - (double)first_ns;
    return turns_time_ns(device_of(last_ns), progress_of(last_ns)) -
           turns_time_ns(device_of(first_ns), progress_of(first_ns));
}
