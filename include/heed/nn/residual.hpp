// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/parameters.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/layer_norm.hpp>
#include <heed/ops/elementwise.hpp>

/// How a layer f is put around its input: a residual connection, with layer normalisation after the sum or before f.
///
/// A policy has `around(x, f, drop)`; `make<T>(width)`; and `make_last<T>(width)`, the normalisation behind the last of
/// several layers.
namespace heed::nn {

/// Nothing: x stays as it is.
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

    static auto parameters(auto& self, auto&& visit) { return nn::pre_norm{visit("norm", self.norm)}; }
};
template <class Norm>
pre_norm(Norm) -> pre_norm<Norm>;

/// Makers, for layers that are made new. Nothing has normalized the output of pre-norm layers, so theirs is at the end.
struct new_post_norm {
    template <class T>
    static auto make(std::size_t width)
    {
        return post_norm{make_layer_norm<T>(width)};
    }
    template <class T>
    static identity make_last(std::size_t)
    {
        return {};
    }
};
/// Makes pre_norm with a layer normalisation, and one more behind the last layer.
struct new_pre_norm {
    template <class T>
    static auto make(std::size_t width)
    {
        return pre_norm{make_layer_norm<T>(width)};
    }
    template <class T>
    static auto make_last(std::size_t width)
    {
        return make_layer_norm<T>(width);
    }
};

}  // namespace heed::nn
