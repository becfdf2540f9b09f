// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <heed_translator/expected_tensor.hpp>
#include <heed_translator/option_support.hpp>
#include <heed_translator/options.hpp>
#include <heed_translator/system.hpp>

/// The systems of `translate train --system`. Another one is a row in src/translator/systems.cpp and a file beside it,
/// which alone compiles its models.
namespace heed::translator {

/// A system: its name, the options that it has a use for, and the functions that make and check it.
struct system_kind {
    std::string name, description;
    std::vector<option_support> option_support_list;
    std::unique_ptr<system> (*make)(const options& how, std::size_t source_words, std::size_t target_words);
    /// Each option that is a size should occur.
    std::vector<expected_tensor> (*expected_tensors)(const options& how, std::size_t source_words,
                                                     std::size_t target_words);
};

/// All systems, in the order of --help.
const std::vector<system_kind>& systems();

/// The system of this name. Throws heed::error if there is none.
const system_kind& kind_of(const std::string& name);

/// The system that these options name. Throws heed::error if it does not take one of their values.
const system_kind& kind_of(const options& how);

/// A new system, as the options say.
std::unique_ptr<system> make_system(const options& how, std::size_t source_words, std::size_t target_words);

}  // namespace heed::translator
