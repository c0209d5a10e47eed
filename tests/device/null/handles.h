// Objects that cuBLAS and cuDNN hand out, and that keep no more than what they are told. Functions that create them are
// written by build.py: each thing has a kilobyte.
#pragma once
#include <stdlib.h>

#define FREES(Status, function, Handle) \
    Status function(Handle gone) {      \
        free(gone);                     \
        return (Status)0;               \
    }
#define KEEPS(Status, set, get, Handle, Value, field) \
    Status set(Handle handle, Value value) {          \
        handle->field = value;                        \
        return (Status)0;                             \
    }                                                 \
    Status get(Handle handle, Value *value) {         \
        *value = handle->field;                       \
        return (Status)0;                             \
    }

struct cudnnContext {
    cudaStream_t stream;
};
