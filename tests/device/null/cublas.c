// Products of matrices: their operations and bytes, put on the handle's stream.
#define _GNU_SOURCE
#include "null.h"
#include "calls.h"
#include <cublasLt.h>
#include <cublas_v2.h>

#define VERSION 130100

struct cublasContext {
    cudaStream_t stream;
    cublasMath_t math;
};

static int width_of(cudaDataType type) {
    switch (type) {
    case CUDA_R_16F: case CUDA_R_16BF: return 2;
    case CUDA_R_64F: case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    case CUDA_R_8I: case CUDA_R_8F_E4M3: case CUDA_R_8F_E5M2: return 1;
    default: return 4;
    }
}

static void put(cudaStream_t stream, double batch, double m, double n, double k, int width, int out_width, int tf32) {
    Work work = {.kind = WORK_PRODUCT, .width = width, .tf32 = tf32};
    work.flops = 2 * batch * m * n * k;
    work.bytes = batch * ((m * k + k * n) * width + m * n * out_width);
    stream_put(stream_of(stream), &work);
}

// ---- Handles

FREES(cublasLtMatrixLayoutDestroy)
FREES(cublasLtMatmulDescDestroy)
KEEPS(cublasSetStream_v2, cublasGetStream_v2, cublasHandle_t, cudaStream_t, stream)
KEEPS(cublasSetMathMode, cublasGetMathMode, cublasHandle_t, cublasMath_t, math)

CALL(cublasGetVersion_v2, AT(int, 1) = VERSION)

size_t cublasLtGetVersion(void) { return VERSION; }

// ---- One product: C (m, n) of A (m, k) and B (k, n), where m, n, k are arguments 3 to 5. A matrix by a vector: y (m)
// of A (m, n).

static void multiply(cublasHandle_t handle, intptr_t batch, intptr_t m, intptr_t n, intptr_t k, int width, int out_width,
                     cublasComputeType_t compute) {
    int tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 || handle->math == CUBLAS_TF32_TENSOR_OP_MATH;
    put(handle->stream, (int)batch, (int)m, (int)n, (int)k, width, out_width, tf32);
}

#define PRODUCT(name, batch, width, out_width, compute) \
    CALL(name, multiply((cublasHandle_t)a0, batch, a3, a4, a5, width, out_width, (cublasComputeType_t)compute))
#define PRODUCTS(letter, width)                                                             \
    PRODUCT(cublas##letter##gemm_v2, 1, width, width, CUBLAS_COMPUTE_32F)                   \
    PRODUCT(cublas##letter##gemmStridedBatched, a17, width, width, CUBLAS_COMPUTE_32F)      \
    PRODUCT(cublas##letter##gemmBatched, a14, width, width, CUBLAS_COMPUTE_32F)             \
    CALL(cublas##letter##gemv_v2, put(((cublasHandle_t)a0)->stream, 1, (int)a2, 1, (int)a3, width, width, 0))

PRODUCTS(S, 4)
PRODUCTS(D, 8)
PRODUCTS(C, 8)
PRODUCTS(Z, 16)
PRODUCT(cublasGemmEx, 1, width_of((cudaDataType)a8), width_of((cudaDataType)a15), a17)
PRODUCT(cublasGemmStridedBatchedEx, a20, width_of((cudaDataType)a8), width_of((cudaDataType)a17), a21)

// ---- cublasLt: layouts and a description, then the product

typedef struct {
    cudaDataType type;
    uint64_t rows, columns;
    int batch;
} Layout;

typedef struct {
    cublasComputeType_t compute;
    int transpose_a;
} Description;

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
    *layout = calloc(1, sizeof **layout);
    *(Layout *)*layout = (Layout){type, rows, columns, 1};
    return CUBLAS_STATUS_SUCCESS;
}

CALL(cublasLtMatrixLayoutSetAttribute,
     if ((int)a1 == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) ((Layout *)a0)->batch = AT(int, 2))

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description, cublasComputeType_t compute,
                                        cudaDataType scale) {
    *description = calloc(1, sizeof **description);
    ((Description *)*description)->compute = compute;
    return CUBLAS_STATUS_SUCCESS;
}

CALL(cublasLtMatmulDescSetAttribute,
     if ((int)a1 == CUBLASLT_MATMUL_DESC_TRANSA) ((Description *)a0)->transpose_a = AT(int, 2))

// There is one algorithm.
CALL(cublasLtMatmulAlgoGetHeuristic,
     AT(int, 9) = (int)a7 > 0;
     if (AT(int, 9)) AT(cublasLtMatmulHeuristicResult_t, 8) = (cublasLtMatmulHeuristicResult_t){.wavesCount = 1})

static void multiply_lt(const Description *description, const Layout *a, const Layout *d, cudaStream_t stream) {
    double k = description->transpose_a == CUBLAS_OP_N ? (double)a->columns : (double)a->rows;
    put(stream, d->batch, (double)d->rows, (double)d->columns, k, width_of(a->type), width_of(d->type),
        description->compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

CALL(cublasLtMatmul, multiply_lt((Description *)a1, (Layout *)a4, (Layout *)a11, (cudaStream_t)a15))
