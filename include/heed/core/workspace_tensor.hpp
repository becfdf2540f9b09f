// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/core/diagnostics.hpp>
#include <heed/core/tensor.hpp>
#include <heed/core/workspace.hpp>

/// Tensors in this thread's workspace, for the temporaries of one step, so that nothing is allocated.
namespace heed::inline HEED_TARGET {

/// A tensor in the thread's workspace: a handle of pointer and shape, invalid after the innermost `scratch` scope
/// around the operation that made it.
template <class T, std::size_t N>
class workspace_tensor : public detail::not_of_xtensor::words {
public:
    workspace_tensor() = default;
    workspace_tensor(const T* data, const shape_of_rank<N>& shape) : view_{data, shape} {}
    explicit workspace_tensor(const tensor_view<const T, N>& view) : view_(view) {}

    const tensor_view<const T, N>& view() const { return view_; }  // while it is valid
    const T* data() const { return view_.data; }
    const shape_of_rank<N>& shape() const { return view_.shape; }
    std::size_t size() const { return view_.size(); }

private:
    tensor_view<const T, N> view_;
};

/// Values in this thread's workspace: operations compute there; nothing is recorded and nothing is allocated.
struct workspace_family {
    static constexpr family_rank rank = family_rank::workspace_tensor;

    template <class T, std::size_t N>
    using tensor_type = workspace_tensor<T, N>;

    /// Memory for a result.
    template <class T>
    static T* take(std::size_t count)
    {
        return detail::workspace_of_this_thread().template array_of<T>(count);
    }

    /// A copy in the workspace.
    template <class Beside, plain_tensor X>
    static auto constant(const Beside&, const X& x)
    {
        const auto from = view_of(x);
        using T = element_of<X>;
        T* const to = take<T>(from.size());
        std::copy_n(from.data, from.size(), to);
        return workspace_tensor<T, rank_of<X>>(to, from.shape);
    }
};

template <class T, std::size_t N>
struct tensor_traits<workspace_tensor<T, N>> {
    using element = T;
    using family = workspace_family;
    static constexpr std::size_t rank = N;
};

}  // namespace heed::inline HEED_TARGET
