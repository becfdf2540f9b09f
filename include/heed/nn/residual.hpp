// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/parameters.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/factory.hpp>
#include <heed/nn/layer_norm.hpp>
#include <heed/ops/elementwise.hpp>

/// Residual connections around a layer f, with layer normalization after the sum or before f.
///
/// A policy has `around(x, f, drop)` and `last_norm()`, which makes the normalization of the last layer's output.
namespace heed::inline HEED_TARGET::nn {

/// Returns x, of any shape, unchanged.
struct identity {
    auto operator()(const tensor auto& x) const { return x; }
    static auto parameters(auto&, auto&&) { return identity{}; }
};

/// y = norm(x + drop(f(x)))                        Vaswani et al. 2017, section 3.1
template <class Norm>
struct post_norm {
    Norm norm;

    /// The sublayer f within its residual connection: x [B,S,D] -> [B,S,D].
    auto around(const tensor auto& x, const auto& f, const dropout& drop) const
    {
        return norm(ops::add(x, drop(f(x))));
    }

    identity last_norm() const { return {}; }  // the output of the last layer is already normalized

    static auto parameters(auto& self, auto&& visit) { return nn::post_norm{visit("norm", self.norm)}; }
};
template <class Norm>
post_norm(Norm) -> post_norm<Norm>;

/// y = x + drop(f(norm(x)))                        Xiong et al. 2020: trains without warm-up
template <class Norm>
struct pre_norm {
    Norm norm;

    /// The sublayer f within its residual connection: x [B,S,D] -> [B,S,D].
    auto around(const tensor auto& x, const auto& f, const dropout& drop) const
    {
        return ops::add(x, drop(f(norm(x))));
    }

    /// A new normalization like this one, since the output of the last layer is not normalized.
    Norm last_norm() const { return counted_copy(norm); }

    static auto parameters(auto& self, auto&& visit) { return nn::pre_norm{visit("norm", self.norm)}; }
};
template <class Norm>
pre_norm(Norm) -> pre_norm<Norm>;

/// Makes post_norm with a layer normalization.
struct post_norm_factory {
    template <class T>
    auto operator()(const initializers<T>&, const layer_sizes& n) const
    {
        return post_norm{make_layer_norm<T>(n.width)};
    }
};
/// Makes pre_norm with a layer normalization.
struct pre_norm_factory {
    template <class T>
    auto operator()(const initializers<T>&, const layer_sizes& n) const
    {
        return pre_norm{make_layer_norm<T>(n.width)};
    }
};

}  // namespace heed::inline HEED_TARGET::nn
