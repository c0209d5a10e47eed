// cuDNN: descriptors keep the values that are set, and plans the cost of their operations.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <cudnn.h>
#include <stdio.h>
#include <string.h>

#define VERSION 92400
#define DROPOUT_STATES 3244032  // bytes, on an H100
#define MOST_DIMENSIONS 8

size_t width_of(cudnnDataType_t type) {
    switch (type) {
    case CUDNN_DATA_DOUBLE: case CUDNN_DATA_INT64: return 8;
    case CUDNN_DATA_HALF: case CUDNN_DATA_BFLOAT16: return 2;
    case CUDNN_DATA_INT8: case CUDNN_DATA_UINT8: case CUDNN_DATA_BOOLEAN: return 1;
    default: return 4;
    }
}

typedef struct Shape {
    cudnnDataType_t type;
    int dimensions, sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
} Shape;

KEEPS(cudnnSetStream, cudnnGetStream, cudnnHandle_t, cudaStream_t, stream)

size_t cudnnGetVersion(void) { return VERSION; }

CALL(cudnnGetProperty, AT(int, 1) = (int)a0 == MAJOR_VERSION   ? VERSION / 10000
                                    : (int)a0 == MINOR_VERSION ? VERSION / 100 % 100
                                                               : VERSION % 100)

// ---- The graph interface. A descriptor keeps its attributes and a cost: an operation that of its convolution, and a
// graph, an engine, a configuration and a plan the cost of the descriptor that it is made from

typedef struct Attribute {
    struct Attribute *next;
    cudnnBackendAttributeName_t name;
    int64_t count;
    char values[];
} Attribute;

typedef struct {
    cudnnBackendDescriptorType_t type;
    Attribute *attributes;
    Work cost;
} Descriptor;

// Returns the bytes of a value of this type.
static size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_BOOLEAN: return 1;
    case CUDNN_TYPE_INT64: case CUDNN_TYPE_DOUBLE: case CUDNN_TYPE_HANDLE: case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 4;
    }
}

static const Attribute *attribute_of(const Descriptor *descriptor, cudnnBackendAttributeName_t name) {
    const Attribute *one = descriptor->attributes;
    while (one && one->name != name) one = one->next;
    return one;
}

static Descriptor *part_of(const Descriptor *descriptor, cudnnBackendAttributeName_t name) {
    const Attribute *attribute = attribute_of(descriptor, name);
    return attribute ? *(Descriptor **)attribute->values : NULL;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
    Descriptor *made = calloc(1, sizeof *made);
    made->type = type;
    *descriptor = made;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    Descriptor *gone = descriptor;
    while (gone->attributes) {
        Attribute *next = gone->attributes->next;
        free(gone->attributes);
        gone->attributes = next;
    }
    free(gone);
    return CUDNN_STATUS_SUCCESS;
}

static void add_cost(Work *sum, const Work *part) {
    if (part->kind != WORK_PRODUCT) return;
    sum->kind = WORK_PRODUCT;
    sum->width = part->width;
    sum->flops += part->flops;
    sum->bytes += part->bytes;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
    Descriptor *whole = descriptor;
    size_t bytes = (size_t)count * size_of(type);
    Attribute *attribute = malloc(sizeof *attribute + bytes);
    *attribute = (Attribute){whole->attributes, name, count};
    memcpy(attribute->values, values, bytes);
    whole->attributes = attribute;
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++)
        if (((Descriptor **)values)[i]) add_cost(&whole->cost, &((Descriptor **)values)[i]->cost);
    return CUDNN_STATUS_SUCCESS;
}

// Returns the number of a tensor's elements (n, c, ...); with `places` the channels c are left out.
static double elements(const Descriptor *tensor, int places) {
    const Attribute *sizes = attribute_of(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
    double product = 1;
    for (int64_t i = 0; i < sizes->count; i++)
        if (i != 1 || !places) product *= (double)((int64_t *)sizes->values)[i];
    return product;
}

static int bytes_of_element(const Descriptor *tensor) {
    const Attribute *type = attribute_of(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE);
    return (int)width_of(*(cudnnDataType_t *)type->values);
}

// A convolution's first attribute: its weights, image and result, or the gradients of these, follow each other.
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t first;
} CONVOLUTIONS[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
};

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    Descriptor *operation = descriptor;
    for (size_t i = 0; i < sizeof CONVOLUTIONS / sizeof *CONVOLUTIONS; i++) {
        if (CONVOLUTIONS[i].type != operation->type) continue;
        const Descriptor *image = part_of(operation, CONVOLUTIONS[i].first + 1);
        const Descriptor *weights = part_of(operation, CONVOLUTIONS[i].first);
        const Descriptor *result = part_of(operation, CONVOLUTIONS[i].first + 2);
        Work work = {.kind = WORK_PRODUCT, .width = bytes_of_element(image)};
        work.flops = 2 * elements(result, 1) * elements(weights, 0);
        work.bytes = work.width * (elements(image, 0) + elements(weights, 0) + elements(result, 0));
        operation->cost = work;
    }
    return CUDNN_STATUS_SUCCESS;
}

// There is one engine, number 0, with a workspace of NULL_DEVICE_WORKSPACE_MIB.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted, int64_t *count, void *values) {
    const Descriptor *asked = descriptor;
    const Attribute *kept = attribute_of(asked, name);
    int64_t answer = 0, found = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        if (values && wanted > 0) (*(Descriptor **)values)->cost = asked->cost;
        values = NULL;
        break;
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT: answer = 1; break;
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: answer = number_of("NULL_DEVICE_WORKSPACE_MIB", 0) << 20; break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: break;
    default:
        found = kept ? kept->count : 0;
        if (kept && values) memcpy(values, kept->values, (size_t)(wanted < found ? wanted : found) * size_of(type));
        values = NULL;
    }
    if (values && wanted > 0) memcpy(values, &answer, sizeof answer);
    if (count) *count = found;
    return CUDNN_STATUS_SUCCESS;
}

CALL(cudnnBackendExecute, stream_put(stream_of(((cudnnHandle_t)a0)->stream), &((Descriptor *)a1)->cost))

// ---- Tensors of the older interface

CALL(cudnnSetTensorNdDescriptor, Shape *shape = (Shape *)a0;
     *shape = (Shape){.type = (cudnnDataType_t)a1, .dimensions = (int)a2};
     memcpy(shape->sizes, (int *)a3, (size_t)shape->dimensions * sizeof(int));
     memcpy(shape->strides, (int *)a4, (size_t)shape->dimensions * sizeof(int)))
CALL(cudnnGetTensorNdDescriptor, const Shape *shape = (Shape *)a0;
     size_t bytes = (size_t)((int)a1 < shape->dimensions ? (int)a1 : shape->dimensions) * sizeof(int);
     AT(cudnnDataType_t, 2) = shape->type;
     AT(int, 3) = shape->dimensions;
     memcpy((int *)a4, shape->sizes, bytes);
     memcpy((int *)a5, shape->strides, bytes))

// ---- Norms need no space here, dropout needs its states

CALL(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, AT(size_t, 8) = 0)
CALL(cudnnGetBatchNormalizationBackwardExWorkspaceSize, AT(size_t, 10) = 0)
CALL(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, AT(size_t, 5) = 0)
CALL(cudnnDropoutGetStatesSize, AT(size_t, 1) = DROPOUT_STATES)
