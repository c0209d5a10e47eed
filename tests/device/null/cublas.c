// Products of matrices: how many operations, of how many bytes, on which stream.
#define _GNU_SOURCE
#include "null.h"
#include "handles.h"
#include <cublasLt.h>
#include <cublas_v2.h>
#include <string.h>

#define VERSION 130100

struct cublasContext {
    cudaStream_t stream;
    cublasMath_t math;
    cublasPointerMode_t pointer_mode;
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

static int allows_tf32(cublasHandle_t handle, cublasComputeType_t type) {
    return type == CUBLAS_COMPUTE_32F_FAST_TF32 || handle->math == CUBLAS_TF32_TENSOR_OP_MATH;
}

// ---- Handles

FREES(cublasStatus_t, cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t)
FREES(cublasStatus_t, cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t)
KEEPS(cublasStatus_t, cublasSetStream_v2, cublasGetStream_v2, cublasHandle_t, cudaStream_t, stream)
KEEPS(cublasStatus_t, cublasSetMathMode, cublasGetMathMode, cublasHandle_t, cublasMath_t, math)
KEEPS(cublasStatus_t, cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasHandle_t, cublasPointerMode_t, pointer_mode)

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
    (void)handle;
    *version = VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
    *value = type == MAJOR_VERSION ? 13 : type == MINOR_VERSION ? 1 : 0;
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void) { return VERSION; }
const char *cublasGetStatusName(cublasStatus_t status) { return status ? "CUBLAS_STATUS_ERROR" : "CUBLAS_STATUS_SUCCESS"; }
const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }
const char *cublasLtGetStatusName(cublasStatus_t status) { return cublasGetStatusName(status); }
const char *cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

// ---- One product: C (m, n) of A (m, k) and B (k, n). Of matrix and vector: y (m) of A (m, n).

#define PRODUCTS(letter, Number, width)                                                                                \
    cublasStatus_t cublas##letter##gemm_v2(cublasHandle_t handle, cublasOperation_t transpose_a,                       \
                                           cublasOperation_t transpose_b, int m, int n, int k, const Number *alpha,    \
                                           const Number *a, int lda, const Number *b, int ldb, const Number *beta,     \
                                           Number *c, int ldc) {                                                       \
        put(handle->stream, 1, m, n, k, width, width, allows_tf32(handle, CUBLAS_COMPUTE_32F));                        \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##gemmStridedBatched(                                                                 \
        cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m, int n, int k,      \
        const Number *alpha, const Number *a, int lda, long long stride_a, const Number *b, int ldb,                   \
        long long stride_b, const Number *beta, Number *c, int ldc, long long stride_c, int batch) {                   \
        put(handle->stream, batch, m, n, k, width, width, allows_tf32(handle, CUBLAS_COMPUTE_32F));                    \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##gemmBatched(                                                                        \
        cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m, int n, int k,      \
        const Number *alpha, const Number *const a[], int lda, const Number *const b[], int ldb, const Number *beta,   \
        Number *const c[], int ldc, int batch) {                                                                       \
        put(handle->stream, batch, m, n, k, width, width, allows_tf32(handle, CUBLAS_COMPUTE_32F));                    \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##gemv_v2(cublasHandle_t handle, cublasOperation_t transpose, int m, int n,           \
                                           const Number *alpha, const Number *a, int lda, const Number *x, int incx,   \
                                           const Number *beta, Number *y, int incy) {                                  \
        put(handle->stream, 1, m, 1, n, width, width, 0);                                                              \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }

PRODUCTS(S, float, 4)
PRODUCTS(D, double, 8)
PRODUCTS(C, cuComplex, 8)
PRODUCTS(Z, cuDoubleComplex, 16)

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType type_a, int lda, const void *b,
                            cudaDataType type_b, int ldb, const void *beta, void *c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    put(handle->stream, 1, m, n, k, width_of(type_a), width_of(type_c), allows_tf32(handle, compute));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                                          cublasOperation_t transpose_b, int m, int n, int k, const void *alpha,
                                          const void *a, cudaDataType type_a, int lda, long long stride_a,
                                          const void *b, cudaDataType type_b, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType type_c, int ldc, long long stride_c,
                                          int batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    put(handle->stream, batch, m, n, k, width_of(type_a), width_of(type_c), allows_tf32(handle, compute));
    return CUBLAS_STATUS_SUCCESS;
}

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

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t bytes) {
    if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) memcpy(&((Layout *)layout)->batch, value, sizeof(int));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description, cublasComputeType_t compute,
                                        cudaDataType scale) {
    *description = calloc(1, sizeof **description);
    ((Description *)*description)->compute = compute;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes) {
    if (name == CUBLASLT_MATMUL_DESC_TRANSA) memcpy(&((Description *)description)->transpose_a, value, sizeof(int));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int *count) {
    *count = most > 0;
    if (*count) {
        memset(results, 0, sizeof *results);
        results->state = CUBLAS_STATUS_SUCCESS;
        results->wavesCount = 1;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t layout_a, const void *b,
                              cublasLtMatrixLayout_t layout_b, const void *beta, const void *c,
                              cublasLtMatrixLayout_t layout_c, void *d, cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream) {
    const Layout *left = (Layout *)layout_a, *out = (Layout *)layout_d;
    const Description *what = (Description *)description;
    double k = what->transpose_a == CUBLAS_OP_N ? (double)left->columns : (double)left->rows;
    put(stream, out->batch, (double)out->rows, (double)out->columns, k, width_of(left->type), width_of(out->type),
        what->compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    return CUBLAS_STATUS_SUCCESS;
}
