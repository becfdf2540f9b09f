// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"
#include "headers.hpp"

#include <heed/io/npy.hpp>
#include <heed/io/weights.hpp>

namespace fuzz::npy {

void run(std::string_view bytes)
{
    const auto path = file_of(bytes);
    const auto found = read(path, bytes.size(), 8, [&] { return heed::io::load_npy(path, heed::io::storage::copied); });
    if (!found) return;
    require(heed::io::load_npy(path) == *found, "mapped and copied differ");
    {
        const allowance limited(free_bytes + 16 * bytes.size());
        accepts([&] { heed::io::array_of<double, 2>(*found); });
    }
    if (!heed::io::dtype_size(found->dtype)) return;
    const auto copy = path_of("read.npy");  // an array is named after its file
    heed::io::save_npy(copy, *found);
    require(heed::io::load_npy(copy) == *found, "the array changes in a round trip");
}

std::vector<std::string> seeds()
{
    return {npy_of(npy_header("<f4", false, "(2, 3)"), std::string(24, '\1')),
            npy_of(npy_header(">f8", true, "(2, 1, 2)"), std::string(32, '\2'), 2),
            npy_of(npy_header("|b1", false, "()"), "\1", 3),
            npy_of("{'descr': [('x', '<f4'), ('y', '<i2')], 'fortran_order': False, 'shape': (1L,)}", "123456")};
}

const registered target({"npy", run, seeds, mutated_npy});

}  // namespace fuzz::npy
