// SPDX-License-Identifier: BSD-3-Clause
#include <heed_translator/option_support.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace heed::translator;

namespace {

struct some_system {
    std::string name;
    std::vector<option_support> option_support_list;
};

const std::vector<some_system> all{
    {"one", {{"attention", {"none", "dot"}, {}}, {"cell", {}, {}}}},
    {"two", {{"attention", {"dot", "general"}, {}}, {"cell", {}, {}}, {"layers", {}, "2"}}},
    {"three", {{"layers", {}, "4"}, {"heads", {}, {}}}},
};

struct some_options {
    std::map<std::string, std::string> values;

    void each_text(auto&& member) const
    {
        for (const auto& [name, value] : values) member(name, value);
    }
};

}  // namespace

TEST_CASE("an option that a system does not support is rejected, and systems that support it are named")
{
    CHECK(!misplaced("cell", all[0], all));
    CHECK(!misplaced("heads", all[2], all));
    CHECK(misplaced("heads", all[0], all) ==
          "--heads: --system one does not support it; omit it, or use --system three");
    CHECK(misplaced("cell", all[2], all) ==
          "--cell: --system three does not support it; omit it, or use --system one or two");
}

TEST_CASE("a value that a system does not support is rejected")
{
    const some_options general{{{"attention", "general"}, {"hidden", "8"}}};
    CHECK(unsuitable(general, all[0]) == "--attention general: --system one supports none or dot");
    CHECK(!unsuitable(general, all[1]));
    CHECK(!unsuitable(general, all[2]));
    CHECK(!unsuitable(some_options{{{"cell", "anything"}}}, all[0]));
}

TEST_CASE("the options that all systems support")
{
    CHECK(choices_of("attention", all) == std::vector<std::string>{"none", "dot", "general"});
    CHECK(options_of_systems(all) == std::vector<std::string>{"attention", "cell", "layers", "heads"});
    CHECK(joined({"a", "b", "c"}) == "a, b or c");
    CHECK(joined({"a"}) == "a");
}
