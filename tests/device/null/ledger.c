// How much of each device is taken: by this process, and by all others that share the ledger's file.
#define _GNU_SOURCE
#include "null.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_PROCESSES 64

// A process that was killed gives nothing back: its row counts no more as soon as it is gone.
typedef struct Row {
    int pid;
    size_t taken[MOST_DEVICES];  // by index of the device, its context included
} Row;

// The most that this process ever had of one device, its context included.
size_t null_device_peak_bytes;

static Row *rows;
static Row *mine;
static int file = -1;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

int physical_device(int device);

static void lock(void) {
    pthread_mutex_lock(&guard);
    if (file >= 0) flock(file, LOCK_EX);
}

static void unlock(void) {
    if (file >= 0) flock(file, LOCK_UN);
    pthread_mutex_unlock(&guard);
}

static int is_alive(int pid) { return pid && (kill(pid, 0) == 0 || errno == EPERM); }

static void open_rows(void) {
    const char *path = getenv("NULL_DEVICE_LEDGER");
    size_t bytes = MOST_PROCESSES * sizeof(Row);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (path) {
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0 || ftruncate(file, (off_t)bytes)) {
            perror(path);
            abort();
        }
        flags = MAP_SHARED;
    }
    rows = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
}

// Finds this process a row; one that was forked before it touched a device has its own.
static void enter(void) {
    if (!rows) open_rows();
    if (mine && mine->pid == getpid()) return;
    mine = NULL;
    for (Row *row = rows; row < rows + MOST_PROCESSES && !mine; row++)
        if (!is_alive(row->pid)) mine = row;
    if (!mine) {
        fputs("[null device] too many processes share one ledger\n", stderr);
        abort();
    }
    *mine = (Row){.pid = getpid()};
}

static size_t free_bytes(int device) {
    size_t taken = 0, total = device_bytes();
    size_t context = (size_t)number_of("NULL_DEVICE_CONTEXT_MIB", 520) << 20;
    int place = physical_device(device);
    if (!mine->taken[place]) mine->taken[place] = context;
    for (Row *row = rows; row < rows + MOST_PROCESSES; row++)
        if (row == mine || is_alive(row->pid)) taken += row->taken[place];
    return taken < total ? total - taken : 0;
}

int ledger_take(int device, size_t bytes) {
    lock();
    enter();
    int fits = bytes <= free_bytes(device);
    size_t *taken = mine->taken + physical_device(device);
    if (fits) *taken += bytes;
    if (*taken > null_device_peak_bytes) null_device_peak_bytes = *taken;
    unlock();
    return fits;
}

void ledger_give(int device, size_t bytes) {
    lock();
    enter();
    mine->taken[physical_device(device)] -= bytes;
    unlock();
}

size_t ledger_free_bytes(int device) {
    lock();
    enter();
    size_t bytes = free_bytes(device);
    unlock();
    return bytes;
}
