// SPDX-License-Identifier: BSD-3-Clause
//
// The program for libFuzzer: HEED_FUZZ_TARGET names the target. scripts/fuzz.sh runs it.

#include "fuzz.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t size, std::size_t most);

namespace {

const fuzz::target& chosen()
{
    static const fuzz::target one = [] {
        const char* const name = std::getenv("HEED_FUZZ_TARGET");
        std::string known;
        for (const fuzz::target& each : fuzz::targets()) {
            if (name != nullptr && std::strcmp(name, each.name) == 0) return each;
            known += std::string(" ") + each.name;
        }
        fuzz::fail("HEED_FUZZ_TARGET must be one of" + known);
    }();
    return one;
}

std::string scrambled(std::string bytes, std::size_t most)
{
    const std::size_t size = std::min(bytes.size(), most);
    bytes.resize(std::max<std::size_t>(most, 1));
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), size, bytes.size()));
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    chosen().run({reinterpret_cast<const char*>(bytes), size});
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t size, std::size_t most,
                                               unsigned int seed)
{
    std::minstd_rand random(seed);
    if (chosen().mutate == nullptr || random() % 4 == 0) return LLVMFuzzerMutate(bytes, size, most);
    const std::string changed = chosen().mutate(
        {reinterpret_cast<const char*>(bytes), size},
        [&](std::size_t end) { return random() % std::max<std::size_t>(end, 1); }, scrambled);
    if (changed.empty() || changed.size() > most) return LLVMFuzzerMutate(bytes, size, most);
    std::memcpy(bytes, changed.data(), changed.size());
    return changed.size();
}
