// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include <heed/core/tensor.hpp>

namespace bench::libtorch {

using at::Tensor;

/// Copies a tensor of heed.
template <class X>
Tensor tensor_of(const X& x)
{
    const auto view = heed::view_of(x);
    std::vector<int64_t> shape(view.shape.begin(), view.shape.end());
    auto result = at::empty(shape, at::kFloat);
    std::memcpy(result.data_ptr<float>(), view.data, view.size() * sizeof(float));
    return result;
}

}  // namespace bench::libtorch
