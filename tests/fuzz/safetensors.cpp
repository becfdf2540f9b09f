// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"
#include "headers.hpp"

#include <heed/io/quantize.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/weights.hpp>

#include <algorithm>

namespace fuzz::safetensors {

using heed::io::archive;

void run(std::string_view bytes)
{
    const auto path = file_of(bytes);
    // An empty tensor takes 45 bytes in the header, and 300 bytes of memory including its name.
    const auto found = read(path, bytes.size(), 16, [&] { return heed::io::load(path, heed::io::storage::copied); });
    if (!found) return;
    require(heed::io::load(path).tensors == found->tensors, "mapped and copied differ");

    bool known = true;
    for (const heed::io::tensor_entry& each : found->tensors) {
        known = known && heed::io::dtype_size(each.dtype);
        const allowance limited(free_bytes + 16 * bytes.size());
        accepts([&] { each.values<double>(); });
        accepts([&] { heed::io::array_of<float, 2>(each); });
    }
    {
        const allowance limited(free_bytes + 64 * bytes.size());
        accepts([&] { heed::io::in_floats(*found); });
        accepts([&] { heed::io::in_int8(*found); });
        accepts([&] { heed::io::in_bfloat16(*found); });
    }
    if (!known) return;
    const auto copy = path_of("written");
    heed::io::save(copy, *found);
    archive again = heed::io::load(copy);
    const auto by_name = [](archive& of) {
        std::sort(of.tensors.begin(), of.tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    };
    archive first = *found;
    by_name(first);
    by_name(again);
    require(first.tensors == again.tensors && first.metadata == again.metadata, "the archive changes in a round trip");
}

std::vector<std::string> seeds()
{
    const std::string numbers(24, '\1');
    return {
        safetensors_of("{}", ""),
        safetensors_of(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{"format":"pt"}})",
                       numbers),
        safetensors_of(R"({"w":{"dtype":"I8","shape":[2,3],"data_offsets":[0,6]},)"
                       R"("w.scale":{"dtype":"F32","shape":[1,3],"data_offsets":[6,18]}})",
                       numbers.substr(0, 18)),
        safetensors_of(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[4,5]},)"
                       R"("c":{"dtype":"U8","shape":[0,7],"data_offsets":[5,5]}})",
                       numbers.substr(0, 5)),
    };
}

const registered target({"safetensors", run, seeds, mutated_safetensors});

}  // namespace fuzz::safetensors
