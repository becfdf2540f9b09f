// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace twins {

/// Named numbers, in the format of the other program.
struct numbers {
    std::string name;
    std::vector<std::size_t> shape;
    std::vector<double> values;
};

/// Numbers of one name become one tensor, [steps, ...].
std::deque<numbers> joined(const std::deque<numbers>& all);

/// "name": {…} in JSON, with all numbers.
std::string group(const std::string& name, const std::deque<numbers>& all);

/// [{first list}, {second list}, …] under a name.
std::string groups(const std::string& name, const std::vector<std::deque<numbers>>& all);

}  // namespace twins
