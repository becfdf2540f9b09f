// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"
#include "headers.hpp"

#include <heed/io/npz.hpp>

#include <algorithm>

namespace fuzz::npz {

void run(std::string_view bytes)
{
    const auto path = file_of(bytes);
    // What was decompressed, and one array of it with its bytes in another order.
    const auto found = read(
        path, bytes.size(), 16 + 2 * heed::io::largest_inflation,
        [&] { return heed::io::load_npz(path, heed::io::held::copied); }, free_bytes + 2 * heed::io::always_inflated);
    if (!found) return;
    require(heed::io::load_npz(path).tensors == found->tensors, "mapped and copied differ");
    const bool known = std::all_of(found->tensors.begin(), found->tensors.end(),
                                   [](const auto& each) { return heed::io::dtype_size(each.dtype).has_value(); });
    if (!known) return;
    const auto copy = file_of("", "written");
    for (const auto how : {heed::io::compression::stored, heed::io::compression::deflated}) {
        heed::io::save_npz(copy, *found, how);
        require(heed::io::load_npz(copy).tensors == found->tensors, "written again it reads otherwise");
    }
}

std::vector<std::string> seeds()
{
    const std::string a = npy_of(npy_header("<f4", false, "(2, 3)"), std::string(24, '\1'));
    const std::string b = npy_of(npy_header(">i8", true, "(2, 1)"), std::string(16, '\2'), 2);
    const std::string c = npy_of(npy_header("<U3", false, "()"), std::string(12, '\0'), 3);
    return {zip_of({}), zip_of({{"a.npy", a, false}, {"b.npy", b, true}}), zip_of({{"c.npy", c, true}}, true),
            zip_of({{"readme", "text", false}})};
}

const registered target({"npz", run, seeds, mutated_zip});

}  // namespace fuzz::npz
