// Functions of CUDA's libraries without their prototypes: every argument is a whole number or an address.
// CALL(name, ...) defines a function that runs these statements and succeeds; a0, a1 ... are its arguments in order.
#pragma once
#include <stdint.h>
#include <stdlib.h>

#define PLACES                                                                                                       \
    intptr_t a0, intptr_t a1, intptr_t a2, intptr_t a3, intptr_t a4, intptr_t a5, intptr_t a6, intptr_t a7,          \
        intptr_t a8, intptr_t a9, intptr_t a10, intptr_t a11, intptr_t a12, intptr_t a13, intptr_t a14, intptr_t a15, \
        intptr_t a16, intptr_t a17, intptr_t a18, intptr_t a19, intptr_t a20, intptr_t a21, intptr_t a22
#define CALL(name, ...)                     \
    int null_##name(PLACES) __asm__(#name); \
    int null_##name(PLACES) {               \
        __VA_ARGS__;                        \
        return 0;                           \
    }
// The object to which the argument at this place points.
#define AT(Type, place) (*(Type *)a##place)

// Objects that only keep the values that are set. build.py writes the functions that create them, with a kilobyte each.
#define FREES(function) CALL(function, free((void *)a0))
#define KEEPS(set, get, Handle, Value, field)       \
    CALL(set, ((Handle)a0)->field = (Value)a1)      \
    CALL(get, AT(Value, 1) = ((Handle)a0)->field)

struct cudnnContext {
    cudaStream_t stream;
};
