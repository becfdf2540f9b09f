// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/gemm/blas.hpp>  // also declares cblas_sgemm, for every HEED_BLAS

#include "harness.hpp"
#include "sizes.hpp"

extern "C" void openblas_set_num_threads(int count);

/// The floor: only the matrix products of a workload, through cblas_sgemm. No activation, no softmax, no sum.
///
/// With two threads the table uses the faster of two methods: heed's threads share the rows or the columns of each
/// product (with OpenBLAS on one thread each), or OpenBLAS uses its threads (`#openblas-threads`).
namespace bench::floor {

enum class sharing { ours, openblas };

class gemm {
public:
    gemm(int threads, sharing way) : threads_{threads}, way_{way} {}

    /// C = op(A) op(B): op(A) [M,K], op(B) [K,N], C [M,N], rows contiguous.
    void operator()(bool transpose_a, bool transpose_b, long M, long N, long K, const float* A, const float* B,
                    float* C) const
    {
        if (threads_ == 1 || way_ == sharing::openblas || 2 * M * N * K < 2'000'000) {
            part(transpose_a, transpose_b, M, N, K, A, B, C, 0, M, 0, N);
        } else if (M >= N) {
            heed::parallel_for(
                static_cast<std::size_t>(M), 1,
                [&](std::size_t first, std::size_t last, std::size_t) {
                    part(transpose_a, transpose_b, M, N, K, A, B, C, static_cast<long>(first), static_cast<long>(last),
                         0, N);
                },
                16);
        } else {
            heed::parallel_for(
                static_cast<std::size_t>(N), 1,
                [&](std::size_t first, std::size_t last, std::size_t) {
                    part(transpose_a, transpose_b, M, N, K, A, B, C, 0, M, static_cast<long>(first),
                         static_cast<long>(last));
                },
                64);
        }
    }

    /// Called around a run of products: selects the library whose threads run.
    void begin() const { openblas_set_num_threads(way_ == sharing::openblas ? threads_ : 1); }
    void end() const { openblas_set_num_threads(1); }

private:
    static void part(bool transpose_a, bool transpose_b, long M, long N, long K, const float* A, const float* B,
                     float* C, long row, long row_end, long column, long column_end)
    {
        const auto integer = [](long n) { return static_cast<int>(n); };
        const long lda = transpose_a ? M : K;
        const long ldb = transpose_b ? K : N;
        const float* a = A + (transpose_a ? row : row * lda);
        const float* b = B + (transpose_b ? column * ldb : column);
        float* c = C + row * N + column;
        if (M == 1) {  // cblas_sgemm with one row is up to three times slower
            cblas_sgemv(CblasRowMajor, transpose_b ? CblasNoTrans : CblasTrans,
                        integer(transpose_b ? column_end - column : K), integer(transpose_b ? K : column_end - column),
                        1.0F, b, integer(ldb), a, 1, 0.0F, c, 1);
            return;
        }
        cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans,
                    integer(row_end - row), integer(column_end - column), integer(K), 1.0F, a, integer(lda), b,
                    integer(ldb), 0.0F, c, integer(N));
    }

    int threads_;
    sharing way_;
};

inline std::vector<float> numbers(long count, unsigned seed)
{
    std::vector<float> result(static_cast<std::size_t>(count));
    fill(result.data(), result.size(), seed, 0.1F);
    return result;
}

/// A weight [in,out] that multiplies `rows` rows in each of `steps` steps. The gradient of the result overwrites the
/// result. `input` [steps,rows,in], `result` [steps,rows,out].
class product {
public:
    product(long rows, long in, long out, long steps = 1)
        : rows_{rows},
          in_{in},
          out_{out},
          steps_{steps},
          weight_{numbers(in * out, 1)},
          input_{numbers(steps * rows * in, 2)},
          result_{numbers(steps * rows * out, 3)},
          input_gradient_{numbers(steps * rows * in, 4)},
          weight_gradient_{numbers(in * out, 5)}
    {}

    void forward(const gemm& multiply, long step = 0)
    {
        multiply(false, false, rows_, out_, in_, &input_[at(step * rows_ * in_)], weight_.data(),
                 &result_[at(step * rows_ * out_)]);
    }
    void backward(const gemm& multiply, long step = 0)
    {
        multiply(false, true, rows_, in_, out_, &result_[at(step * rows_ * out_)], weight_.data(),
                 &input_gradient_[at(step * rows_ * in_)]);
    }
    void weight_gradient(const gemm& multiply)
    {
        multiply(true, false, in_, out_, steps_ * rows_, input_.data(), result_.data(), weight_gradient_.data());
    }
    [[nodiscard]] long steps() const { return steps_; }

private:
    static std::size_t at(long i) { return static_cast<std::size_t>(i); }

    long rows_, in_, out_, steps_;
    std::vector<float> weight_, input_, result_, input_gradient_, weight_gradient_;
};

/// RNNsearch's training step. B 64, S = T = 15, E = H = A = 256, maxout 2 * 256, V 8000. Each row of this list is three
/// products: the one shown, the gradient of its input (same rows, times the transposed weight) and the gradient of its
/// weight (one product over all rows of all steps):
///
///     encoder, each of 2 directions   x W            [960,256]x[256,768]          once
///                                     h U_rz         [ 64,256]x[256,512]          15 times
///                                     (r h) U        [ 64,256]x[256,256]          15 times
///     keys                            h U_a          [960,512]x[512,256]          once
///     start                           h W_s          [ 64,256]x[256,256]          once
///     decoder                         E y W          [960,256]x[256,768]          once
///                                     s W_a          [ 64,256]x[256,256]          15 times
///                                     c C            [ 64,512]x[512,768]          15 times
///                                     s U_rz         [ 64,256]x[256,512]          15 times
///                                     (r s) U        [ 64,256]x[256,256]          15 times
///     output                          s U_o          [960,256]x[256,512]          once
///                                     E y V_o        [960,256]x[256,512]          once
///                                     c C_o          [960,512]x[512,512]          once
///                                     t W_o          [960,256]x[256,8000]         once
class training {
public:
    explicit training(const training_size& z)
        : z_{z},
          keys_{z.source_words(), z.annotation(), z.alignment},
          start_{z.batch, z.hidden, z.hidden},
          words_{z.target_words(), z.embedding, 3 * z.hidden},
          query_{z.batch, z.hidden, z.alignment, z.target_length},
          context_{z.batch, z.annotation(), 3 * z.hidden, z.target_length},
          gates_{z.batch, z.hidden, 2 * z.hidden, z.target_length},
          candidate_{z.batch, z.hidden, z.hidden, z.target_length},
          output_state_{z.target_words(), z.hidden, 2 * z.maxout},
          output_word_{z.target_words(), z.embedding, 2 * z.maxout},
          output_context_{z.target_words(), z.annotation(), 2 * z.maxout},
          logits_{z.target_words(), z.maxout, z.vocabulary}
    {}

    void run(const gemm& multiply)
    {
        multiply.begin();
        forward(multiply);
        backward(multiply);
        multiply.end();
        benchmark::ClobberMemory();
    }

private:
    struct direction {
        explicit direction(const training_size& z)
            : input{z.source_words(), z.embedding, 3 * z.hidden},
              gates{z.batch, z.hidden, 2 * z.hidden, z.source_length},
              candidate{z.batch, z.hidden, z.hidden, z.source_length}
        {}
        product input, gates, candidate;
    };

    void forward(const gemm& multiply)
    {
        for (direction* d : {&left_, &right_}) {
            d->input.forward(multiply);
            for (long t = 0; t < z_.source_length; ++t) {
                d->gates.forward(multiply, t);
                d->candidate.forward(multiply, t);
            }
        }
        keys_.forward(multiply);
        start_.forward(multiply);
        words_.forward(multiply);
        for (long t = 0; t < z_.target_length; ++t) {
            for (product* p : {&query_, &context_, &gates_, &candidate_}) p->forward(multiply, t);
        }
        for (product* p : {&output_state_, &output_word_, &output_context_, &logits_}) p->forward(multiply);
    }

    void backward(const gemm& multiply)
    {
        for (product* p : {&logits_, &output_context_, &output_word_, &output_state_}) {
            p->backward(multiply);
            p->weight_gradient(multiply);
        }
        for (long t = z_.target_length - 1; t >= 0; --t) {
            for (product* p : {&candidate_, &gates_, &context_, &query_}) p->backward(multiply, t);
        }
        for (product* p : {&candidate_, &gates_, &context_, &query_}) p->weight_gradient(multiply);
        for (product* p : {&words_, &start_, &keys_}) {
            p->backward(multiply);
            p->weight_gradient(multiply);
        }
        for (direction* d : {&left_, &right_}) {
            for (long t = z_.source_length - 1; t >= 0; --t) {
                d->candidate.backward(multiply, t);
                d->gates.backward(multiply, t);
            }
            d->candidate.weight_gradient(multiply);
            d->gates.weight_gradient(multiply);
            d->input.backward(multiply);
            d->input.weight_gradient(multiply);
        }
    }

    training_size z_;
    direction left_{z_}, right_{z_};
    product keys_, start_, words_, query_, context_, gates_, candidate_, output_state_, output_word_, output_context_,
        logits_;
};

/// The per-dimension attention step: s W [B,Q]x[Q,A] and tanh(..) V [B·T,A]x[A,D]. Backward adds the gradients of both
/// factors of each product, which every method must compute.
class per_dimension {
public:
    explicit per_dimension(const attention_size& z)
        : query_{z.batch, z.query, z.alignment}, score_{z.rows(), z.alignment, z.value}
    {}

    void run(const gemm& multiply, bool with_backward)
    {
        multiply.begin();
        query_.forward(multiply);
        score_.forward(multiply);
        if (with_backward) {
            for (product* p : {&score_, &query_}) {
                p->backward(multiply);
                p->weight_gradient(multiply);
            }
        }
        multiply.end();
        benchmark::ClobberMemory();
    }

private:
    product query_, score_;
};

/// Registers a floor under its name, and under a second name if OpenBLAS's threads are an alternative.
template <class Make>
void add(const std::string& name, const options& chosen, Make make)
{
    bench::add(name, [=] { return make(gemm{chosen.threads, sharing::ours}); });
    if (chosen.threads > 1) {
        bench::add(name + "#openblas-threads", [=] { return make(gemm{chosen.threads, sharing::openblas}); });
    }
}

inline void register_training(const options& chosen)
{
    add(std::string{training_products}, chosen, [](const gemm& multiply) -> work {
        const auto products = std::make_shared<training>(training_size{});
        return {[products, multiply] { products->run(multiply); }};
    });
}

inline void register_per_dimension(const options& chosen)
{
    for (const auto& size : attention_sizes()) {
        for (const bool with_backward : {false, true}) {
            add(name_of("per_dimension", with_backward ? "products_backward" : "products", size), chosen,
                [=](const gemm& multiply) -> work {
                    const auto products = std::make_shared<per_dimension>(size);
                    return {[=] { products->run(multiply, with_backward); }};
                });
        }
    }
}

}  // namespace bench::floor
