// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/archive.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace heed::io;

TEST_CASE("the error for a missing name lists the file's tensors, the most similar name first")
{
    archive contents;
    contents.path = "model.safetensors";
    const std::vector<float> none;
    for (int layer = 0; layer < 12; ++layer)
        for (const char* const what : {".attention.W_Q", ".attention.W_K", ".norm.gain"})
            contents.tensors.push_back(tensor_entry::of("layers." + std::to_string(layer) + what, {0, 3}, none));
    const auto said = [&](const std::string& name) -> std::string {
        try {
            contents.at(name);
        } catch (const heed::error& caught) {
            return caught.what();
        }
        return "no error";
    };
    CHECK(said("layers.7.attention.W_V")
              .starts_with("model.safetensors: there is no tensor \"layers.7.attention.W_V\"; it "
                           "holds \"layers.7.attention.W_Q\" F32 [0,3], "));
    CHECK(said("layers.7.attention.W_V").ends_with(" and 26 more"));
    contents.tensors.resize(1);
    contents.tensors[0].name = std::string(200, 'n') + "\n";
    CHECK(said("x") ==
          "model.safetensors: there is no tensor \"x\"; it holds \"" + std::string(97, 'n') + "…\" F32 [0,3]");
    contents.tensors.clear();
    CHECK(said("x") == "model.safetensors: there is no tensor \"x\"; it has no tensors");
}

TEST_CASE("entries check type, size and name")
{
    CHECK_THROWS_WITH_AS(tensor_entry::of("a", {2, 2}, std::vector<float>{1, 2, 3}),
                         "tensor \"a\" is [2,2] but 3 values were given", heed::shape_error);
    const tensor_entry entry = tensor_entry::of("a", {2}, std::vector<float>{1, 2});
    CHECK(entry.size() == 2);
    CHECK(entry.values<double>() == std::vector<double>{1, 2});
    CHECK_THROWS_WITH_AS(entry.values<float16>(),
                         "tensor \"a\" holds F32 but was read as F16, which cannot represent every F32", heed::error);
    std::vector<float> three(3);
    CHECK_THROWS_WITH_AS(entry.copy_to<float>(three),
                         "tensor \"a\" is [2] but was read into storage for 3 values; give storage for 2",
                         heed::shape_error);
    CHECK_THROWS_WITH_AS(archive{}.at("b"), "archive: there is no tensor \"b\"; it has no tensors", heed::error);
    CHECK(archive{}.find("b") == nullptr);
}
