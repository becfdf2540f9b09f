// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/quantize.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <heed/gemm/int8_panels.hpp>
#include <heed/io/safetensors.hpp>
#include <support/temporary_directory.hpp>

using namespace heed;
using io::archive;
using io::tensor_entry;

namespace {

archive sample()
{
    std::vector<float> W(5 * 7), table(6 * 3), b{1, -2, 3};
    for (std::size_t i = 0; i < W.size(); ++i) W[i] = std::sin(static_cast<float>(i)) * static_cast<float>(i % 7);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::cos(static_cast<float>(i)) * 100.0f;
    archive file;
    file.metadata["who"] = "me";
    file.tensors = {tensor_entry::of("cell.W", {5, 7}, W), tensor_entry::of("embedding", {6, 3}, table),
                    tensor_entry::of("b", {3}, b), tensor_entry::of("count", {1}, std::vector<std::int64_t>{12})};
    return file;
}

tensor_entry& named(archive& file, const std::string& name) { return const_cast<tensor_entry&>(file.at(name)); }

}  // namespace

TEST_CASE("matrices have a scale per column and tables one per row; values change by at most half a step")
{
    const archive before = sample(), small = io::in_int8(before), after = io::in_floats(small);
    CHECK(io::has_int8(small));
    CHECK(!io::has_int8(before));
    CHECK(!io::has_int8(after));
    CHECK(small.metadata == before.metadata);
    CHECK(after.metadata == before.metadata);
    CHECK(small.tensors.size() == 6);
    CHECK(small.at("cell.W").dtype == "I8");
    CHECK(small.at("cell.W").shape == std::vector<std::size_t>{5, 7});
    CHECK(small.at("cell.W.scale").dtype == "F32");
    CHECK(small.at("cell.W.scale").shape == std::vector<std::size_t>{1, 7});
    CHECK(small.at("embedding.scale").shape == std::vector<std::size_t>{6, 1});
    CHECK(small.at("b") == before.at("b"));
    CHECK(small.at("count") == before.at("count"));
    CHECK(after.tensors.size() == 4);
    for (const std::string name : {"cell.W", "embedding"}) {
        const auto x = before.at(name).values<float>(), y = after.at(name).values<float>();
        const auto bytes = small.at(name).values<std::int8_t>();
        const auto scale = small.at(name + ".scale").values<float>();
        const std::size_t N = before.at(name).shape[1];
        REQUIRE(after.at(name).shape == before.at(name).shape);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const float s = name == "embedding" ? scale[i / N] : scale[i % N];
            CHECK(std::abs(x[i] - y[i]) <= s * 0.500001f);
            CHECK(y[i] == static_cast<float>(bytes[i]) * s);
        }
        CHECK(x != y);
    }
}

TEST_CASE("quantized values are not rounded again by a file or a product")
{
    const archive small = io::in_int8(sample()), wide = io::in_floats(small), again = io::in_int8(wide);
    for (const std::string name : {"cell.W", "embedding"}) CHECK(again.at(name) == small.at(name));

    // A product with 1, which is 127 steps, returns a row of the matrix.
    const auto W = wide.at("cell.W").values<float>();
    kernels::int8_panels panels;
    panels.pack(5, 7, W.data(), 7);
    for (std::size_t k = 0; k < 5; ++k) {
        std::vector<float> x(5), y(7);
        x[k] = 1;
        panels.multiply(1, x.data(), 5, y.data(), 7, false);
        for (std::size_t n = 0; n < 7; ++n) CHECK(y[n] == doctest::Approx(W[k * 7 + n]).epsilon(1e-6));
    }
}

TEST_CASE("zeros and very small numbers have the scale 0")
{
    archive file;
    file.tensors = {tensor_entry::of("W", {2, 2}, std::vector<float>{0, 1e-38f, 0, -1e-40f}),
                    tensor_entry::of("none", {0, 4}, std::vector<float>())};
    const archive small = io::in_int8(file);
    CHECK(small.at("W.scale").values<float>() == std::vector<float>{0, 0});
    CHECK(io::in_floats(small).at("W").values<float>() == std::vector<float>{0, 0, 0, 0});
    CHECK(small.at("none") == file.at("none"));
}

TEST_CASE("bfloat16 halves the size and keeps eight bits of precision")
{
    const archive before = sample(), small = io::in_bfloat16(before);
    CHECK(small.at("cell.W").dtype == "BF16");
    CHECK(small.at("b").dtype == "BF16");
    CHECK(small.at("count") == before.at("count"));
    CHECK(2 * small.at("cell.W").bytes.size() == before.at("cell.W").bytes.size());
    const auto x = before.at("cell.W").values<float>(), y = small.at("cell.W").values<float>();
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::abs(x[i] - y[i]) <= std::abs(x[i]) / 256);
    archive huge;
    huge.tensors = {tensor_entry::of("W", {2}, std::vector<float>{0, std::numeric_limits<float>::max()})};
    CHECK_THROWS_WITH_AS(io::in_bfloat16(huge), "tensor \"W\"[1] is too large for BF16", error);
}

TEST_CASE("an int8 file is a safetensors file")
{
    const temporary_directory place;
    const auto path = place.path() / "small.safetensors";
    const archive file = sample();
    // section: file
    io::save(path, io::in_int8(file));  // or io::in_bfloat16
    const io::archive floats = io::in_floats(io::load(path));
    // end
    CHECK(floats.at("cell.W").values<float>() == io::in_floats(io::in_int8(file)).at("cell.W").values<float>());
}

TEST_CASE("errors in int8 weights are reported")
{
    const archive small = io::in_int8(sample());
    const auto message = [](const archive& file) -> std::string {
        try {
            (void)io::in_floats(file);
        } catch (const error& problem) {
            return problem.what();
        }
        return "none";
    };
    archive file = small;
    std::erase_if(file.tensors, [](const tensor_entry& each) { return each.name == "cell.W.scale"; });
    CHECK(message(file) == "tensor \"cell.W\" holds I8 [5,7], but its scales are missing: there is no "
                           "\"cell.W.scale\"");
    file = small;
    named(file, "cell.W.scale") = tensor_entry::of("cell.W.scale", {7}, std::vector<float>(7));
    CHECK(message(file) == "tensor \"cell.W\" is I8 [5,7], but its scales are F32 [7]; they must be F32, either one "
                           "per column, [1,7], or one per row, [5,1]");
    file = small;
    named(file, "cell.W.scale") = tensor_entry::of("cell.W.scale", {1, 7}, std::vector<double>(7));
    CHECK(message(file).find("its scales are F64 [1,7]") != std::string::npos);
    for (const auto& [bad, what] : {std::pair(std::nanf(""), "NaN"), std::pair(-1.0f, "negative"),
                                    std::pair(std::numeric_limits<float>::infinity(), "infinite")}) {
        std::vector<float> scale(7, 1.0f);
        scale[6] = bad;
        named(file, "cell.W.scale") = tensor_entry::of("cell.W.scale", {1, 7}, scale);
        CHECK(message(file) == std::string("tensor \"cell.W.scale\"[6] is ") + what +
                                   "; a scale must be finite and not negative; the file is damaged");
    }
    file = small;
    named(file, "cell.W") = tensor_entry::of("cell.W", {35}, std::vector<std::int8_t>(35));
    CHECK(message(file) == "tensor \"cell.W\" holds I8 [35], but 8-bit weights must be matrices");

    archive wrong = sample();
    wrong.tensors[0] = tensor_entry::of("W", {1, 2}, std::vector<float>{1, std::nanf("")});
    CHECK_THROWS_WITH_AS(io::in_int8(wrong),
                         "tensor \"W\" has a number that is not finite, at [0,1]; it cannot be stored in 8 bits",
                         error);
    wrong.tensors[0] = tensor_entry::of("b.scale", {1}, std::vector<float>{1});
    CHECK_NOTHROW(io::in_int8(wrong));
    wrong.tensors[0] = tensor_entry::of("embedding.scale", {1}, std::vector<float>{1});
    CHECK_THROWS_WITH_AS(io::in_int8(wrong),
                         "there is a tensor \"embedding.scale\" already, the name that the scales of "
                         "\"embedding\" need; rename one of the two",
                         error);
}
