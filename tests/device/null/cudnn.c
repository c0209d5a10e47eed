// cuDNN: descriptors keep what they are told, plans know what their operations cost, recurrent layers have real sizes.
#define _GNU_SOURCE
#include "null.h"
#include "handles.h"
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
    cudnnTensorFormat_t format;
    int dimensions, sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
} Shape;

struct cudnnTensorStruct { Shape shape; };
struct cudnnFilterStruct { Shape shape; };

KEEPS(cudnnStatus_t, cudnnSetStream, cudnnGetStream, cudnnHandle_t, cudaStream_t, stream)

size_t cudnnGetVersion(void) { return VERSION; }
size_t cudnnGetCudartVersion(void) { return 13000; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value) {
    *value = type == MAJOR_VERSION ? VERSION / 10000 : type == MINOR_VERSION ? VERSION / 100 % 100 : VERSION % 100;
    return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    return status ? "an error that the null cuDNN has no words for" : "CUDNN_STATUS_SUCCESS";
}

void cudnnGetLastErrorString(char *text, size_t room) {
    if (room) *text = '\0';
}

// ---- The graph interface. A descriptor keeps its attributes, and the cost of what it stands for

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

// In bytes; 0 of what is not read here.
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

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
    size_t bytes = (size_t)count * size_of(type);
    Attribute *attribute = malloc(sizeof *attribute + bytes);
    *attribute = (Attribute){((Descriptor *)descriptor)->attributes, name, count};
    memcpy(attribute->values, values, bytes);
    ((Descriptor *)descriptor)->attributes = attribute;
    return CUDNN_STATUS_SUCCESS;
}

// Elements of a tensor of (n, c, ...), from its second dimension on where `places`: those that a kernel goes over.
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

// Where a convolution's image, weights and result, or the gradients in their place, stand among its attributes.
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t image, weights, result;
} CONVOLUTIONS[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static Work convolution(const Descriptor *operation) {
    for (size_t i = 0; i < sizeof CONVOLUTIONS / sizeof *CONVOLUTIONS; i++) {
        if (CONVOLUTIONS[i].type != operation->type) continue;
        const Descriptor *image = part_of(operation, CONVOLUTIONS[i].image);
        const Descriptor *weights = part_of(operation, CONVOLUTIONS[i].weights);
        const Descriptor *result = part_of(operation, CONVOLUTIONS[i].result);
        Work work = {.kind = WORK_PRODUCT, .width = bytes_of_element(image)};
        work.flops = 2 * elements(result, 1) * elements(weights, 0);
        work.bytes = work.width * (elements(image, 0) + elements(weights, 0) + elements(result, 0));
        return work;
    }
    return (Work){.kind = WORK_KERNEL};
}

static Work cost_of_all(const Descriptor *graph) {
    const Attribute *operations = attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    Work sum = {.kind = WORK_KERNEL};
    for (int64_t i = 0; operations && i < operations->count; i++) {
        const Work *one = &((Descriptor **)operations->values)[i]->cost;
        if (one->kind != WORK_PRODUCT) continue;
        sum.kind = WORK_PRODUCT;
        sum.width = one->width;
        sum.flops += one->flops;
        sum.bytes += one->bytes;
    }
    return sum;
}

// Costs go from operations through graph, engine and its configuration to the plan.
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t from;
} HEIRS[] = {
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG},
};

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    Descriptor *final = descriptor;
    if (final->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) final->cost = cost_of_all(final);
    else final->cost = convolution(final);
    for (size_t i = 0; i < sizeof HEIRS / sizeof *HEIRS; i++) {
        const Descriptor *from = HEIRS[i].type == final->type ? part_of(final, HEIRS[i].from) : NULL;
        if (from) final->cost = from->cost;
    }
    return CUDNN_STATUS_SUCCESS;
}

// The one engine that there is, number 0, with a workspace of NULL_DEVICE_WORKSPACE_MIB.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted, int64_t *count, void *values) {
    const Descriptor *asked = descriptor;
    const Attribute *kept = attribute_of(asked, name);
    int64_t answer = 0, found = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        if (values && wanted > 0) (*(Descriptor **)values)->cost = asked->cost;
        break;
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
        answer = 1;
        if (values && wanted > 0) memcpy(values, &answer, sizeof answer);
        break;
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        answer = number_of("NULL_DEVICE_WORKSPACE_MIB", 0) << 20;
        if (values && wanted > 0) memcpy(values, &answer, sizeof answer);
        break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        if (values && wanted > 0) memcpy(values, &answer, sizeof answer);
        break;
    default:
        found = kept ? kept->count : 0;
        if (kept && values) memcpy(values, kept->values, (size_t)(wanted < found ? wanted : found) * size_of(type));
    }
    if (count) *count = found;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
    (void)pack;
    stream_put(stream_of(handle->stream), &((Descriptor *)plan)->cost);
    return CUDNN_STATUS_SUCCESS;
}

// ---- Tensors and filters of the older interface

static void read_shape(const Shape *shape, int wanted, cudnnDataType_t *type, int *dimensions, int *sizes, int *strides) {
    size_t bytes = (size_t)(wanted < shape->dimensions ? wanted : shape->dimensions) * sizeof(int);
    *type = shape->type;
    *dimensions = shape->dimensions;
    memcpy(sizes, shape->sizes, bytes);
    if (strides) memcpy(strides, shape->strides, bytes);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int dimensions,
                                         const int sizes[], const int strides[]) {
    tensor->shape = (Shape){.type = type, .dimensions = dimensions};
    memcpy(tensor->shape.sizes, sizes, (size_t)dimensions * sizeof(int));
    memcpy(tensor->shape.strides, strides, (size_t)dimensions * sizeof(int));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int wanted, cudnnDataType_t *type,
                                         int *dimensions, int sizes[], int strides[]) {
    read_shape(&tensor->shape, wanted, type, dimensions, sizes, strides);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int dimensions, const int sizes[]) {
    filter->shape = (Shape){.type = type, .format = format, .dimensions = dimensions};
    memcpy(filter->shape.sizes, sizes, (size_t)dimensions * sizeof(int));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter, int wanted, cudnnDataType_t *type,
                                         cudnnTensorFormat_t *format, int *dimensions, int sizes[]) {
    *format = filter->shape.format;
    read_shape(&filter->shape, wanted, type, dimensions, sizes, NULL);
    return CUDNN_STATUS_SUCCESS;
}

// ---- Norms need no space here, dropout its states

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t z, const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *bytes) {
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t scale, const cudnnActivationDescriptor_t activation,
    size_t *bytes) {
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t x, size_t *bytes) {
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes) {
    *bytes = DROPOUT_STATES;
    return CUDNN_STATUS_SUCCESS;
}
