// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/workspace.hpp>
#include <heed/gemm/int8_panels.hpp>
#include <heed/gemm/panels.hpp>
#include <heed/gemm/weights.hpp>

/// Weights packed in the number format that a search has chosen: the model's, or 8 bits.
namespace heed::inline HEED_TARGET::kernels {

/// The number format of products with weights.
enum class weight_numbers {
    full,  ///< the model's
    int8,  ///< 8 bits, see int8_panels.hpp; requires a model of floats
};

/// A matrix in panels of T, or of 8 bits.
template <class T>
class weight_panels {
public:
    /// W has row stride `stride`.
    void pack(std::size_t K, std::size_t N, const T* W, std::size_t stride, weight_numbers as = weight_numbers::full)
    {
        int8_ = {};
        full_ = {};
        if constexpr (std::is_same_v<T, float>) {
            if (as == weight_numbers::int8) return int8_.pack(K, N, W, stride);
        } else if (as == weight_numbers::int8) {
            throw error("int8: 8-bit weights require a model of float");
        }
        full_.pack(K, N, W, stride);
    }

    /// f(panels) with the panels in use.
    template <class F>
    void with(F&& f) const
    {
        if constexpr (std::is_same_v<T, float>) {
            if (!int8_.empty()) return f(int8_);
        }
        f(full_);
    }

    bool is_int8() const { return !int8_.empty(); }
    std::size_t count() const { return is_int8() ? int8_.count() : full_.count(); }
    std::size_t rows() const { return is_int8() ? int8_.rows() : full_.rows(); }
    std::size_t columns() const { return is_int8() ? int8_.columns() : full_.columns(); }
    std::size_t columns_of_panels() const { return is_int8() ? int8_.columns_of_panels() : full_.columns_of_panels(); }

    /// y = x W, or y += x W: x [rows,K] with row stride `x_stride`, y [rows,N] with `y_stride`.
    void multiply(std::size_t rows, const T* x, std::size_t x_stride, T* y, std::size_t y_stride, bool add) const
    {
        with([&](const auto& W) { W.multiply(rows, x, x_stride, y, y_stride, add); });
    }

private:
    panels<T> full_;
    int8_panels int8_;
};

/// The matrices of a model in 8 bits, identified by the address of their floats, and packed when a product first needs
/// them. The model must not be moved or changed.
class int8_weights : public quantized_weights {
public:
    /// W [K,N], contiguous.
    void add(const float* W, std::size_t K, std::size_t N) { matrices_.push_back({W, K, N}); }

    /// W [K,N], or the rows of a matrix [·,N] that start at W; null if W is not in the model.
    const int8_panels* find(const float* W, std::size_t K, std::size_t N) const
    {
        {
            const std::shared_lock reading(mutex_);
            const auto found = panels_.find(W);
            if (found != panels_.end() && found->second->rows() == K && found->second->columns() == N)
                return found->second.get();
        }
        const auto whole = std::find_if(matrices_.begin(), matrices_.end(), [&](const matrix& each) {
            return each.N == N && W >= each.W && W + K * N <= each.W + each.K * N;
        });
        if (whole == matrices_.end() || K > int8_panels::longest) return nullptr;
        const std::unique_lock writing(mutex_);
        std::unique_ptr<int8_panels>& made = panels_[W];
        if (made && (made->rows() != K || made->columns() != N))
            return nullptr;  // other rows that start here are in use
        if (!made) {
            std::vector<float> scales(N);
            int8_panels::column_scales(whole->K, N, whole->W, N, scales.data());
            made = std::make_unique<int8_panels>();
            made->pack(K, N, W, N, scales.data());
        }
        return made.get();
    }

    /// The number of matrices packed so far.
    std::size_t laid_out() const
    {
        const std::shared_lock reading(mutex_);
        return panels_.size();
    }

    bool multiply(std::size_t rows, std::size_t N, std::size_t K, const float* x, const float* W, bool add,
                  float* y) const override
    {
        const int8_panels* const found = find(W, K, N);
        if (found != nullptr) found->multiply(rows, x, K, y, N, add);
        return found != nullptr;
    }

private:
    struct matrix {
        const float* W;
        std::size_t K, N;
    };

    std::vector<matrix> matrices_;
    mutable std::shared_mutex mutex_;
    mutable std::unordered_map<const float*, std::unique_ptr<int8_panels>> panels_;
};

}  // namespace heed::inline HEED_TARGET::kernels
