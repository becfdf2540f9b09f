// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <heed/core/parameters.hpp>
#include <heed/io/safetensors.hpp>

/// The parameters of any policy, layer or model, in and out of safetensors files.
///
/// A tensor's name is its dotted path, "decoder.attention.score.W"; matrices are stored as heed has them, [in,out].
namespace heed::io {

/// Adds the parameters of a module to an archive.
template <parameterised M>
void put(archive& to, const M& module, const std::string& prefix = {})
{
    for_each_parameter(module, [&](const std::string& name, const auto& x) {
        const auto values = view_of(x);
        const auto& shape = values.shape;
        to.tensors.push_back(tensor_entry::of(prefix + name, std::vector<std::size_t>(shape.begin(), shape.end()),
                                              std::span(values.data, values.size())));
    });
}

/// Fills the parameters of a module from an archive. Throws heed::error, and changes nothing, if one is missing or has
/// another shape or element type, or not as many values as its shape says.
template <parameterised M>
void take(const archive& from, M& module, const std::string& prefix = {})
{
    for_each_parameter(module, [&](const std::string& name, const auto& x) {
        using T = element_of<decltype(x)>;
        const tensor_entry& entry = from.at(prefix + name);
        const auto shape = shape_of(x);
        if (entry.dtype != dtype_name<T> ||
            !std::equal(shape.begin(), shape.end(), entry.shape.begin(), entry.shape.end())) {
            throw error("weights: tensor \"" + prefix + name + "\" is " + entry.dtype + " " + shape_text(entry.shape) +
                        " in the file, but the model needs " + std::string(dtype_name<T>) + " " + shape_text(shape));
        }
        if (entry.size() != view_of(x).size()) {
            throw error("weights: tensor \"" + prefix + name + "\" is " + shape_text(shape) + " but holds " +
                        std::to_string(entry.size()) + " values");
        }
    });
    for_each_parameter(module, [&](const std::string& name, auto& x) {
        from.at(prefix + name).copy_to(std::span(view_of(x).data, view_of(x).size()));
    });
}

}  // namespace heed::io
