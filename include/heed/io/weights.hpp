// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/parameters.hpp>
#include <heed/io/archive.hpp>

/// Saves the parameters of any policy, layer or model to safetensors files and loads them.
///
/// A tensor's name is its dotted path, "decoder.attention.score.W"; matrices are stored in heed's layout, [in,out].
namespace heed::inline HEED_TARGET::io {

/// A tensor of any shape to store, converted to another type if one is given:
/// `file.tensors.push_back(io::entry_of("x", x))`.
template <class As = void>
tensor_entry entry_of(std::string name, const tensor auto& x)
{
    const auto values = view_of(x);
    return tensor_entry::of<As>(std::move(name), std::vector<std::size_t>(values.shape.begin(), values.shape.end()),
                                std::span(values.data, values.size()));
}

namespace detail {

/// As: the type to store, or void for the parameter's type.
template <class As>
struct putting_look {
    archive& to;
    const std::string& prefix;

    void operator()(const std::string& name, const auto& x) const
    {
        to.tensors.push_back(entry_of<As>(prefix + name, x));
    }
};

inline void require_fits(const tensor_entry& entry, const std::string& name, std::string_view dtype,
                         std::span<const std::size_t> shape, std::size_t size)
{
    if (!reads_as(entry.dtype, dtype) ||
        !std::equal(shape.begin(), shape.end(), entry.shape.begin(), entry.shape.end())) {
        throw error("weights: tensor \"" + name + "\" is " + entry.dtype + " " + shape_text(entry.shape) +
                    " in the file, but the model needs " + std::string(dtype) + " " + shape_text(shape));
    }
    if (entry.size() != size) {
        throw error("weights: tensor \"" + name + "\" is " + shape_text(shape) + " but holds " +
                    counted(entry.size(), "value"));
    }
}

/// A tensor of a file that fits a parameter but is not copied yet. Copying does not allocate.
struct fitting_tensor {
    const tensor_entry* from;
    void* to;
    std::size_t size;
    void (*copy)(const tensor_entry& from, void* to, std::size_t size);

    void operator()() const { copy(*from, to, size); }
};

struct fitting_look {
    const archive& from;
    const std::string& prefix;
    std::vector<fitting_tensor>& all;

    void operator()(const std::string& name, auto& x) const
    {
        using T = element_of<decltype(x)>;
        const auto values = view_of(x);
        const tensor_entry& entry = from.at(prefix + name);
        require_fits(entry, prefix + name, dtype_name<T>, shape_of(x), values.size());
        all.push_back({&entry, values.data, values.size(), [](const tensor_entry& stored, void* to, std::size_t size) {
                           stored.copy_to(std::span(static_cast<T*>(to), size));
                       }});
    }
};

/// Finds a module's tensors in an archive. Throws heed::error if one is missing or does not fit.
std::vector<fitting_tensor> fitting_tensors(const archive& from, parameterized auto& module, const std::string& prefix)
{
    std::vector<fitting_tensor> all;
    for_each_parameter(module, fitting_look{from, prefix, all});
    return all;
}

}  // namespace detail

/// A tensor of a file as an array. Throws heed::error if its rank differs or if T cannot represent its type.
template <class T, std::size_t N>
array<T, N> array_of(const tensor_entry& entry)
{
    if (entry.shape.size() != N)
        throw shape_error("tensor \"" + entry.name + "\" is " + shape_text(entry.shape) + " but was read with " +
                          std::to_string(N) + " axes");
    entry.require_reads_as(dtype_name<T>);  // an unknown type's shape does not give its size in bytes
    shape_of_rank<N> shape;
    std::copy(entry.shape.begin(), entry.shape.end(), shape.begin());
    array<T, N> x(shape);
    entry.copy_to(std::span<T>(x.data(), x.size()));
    return x;
}

/// Adds a module's parameters to an archive, rounded if a type is given: `put<io::bfloat16>(file, model)`.
template <class As = void>
void put(archive& to, const parameterized auto& module, const std::string& prefix = {})
{
    for_each_parameter(module, detail::putting_look<As>{to, prefix});
}

/// Fills a module's parameters from an archive; 16-bit weights become floats. If a tensor is missing, has a different
/// shape or a type that the parameter's type cannot represent (see reads_as), throws heed::error; it may also throw
/// std::bad_alloc. In both cases the module is unchanged.
void take(const archive& from, parameterized auto& module, const std::string& prefix = {})
{
    for (const auto& each : detail::fitting_tensors(from, module, prefix)) each();
}

}  // namespace heed::inline HEED_TARGET::io
