// cuDNN's recurrent layers: the place of each weight in their one buffer, the space and the cost of the passes.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <cudnn.h>
#include <string.h>

#define MOST_WORKSPACE (1ul << 20)  // beside the part that grows with the batch

struct cudnnRNNStruct {
    cudnnRNNMode_t cell;
    cudnnRNNBiasMode_t bias;
    cudnnDataType_t type;
    size_t directions, input, hidden, projection, layers;
};

struct cudnnRNNDataStruct {
    size_t steps, batch, features;
};

size_t width_of(cudnnDataType_t type);  // cudnn.c

static size_t gates(cudnnRNNDescriptor_t rnn) {
    return rnn->cell == CUDNN_LSTM ? 4 : rnn->cell == CUDNN_GRU ? 3 : 1;
}

static size_t biases(cudnnRNNDescriptor_t rnn) { return rnn->bias == CUDNN_RNN_NO_BIAS ? 0 : 2; }

static int is_projected(cudnnRNNDescriptor_t rnn) { return rnn->projection != rnn->hidden; }

// A pseudo-layer is one direction of one layer.
static size_t inputs(cudnnRNNDescriptor_t rnn, size_t pseudo_layer) {
    return pseudo_layer < rnn->directions ? rnn->input : rnn->projection * rnn->directions;
}

static size_t weights_before(cudnnRNNDescriptor_t rnn, size_t pseudo_layer) {
    size_t elements = 0;
    for (size_t one = 0; one < pseudo_layer; one++) {
        elements += gates(rnn) * rnn->hidden * (inputs(rnn, one) + rnn->projection);
        if (is_projected(rnn)) elements += rnn->projection * rnn->hidden;
    }
    return elements;
}

static size_t all_weights(cudnnRNNDescriptor_t rnn) { return weights_before(rnn, rnn->layers * rnn->directions); }

CALL(cudnnSetRNNDescriptor_v8,
     AT(struct cudnnRNNStruct, 0) = (struct cudnnRNNStruct){
         .cell = (cudnnRNNMode_t)a2, .bias = (cudnnRNNBiasMode_t)a3, .directions = (int)a4 == CUDNN_BIDIRECTIONAL ? 2 : 1,
         .type = (cudnnDataType_t)a6, .input = (size_t)(int)a9, .hidden = (size_t)(int)a10,
         .projection = (size_t)(int)a11, .layers = (size_t)(int)a12})

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, size_t *bytes) {
    size_t bias = rnn->layers * rnn->directions * biases(rnn) * gates(rnn) * rnn->hidden;
    *bytes = (all_weights(rnn) + bias) * width_of(rnn->type);
    return CUDNN_STATUS_SUCCESS;
}

static void describe(cudnnTensorDescriptor_t tensor, cudnnRNNDescriptor_t rnn, size_t rows, size_t columns) {
    int sizes[] = {1, (int)rows, (int)columns}, strides[] = {(int)(rows * columns), (int)columns, 1};
    cudnnSetTensorNdDescriptor(tensor, rnn->type, 3, sizes, strides);
}

// The matrices of all pseudo-layers lie first, then all biases. A pseudo-layer has `gates` matrices (hidden, inputs)
// for its input, as many (hidden, projection) for its state, and one (projection, hidden) for its projection.
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t pseudo_layer,
                                      size_t bytes, const void *space, int32_t matrix, cudnnTensorDescriptor_t weight,
                                      void **weight_at, cudnnTensorDescriptor_t bias, void **bias_at) {
    size_t g = gates(rnn), hidden = rnn->hidden, projection = rnn->projection, one = (size_t)pseudo_layer;
    size_t input = inputs(rnn, one), number = (size_t)matrix, width = width_of(rnn->type);
    size_t offset = weights_before(rnn, one);
    if (weight_at) *weight_at = NULL;
    if (bias_at) *bias_at = NULL;
    if (number >= 2 * g) {
        if (!is_projected(rnn)) return CUDNN_STATUS_SUCCESS;
        offset += g * hidden * (input + projection);
        if (weight) describe(weight, rnn, projection, hidden);
    } else {
        offset += number < g ? number * hidden * input : g * hidden * input + (number - g) * hidden * projection;
        if (weight) describe(weight, rnn, hidden, number < g ? input : projection);
        if (biases(rnn)) {
            size_t place = all_weights(rnn) + (one * 2 * g + number) * hidden;
            if (bias) describe(bias, rnn, hidden, 1);
            if (bias_at) *bias_at = (char *)space + place * width;
        }
    }
    if (weight_at) *weight_at = (char *)space + offset * width;
    return CUDNN_STATUS_SUCCESS;
}

CALL(cudnnSetRNNDataDescriptor,
     AT(struct cudnnRNNDataStruct, 0) = (struct cudnnRNNDataStruct){(size_t)(int)a3, (size_t)(int)a4, (size_t)(int)a5})

// Estimates: each gate and the result of each step are kept for the backward pass.
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t data, size_t *work, size_t *reserve) {
    size_t states = data->steps * data->batch * rnn->hidden * rnn->directions * width_of(rnn->type);
    *work = states * (gates(rnn) + 1) + MOST_WORKSPACE;
    if (reserve) *reserve = mode == CUDNN_FWD_MODE_TRAINING ? states * rnn->layers * (gates(rnn) + 2) : 0;
    return CUDNN_STATUS_SUCCESS;
}

static void put(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t data) {
    double tokens = (double)(data->steps * data->batch), weights = (double)all_weights(rnn);
    Work work = {.kind = WORK_PRODUCT, .width = (int)width_of(rnn->type)};
    work.flops = 2 * tokens * weights;
    work.bytes = work.width * (weights + tokens * (double)(data->features + rnn->projection * rnn->directions));
    stream_put(stream_of(handle->stream), &work);
}

#define PASS(name, input) CALL(name, put((cudnnHandle_t)a0, (cudnnRNNDescriptor_t)a1, (cudnnRNNDataDescriptor_t)input))

PASS(cudnnRNNForward, a4)
PASS(cudnnRNNBackwardData_v8, a6)
PASS(cudnnRNNBackwardWeights_v8, a4)
