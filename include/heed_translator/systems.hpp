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

/// The systems of `translate train --system`. To add one, add a row in src/translator/systems.cpp and a file next to
/// it, which compiles the models of the system.
namespace heed::translator {

/// A system: its name, the options that it supports, and the functions that construct and check it.
struct system_kind {
    std::string name, description;
    std::vector<option_support> option_support_list;
    std::unique_ptr<system> (*make)(const options& how, std::size_t source_words, std::size_t target_words);
    /// Should contain each option that is a size.
    std::vector<expected_tensor> (*expected_tensors)(const options& how, std::size_t source_words,
                                                     std::size_t target_words);
};

/// All systems, in the order of --help.
const std::vector<system_kind>& systems();

/// The system of this name. Throws heed::error if it does not exist.
const system_kind& kind_of(const std::string& name);

/// The system named by these options. Throws heed::error if it does not support a value.
const system_kind& kind_of(const options& how);

/// A new system with these options.
std::unique_ptr<system> make_system(const options& how, std::size_t source_words, std::size_t target_words);

}  // namespace heed::translator
