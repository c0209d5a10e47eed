// Streams, events, captures and graphs: their works and waits, and the calls that a capture forbids.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <string.h>

struct Capture {
    Capture *next;
    Stream *origin;
    pthread_t thread;
    enum cudaStreamCaptureMode mode;
    unsigned long long id;
    int invalid;
    Graph *graph;
};

typedef struct Event {
    int is_timed, is_recorded;
    uint64_t done_ns;
    Stream *stream;
    uint64_t issued;            // number of works on its stream when it was recorded
    unsigned long long capture; // id of the capture in which it was recorded last, 0 if in none
} Event;

unsigned long long null_device_waits;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static Stream defaults[MOST_DEVICES];
static Stream *streams;
static Capture *captures;
static unsigned long long last_capture;
static __thread enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

Stream *stream_of(cudaStream_t handle) {
    if (handle && handle != cudaStreamLegacy && handle != cudaStreamPerThread) return (Stream *)handle;
    Stream *stream = &defaults[current_device];
    stream->device = current_device;
    return stream;
}

void graph_add(Graph *graph, const Work *work) {
    if (graph->count == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 64;
        graph->works = realloc(graph->works, (size_t)graph->room * sizeof *graph->works);
    }
    graph->works[graph->count++] = *work;
}

void stream_put(Stream *stream, const Work *work) {
    stream->issued++;
    if (stream->capture) {
        if (stream != stream->capture->origin) stream->unjoined = 1;
        graph_add(stream->capture->graph, work);
    } else {
        clock_issue(stream, work, 1);
    }
}

// Notes that the host waits for the first `issued` works of a stream; returns whether it had not waited for them all.
static int waits_anew(Stream *stream, uint64_t issued) {
    int anew = issued > stream->waited;
    if (anew) stream->waited = issued;
    return anew;
}

void stream_wait(Stream *stream) {
    null_device_waits += (unsigned)waits_anew(stream, stream->issued);
    clock_wait(clock_done_ns(stream));
}

// ---- Calls that a capture forbids

static cudaError_t invalidate(Capture *capture, cudaError_t error) {
    capture->invalid = 1;
    return remember(error);
}

cudaError_t refuse_in_capture(void) {
    if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    for (Capture *one = captures; one; one = one->next) {
        int own = pthread_equal(one->thread, pthread_self()) && one->mode != cudaStreamCaptureModeRelaxed;
        int others = thread_mode == cudaStreamCaptureModeGlobal && one->mode == cudaStreamCaptureModeGlobal;
        if (own || others) return invalidate(one, cudaErrorStreamCaptureUnsupported);
    }
    return cudaSuccess;
}

CALL(cudaThreadExchangeStreamCaptureMode, enum cudaStreamCaptureMode before = thread_mode;
     thread_mode = AT(enum cudaStreamCaptureMode, 0);
     AT(enum cudaStreamCaptureMode, 0) = before)

// ---- Streams

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned flags, int priority) {
    Stream *stream = calloc(1, sizeof *stream);
    stream->device = current_device;
    stream->priority = priority;
    pthread_mutex_lock(&guard);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&guard);
    *handle = (cudaStream_t)stream;
    return cudaSuccess;
}

CALL(cudaStreamGetPriority, AT(int, 1) = stream_of((cudaStream_t)a0)->priority)

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    Stream *stream = stream_of(handle);
    if (stream->capture) return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    return clock_passed(clock_done_ns(stream)) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    Stream *stream = stream_of(handle);
    if (stream->capture) return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    stream_wait(stream);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    cudaError_t error = refuse_in_capture();
    if (error) return error;
    Stream *own = &defaults[current_device];
    uint64_t done_ns = clock_done_ns(own);
    int anew = waits_anew(own, own->issued);
    for (Stream *stream = streams; stream; stream = stream->next) {
        if (stream->device != current_device) continue;
        uint64_t stream_ns = clock_done_ns(stream);
        done_ns = stream_ns > done_ns ? stream_ns : done_ns;
        anew |= waits_anew(stream, stream->issued);
    }
    null_device_waits += (unsigned)anew;
    clock_wait(done_ns);
    return cudaSuccess;
}

CALL(cudaStreamAddCallback, ((cudaStreamCallback_t)a1)((cudaStream_t)a0, cudaSuccess, (void *)a2))
CALL(cudaLaunchHostFunc, if (!stream_of((cudaStream_t)a0)->capture) ((cudaHostFn_t)a1)((void *)a2))

// ---- Capture

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
    Stream *stream = stream_of(handle);
    if (stream == &defaults[stream->device]) return remember(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return remember(cudaErrorIllegalState);
    Capture *capture = calloc(1, sizeof *capture);
    *capture = (Capture){captures, stream, pthread_self(), mode, ++last_capture, 0, calloc(1, sizeof(Graph))};
    stream->capture = captures = capture;
    return cudaSuccess;
}

// Takes all streams out of a capture; returns whether one of them was not joined to its origin.
static int release(Capture *capture) {
    int unjoined = 0;
    for (Stream *stream = streams; stream; stream = stream->next) {
        if (stream->capture == capture) {
            unjoined |= stream->unjoined;
            stream->unjoined = 0;
            stream->capture = NULL;
        }
    }
    return unjoined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
    Capture *capture = stream_of(handle)->capture;
    *graph = NULL;
    if (!capture) return remember(cudaErrorIllegalState);
    Capture **link = &captures;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    int unjoined = release(capture);
    cudaError_t error = capture->invalid ? cudaErrorStreamCaptureInvalidated
                        : unjoined       ? cudaErrorStreamCaptureUnjoined
                                         : cudaSuccess;
    if (!error) *graph = (cudaGraph_t)capture->graph;
    free(capture);
    return remember(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status) {
    Capture *capture = stream_of(handle)->capture;
    *status = !capture           ? cudaStreamCaptureStatusNone
              : capture->invalid ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count) {
    Capture *capture = stream_of(handle)->capture;
    cudaStreamIsCapturing(handle, status);
    if (!capture) return cudaSuccess;
    if (id) *id = capture->id;
    if (graph) *graph = (cudaGraph_t)capture->graph;
    if (nodes) *nodes = NULL;
    if (edges) *edges = NULL;
    if (count) *count = 0;
    return cudaSuccess;
}

// ---- Graphs: a list of works, which a replay puts on its stream in the order of their capture

static Graph *copy_of(const Graph *from) {
    Graph *copy = calloc(1, sizeof *copy);
    for (int i = 0; i < from->count; i++) graph_add(copy, &from->works[i]);
    return copy;
}

CALL(cudaGraphInstantiateWithFlags, AT(Graph *, 0) = copy_of((Graph *)a1))

cudaError_t cudaGraphLaunch(cudaGraphExec_t replay, cudaStream_t handle) {
    const Graph *graph = (Graph *)replay;
    Stream *stream = stream_of(handle);
    stream->issued++;
    clock_issue(stream, graph->works, graph->count);
    return cudaSuccess;
}

static void discard(Graph *graph) {
    if (graph) free(graph->works);
    free(graph);
}

CALL(cudaGraphGetNodes, AT(size_t, 2) = (size_t)((Graph *)a0)->count)
CALL(cudaGraphDestroy, discard((Graph *)a0))
CALL(cudaGraphExecDestroy, discard((Graph *)a0))

// ---- Events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned flags) {
    Event *event = calloc(1, sizeof *event);
    event->is_timed = !(flags & cudaEventDisableTiming);
    *handle = (cudaEvent_t)event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *handle) { return cudaEventCreateWithFlags(handle, 0); }

FREES(cudaEventDestroy)

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t on, unsigned flags) {
    Event *event = (Event *)handle;
    Stream *stream = stream_of(on);
    event->is_recorded = 1;
    event->stream = stream;
    event->issued = stream->issued;
    event->capture = stream->capture ? stream->capture->id : 0;
    event->done_ns = stream->capture ? 0 : clock_done_ns(stream);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) { return cudaEventRecordWithFlags(handle, on, 0); }

// Returns an error, and invalidates the capture, if the event was recorded in one: it cannot be queried or waited for.
static cudaError_t refuse_captured(const Event *event) {
    for (Capture *one = captures; one; one = one->next)
        if (one->id == event->capture) return invalidate(one, cudaErrorCapturedEvent);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    const Event *event = (Event *)handle;
    cudaError_t error = refuse_captured(event);
    if (!error) error = refuse_in_capture();
    return error ? error : clock_passed(event->done_ns) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    const Event *event = (Event *)handle;
    cudaError_t error = refuse_captured(event);
    if (error || !event->is_recorded) return error;
    null_device_waits += (unsigned)waits_anew(event->stream, event->issued);
    clock_wait(event->done_ns);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    const Event *first = (Event *)from, *last = (Event *)to;
    if (!first->is_timed || !last->is_timed || !first->is_recorded || !last->is_recorded)
        return remember(cudaErrorInvalidResourceHandle);
    if (!clock_passed(first->done_ns) || !clock_passed(last->done_ns)) return cudaErrorNotReady;
    *milliseconds = (float)(clock_between_ns(first->done_ns, last->done_ns) / 1e6);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t awaited, unsigned flags) {
    const Event *event = (Event *)awaited;
    Stream *stream = stream_of(handle), *on = event->stream;
    if (!event->is_recorded) return cudaSuccess;
    if (!event->capture) {
        if (stream->capture)
            return invalidate(stream->capture, cudaErrorStreamCaptureIsolation);
        clock_hold(stream, event->done_ns);
        return cudaSuccess;
    }
    Capture *capture = on->capture;
    if (!capture || capture->id != event->capture) return cudaSuccess;
    if (!stream->capture) {
        stream->capture = capture;  // Forked off, this stream has to be joined again.
        stream->unjoined = 1;
    }
    if (on->issued == event->issued) on->unjoined = 0;
    stream->issued++;
    return cudaSuccess;
}
