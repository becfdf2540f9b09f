// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>

#include <heed/core/errors.hpp>

#include <heed_translator/options.hpp>
#include <heed_translator/system.hpp>

namespace heed::translator {

/// A new model. `Maker` is an alias in <family>_models.hpp; its model is compiled in a separate file (see
/// src/CMakeLists.txt).
template <class Maker>
std::unique_ptr<system> make(const options& how, std::size_t source_words, std::size_t target_words);

namespace detail {

using make_function = std::unique_ptr<system> (*)(const options&, std::size_t, std::size_t);

/// The row for an attention in the table of a family. Throws heed::error if it does not exist.
template <class Choice, std::size_t N>
const Choice& choice_of(const Choice (&all)[N], const std::string& attention)
{
    const auto found =
        std::find_if(std::begin(all), std::end(all), [&](const Choice& each) { return each.attention == attention; });
    if (found == std::end(all)) throw heed::error("no model has --attention " + attention);
    return *found;
}

}  // namespace detail

}  // namespace heed::translator
