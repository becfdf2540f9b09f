// SPDX-License-Identifier: BSD-3-Clause

#include "numbers.hpp"

#include <cstdio>

namespace twins {

namespace {

void append(std::string& to, const numbers& x)
{
    to += "\"" + x.name + "\": {\"shape\": [";
    for (std::size_t i = 0; i < x.shape.size(); ++i) to += (i == 0 ? "" : ", ") + std::to_string(x.shape[i]);
    to += "], \"values\": [";
    for (std::size_t i = 0; i < x.values.size(); ++i) {
        char text[40];
        std::snprintf(text, sizeof text, "%s%.17g", i == 0 ? "" : ", ", x.values[i]);
        to += text;
    }
    to += "]}";
}

std::string object(const std::deque<numbers>& all)
{
    std::string made = "{";
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) made += ",\n";
        append(made, all[i]);
    }
    return made + "}";
}

}  // namespace

std::string group(const std::string& name, const std::deque<numbers>& all)
{
    return "\"" + name + "\": " + object(all);
}

std::string groups(const std::string& name, const std::vector<std::deque<numbers>>& all)
{
    std::string made = "\"" + name + "\": [";
    for (std::size_t i = 0; i < all.size(); ++i) made += (i == 0 ? "" : ",\n") + object(all[i]);
    return made + "]";
}

std::deque<numbers> joined(const std::deque<numbers>& all)
{
    std::deque<numbers> made;
    std::vector<std::size_t> counts;
    for (const numbers& x : all) {
        std::size_t k = 0;
        while (k < made.size() && made[k].name != x.name) ++k;
        if (k == made.size()) {
            made.push_back({x.name, x.shape, {}});
            counts.push_back(0);
        }
        made[k].values.insert(made[k].values.end(), x.values.begin(), x.values.end());
        ++counts[k];
    }
    for (std::size_t k = 0; k < made.size(); ++k) {
        if (counts[k] > 1) made[k].shape.insert(made[k].shape.begin(), counts[k]);
    }
    return made;
}

}  // namespace twins
