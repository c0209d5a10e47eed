// The memory that each process has of a device, and the speed of its work there. Processes whose NULL_DEVICE_SHARED
// names one file share its devices in turns of NULL_DEVICE_SLICE_US. Clients of MPS have one turn together, in equal
// parts of the device, and none more than its CUDA_MPS_ACTIVE_THREAD_PERCENTAGE. A process without work takes no
// turn. An instance of MIG is a device of its own, with a seventh of the speed.
//
// Each process that calls brings a device's books up to date under the file's lock, from change of speed to change.
#define _GNU_SOURCE
#include "null.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MOST_CLIENTS 16  // processes on one device
#define SLICES_OF_MIG 7
#define MOST_KNEES 32768u  // a minute in which two processes take turns of 2 ms
#define LONGEST_SLEEP_NS 20e6
#define SHORTEST_SLEEP_NS 50e3
#define LOOK_FOR_DEAD_NS 50e6

typedef struct Client {
    int pid;               // 0 if the place is free
    int is_of_mps;
    double most;           // the largest share of the device that it may have
    double progress_ns, work_ns;
    double speed;
    size_t taken_bytes;    // with its context
} Client;

// Time and progress at which a client's speed changed.
typedef struct Knee {
    double time_ns, progress_ns;
} Knee;

typedef struct Device {
    double time_ns, looked_ns, turn_ends_ns;
    int turn;              // the client whose turn it is
    Client clients[MOST_CLIENTS];
} Device;

typedef struct Shared {
    int is_ready;
    pthread_mutex_t lock;
    Device devices[MOST_DEVICES];
    unsigned long counts[MOST_DEVICES][MOST_CLIENTS];
    Knee knees[MOST_DEVICES][MOST_CLIENTS][MOST_KNEES];
} Shared;

static Shared *shared;
static int places[MOST_DEVICES];  // numbers of this process's devices on the host, by their numbers in this process
static int mine[MOST_DEVICES];    // this process's place among the clients of each device, plus 1; 0 if it has none
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The most bytes that this process ever had of one device, with its context.
size_t null_device_peak_bytes;

double time_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void open_shared(void) {
    const char *path = getenv("NULL_DEVICE_SHARED");
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (path && (file < 0 || flock(file, LOCK_EX) || ftruncate(file, sizeof *shared))) {
        perror(path);
        abort();
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
    if (!shared->is_ready) {
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&shared->lock, &kind);
        shared->is_ready = 1;
    }
    if (path) {
        flock(file, LOCK_UN);  // The mapping keeps the file open.
        close(file);
    }
    for (int device = 0; device < device_count(); device++) places[device] = physical_device(device);
}

// ---- Progress

static int has_work(const Client *client) { return client->pid && client->progress_ns + 1 < client->work_ns; }

static int is_of_group(const Device *device, int client, int turn) {
    return client == turn || (device->clients[client].is_of_mps && device->clients[turn].is_of_mps);
}

static int group_has_work(const Device *device, int turn) {
    for (int i = 0; i < MOST_CLIENTS; i++)
        if (has_work(&device->clients[i]) && is_of_group(device, i, turn)) return 1;
    return 0;
}

// Gives the turn to the next client with work if it is over or not needed. Returns whether other clients have work.
static int pass_turn(Device *device) {
    int next = device->turn, others = 0;
    for (int i = MOST_CLIENTS - 1; i > 0; i--) {
        int client = (device->turn + i) % MOST_CLIENTS;
        if (!has_work(&device->clients[client]) || is_of_group(device, client, device->turn)) continue;
        others = 1;
        next = client;
    }
    int is_needed = group_has_work(device, device->turn);
    if (is_needed && device->time_ns < device->turn_ends_ns) return others;
    device->turn = next;
    device->turn_ends_ns = device->time_ns + 1e3 * (double)number_of("NULL_DEVICE_SLICE_US", 2000);
    return others;
}

// Sets the speeds: the clients whose turn it is have equal parts of the device, and none more than its `most`.
static void set_speeds(Device *device) {
    int running = 0;
    for (int i = 0; i < MOST_CLIENTS; i++)
        running += has_work(&device->clients[i]) && is_of_group(device, i, device->turn);
    for (int i = 0; i < MOST_CLIENTS; i++) {
        Client *client = &device->clients[i];
        int runs = is_of_group(device, i, device->turn);
        client->speed = !has_work(client) ? 1 : !runs ? 0 : client->most * running < 1 ? client->most : 1.0 / running;
    }
}

// Advances a device's time and its clients' progress to `until_ns`, and records the knees.
static void pass_time(Device *device, int place, double until_ns) {
    double before[MOST_CLIENTS];
    while (device->time_ns < until_ns) {
        for (int i = 0; i < MOST_CLIENTS; i++) before[i] = device->clients[i].speed;
        int others_wait = pass_turn(device);
        set_speeds(device);
        double step_ns = until_ns - device->time_ns;
        double turn_ns = device->turn_ends_ns - device->time_ns;
        if (others_wait && turn_ns < step_ns) step_ns = turn_ns;
        for (int i = 0; i < MOST_CLIENTS; i++) {
            const Client *client = &device->clients[i];
            if (!has_work(client) || !client->speed) continue;
            double need_ns = (client->work_ns - client->progress_ns) / client->speed;
            if (need_ns < step_ns) step_ns = need_ns;
        }
        for (int i = 0; i < MOST_CLIENTS; i++) {
            Client *client = &device->clients[i];
            if (!client->pid) continue;
            if (client->speed != before[i])
                shared->knees[place][i][shared->counts[place][i]++ % MOST_KNEES] =
                    (Knee){device->time_ns, client->progress_ns};
            client->progress_ns += client->speed * step_ns;
        }
        device->time_ns += step_ns;
    }
}

// ---- Clients

// Frees the places of processes that are gone: one that was killed gives no memory back itself.
static void leave_dead(Device *device) {
    device->looked_ns = device->time_ns;
    for (Client *client = device->clients; client < device->clients + MOST_CLIENTS; client++)
        if (client->pid && kill(client->pid, 0) && errno == ESRCH) client->pid = 0;
}

static int enter(Device *device, int place) {
    int free = 0;
    while (free < MOST_CLIENTS && device->clients[free].pid) free++;
    if (free == MOST_CLIENTS) {
        fputs("[null device] too many processes share one device\n", stderr);
        abort();
    }
    Client *client = &device->clients[free];
    *client = (Client){.pid = getpid(), .is_of_mps = is_client_of_mps(), .most = part_of_mps(), .speed = 1};
    if (is_instance()) client->most /= SLICES_OF_MIG;
    client->taken_bytes = (size_t)number_of("NULL_DEVICE_CONTEXT_MIB", 520) << 20;
    client->progress_ns = client->work_ns = device->time_ns;
    shared->knees[place][free][0] = (Knee){device->time_ns, device->time_ns};
    shared->counts[place][free] = 1;
    return free + 1;
}

static Device *device_at(int ordinal) { return &shared->devices[places[ordinal]]; }

// Brings the books of a device up to date under the lock, and returns this process's place in them.
static Client *look(int ordinal) {
    pthread_once(&once, open_shared);
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) pthread_mutex_consistent(&shared->lock);
    int place = places[ordinal];
    Device *device = device_at(ordinal);
    if (!device->time_ns) device->time_ns = time_ns();
    if (device->time_ns - device->looked_ns > LOOK_FOR_DEAD_NS) leave_dead(device);
    pass_time(device, place, time_ns());
    // A forked process is another client than its parent.
    if (!mine[place] || device->clients[mine[place] - 1].pid != getpid()) mine[place] = enter(device, place);
    return &device->clients[mine[place] - 1];
}

static void unlock(void) { pthread_mutex_unlock(&shared->lock); }

double turns_now_ns(int ordinal) {
    double progress_ns = look(ordinal)->progress_ns;
    unlock();
    return progress_ns;
}

void turns_work(int ordinal, double progress_ns) {
    Client *me = look(ordinal);
    if (progress_ns > me->work_ns) me->work_ns = progress_ns;
    unlock();
}

void turns_wait(int ordinal, double progress_ns) {
    double left_ns;
    while ((left_ns = progress_ns - turns_now_ns(ordinal)) > 1) {
        // It may take longer, since other processes begin or end meanwhile: the loop looks again.
        if (left_ns < SHORTEST_SLEEP_NS) left_ns = SHORTEST_SLEEP_NS;
        if (left_ns > LONGEST_SLEEP_NS) left_ns = LONGEST_SLEEP_NS;
        nanosleep(&(struct timespec){0, (long)left_ns}, NULL);
    }
}

double turns_time_ns(int ordinal, double progress_ns) {
    Knee later = {.progress_ns = look(ordinal)->progress_ns};
    later.time_ns = device_at(ordinal)->time_ns;
    int place = places[ordinal], me = mine[place] - 1;
    unsigned long count = shared->counts[place][me], first = count > MOST_KNEES ? count - MOST_KNEES : 0;
    double moment_ns = later.time_ns;
    for (unsigned long i = count; i-- > first;) {
        Knee knee = shared->knees[place][me][i % MOST_KNEES];
        // A speed of zero keeps the progress: the process reached it in the last part that begins below it.
        if (knee.progress_ns < progress_ns || i == first) {
            double part = later.progress_ns > knee.progress_ns
                              ? (progress_ns - knee.progress_ns) / (later.progress_ns - knee.progress_ns)
                              : 0;
            moment_ns = knee.time_ns + part * (later.time_ns - knee.time_ns);
            break;
        }
        later = knee;
    }
    unlock();
    return moment_ns;
}

// ---- Memory

static size_t free_bytes(Device *device) {
    size_t taken = 0, total = device_bytes();
    leave_dead(device);
    for (const Client *client = device->clients; client < device->clients + MOST_CLIENTS; client++)
        if (client->pid) taken += client->taken_bytes;
    return taken < total ? total - taken : 0;
}

int memory_take(int ordinal, size_t bytes) {
    Client *me = look(ordinal);
    int fits = bytes <= free_bytes(device_at(ordinal));
    if (fits) me->taken_bytes += bytes;
    if (me->taken_bytes > null_device_peak_bytes) null_device_peak_bytes = me->taken_bytes;
    unlock();
    return fits;
}

void memory_give(int ordinal, size_t bytes) {
    look(ordinal)->taken_bytes -= bytes;
    unlock();
}

size_t memory_free_bytes(int ordinal) {
    look(ordinal);
    size_t bytes = free_bytes(device_at(ordinal));
    unlock();
    return bytes;
}
