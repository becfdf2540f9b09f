// SPDX-License-Identifier: BSD-3-Clause
//
// Models as scripts for a page: their numbers are stored in 16 bits and base64.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../../examples/browser/pack.hpp"

using namespace browser;

TEST_CASE("16-bit numbers match IEEE 754's examples and survive a round trip")
{
    CHECK(half_of(0.0f) == 0);
    CHECK(half_of(-0.0f) == 0x8000);
    CHECK(half_of(1.0f) == 0x3c00);
    CHECK(half_of(-2.0f) == 0xc000);
    CHECK(half_of(65504.0f) == 0x7bff);
    CHECK(half_of(65519.0f) == 0x7bff);
    CHECK(half_of(65520.0f) == 0x7c00);
    CHECK(half_of(0.333251953125f) == 0x3555);
    CHECK(half_of(0x1p-14f) == 0x0400);
    CHECK(half_of(0x1p-24f) == 0x0001);
    CHECK(half_of(0x1p-25f) == 0x0000);  // to even
    CHECK(half_of(0x1.8p-24f) == 0x0002);
    CHECK(half_of(1 + 0x1p-11f) == 0x3c00);
    CHECK(half_of(1 + 0x1.8p-10f) == 0x3c02);
    CHECK(float_of(0x7c00) == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(float_of(half_of(std::numeric_limits<float>::quiet_NaN()))));
    int wrong = 0;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        if ((half & 0x7fff) <= 0x7c00 && half_of(float_of(half)) != half) ++wrong;
        if ((half & 0x7fff) < 0x7bff &&
            !(std::fabs(float_of(half)) < std::fabs(float_of(static_cast<std::uint16_t>(half + 1)))))
            ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("base64 matches RFC 4648's examples")
{
    const auto of = [](const std::string& text) { return base64({text.begin(), text.end()}); };
    CHECK(of("").empty());
    CHECK(of("f") == "Zg==");
    CHECK(of("fo") == "Zm8=");
    CHECK(of("foo") == "Zm9v");
    CHECK(of("foob") == "Zm9vYg==");
    CHECK(of("fooba") == "Zm9vYmE=");
    CHECK(of("foobar") == "Zm9vYmFy");
}

TEST_CASE("a model is written as a script with rounded numbers; numbers out of range are rejected")
{
    const auto folder = std::filesystem::temp_directory_path() / "heed_pack_test";
    std::filesystem::create_directories(folder);
    const auto model = folder / "model", script = folder / "script", rounded = folder / "rounded";
    heed::io::archive archive;
    archive.metadata = {
        {"options.system", "sankaran"}, {"options.attention", "additive"}, {"vocabulary.source", "a\nb"}};
    archive.tensors.push_back(heed::io::tensor_entry::of("W", {1, 3}, std::vector<float>{1.0f, 0.1f, -3.0f}));
    heed::io::save(model, archive);
    pack(model, script);
    std::ifstream file(script);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(text.find("attention: \"additive\"") != std::string::npos);
    CHECK(text.find("\"a\\nb\"") != std::string::npos);
    CHECK(text.find("tensors: [[\"W\",3]]") != std::string::npos);
    CHECK(text.find("halves: \"ADxmLgDC\"") != std::string::npos);  // 0x3c00, 0x2e66, 0xc200
    browser::round(model, rounded);
    CHECK(heed::io::load(rounded).tensors.at(0).values<float>() == std::vector<float>{1.0f, 0.0999755859375f, -3.0f});
    CHECK(heed::io::load(rounded).metadata == archive.metadata);

    archive.tensors[0] = heed::io::tensor_entry::of("W", {3000, 1000}, std::vector<float>(3000000));
    heed::io::save(model, archive);
    CHECK_THROWS_WITH_AS(pack(model, script), doctest::Contains("the limit is 8000000"), heed::error);
    archive.metadata["options.system"] = "rnnsearch";
    heed::io::save(model, archive);
    CHECK_THROWS_WITH_AS(pack(model, script), doctest::Contains("--system sankaran"), heed::error);
    std::filesystem::remove_all(folder);
}
