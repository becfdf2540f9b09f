// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/npz.hpp>
#include <heed/io/weights.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace heed::io;
namespace io = heed::io;

namespace {

// What NumPy 1.24 writes for {"a": [[0, 2, 4], [1, 3, 5]] of '>f4' in Fortran order, "b": [True, False]}: `numpy.py
// --print`.
// clang-format off
// 516 bytes
const unsigned char stored_npz[] = {
    80,75,3,4,20,0,0,0,0,0,0,0,33,0,114,36,33,221,152,0,0,0,152,0,0,0,5,0,20,0,97,46,110,112,121,1,0,16,0,152,0,0,0,
    0,0,0,0,152,0,0,0,0,0,0,0,147,78,85,77,80,89,1,0,118,0,123,39,100,101,115,99,114,39,58,32,39,62,102,52,39,44,32,
    39,102,111,114,116,114,97,110,95,111,114,100,101,114,39,58,32,84,114,117,101,44,32,39,115,104,97,112,101,39,58,
    32,40,50,44,32,51,41,44,32,125,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,
    32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,10,0,0,0,0,63,
    128,0,0,64,0,0,0,64,64,0,0,64,128,0,0,64,160,0,0,80,75,3,4,20,0,0,0,0,0,0,0,33,0,238,25,187,93,130,0,0,0,130,0,
    0,0,5,0,20,0,98,46,110,112,121,1,0,16,0,130,0,0,0,0,0,0,0,130,0,0,0,0,0,0,0,147,78,85,77,80,89,1,0,118,0,123,39,
    100,101,115,99,114,39,58,32,39,124,98,49,39,44,32,39,102,111,114,116,114,97,110,95,111,114,100,101,114,39,58,32,
    70,97,108,115,101,44,32,39,115,104,97,112,101,39,58,32,40,50,44,41,44,32,125,32,32,32,32,32,32,32,32,32,32,32,
    32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,32,
    32,32,32,32,32,32,32,32,32,32,32,32,10,1,0,80,75,1,2,20,3,20,0,0,0,0,0,0,0,33,0,114,36,33,221,152,0,0,0,152,0,0,
    0,5,0,0,0,0,0,0,0,0,0,0,0,128,1,0,0,0,0,97,46,110,112,121,80,75,1,2,20,3,20,0,0,0,0,0,0,0,33,0,238,25,187,93,
    130,0,0,0,130,0,0,0,5,0,0,0,0,0,0,0,0,0,0,0,128,1,207,0,0,0,98,46,110,112,121,80,75,5,6,0,0,0,0,2,0,2,0,102,0,0,
    0,136,1,0,0,0,0,
};
// 391 bytes
const unsigned char deflated_npz[] = {
    80,75,3,4,20,0,0,0,8,0,0,0,33,0,114,36,33,221,87,0,0,0,152,0,0,0,5,0,20,0,97,46,110,112,121,1,0,16,0,152,0,0,0,
    0,0,0,0,87,0,0,0,0,0,0,0,155,236,23,234,27,16,201,200,80,198,80,173,158,146,90,156,92,164,110,165,160,110,151,
    102,162,174,163,160,158,150,95,84,82,148,152,23,159,95,148,146,10,18,15,41,42,77,5,10,23,103,36,22,164,2,185,26,
    70,58,10,198,154,58,10,181,10,228,3,46,6,32,176,111,96,96,112,0,210,14,64,194,1,196,94,192,192,0,0,80,75,3,4,20,
    0,0,0,8,0,0,0,33,0,238,25,187,93,70,0,0,0,130,0,0,0,5,0,20,0,98,46,110,112,121,1,0,16,0,130,0,0,0,0,0,0,0,70,0,
    0,0,0,0,0,0,155,236,23,234,27,16,201,200,80,198,80,173,158,146,90,156,92,164,110,165,160,94,147,100,168,174,163,
    160,158,150,95,84,82,148,152,23,159,95,148,146,10,18,119,75,204,41,78,5,138,23,103,36,22,164,2,249,26,70,58,154,
    58,10,181,10,20,0,46,70,6,0,80,75,1,2,20,3,20,0,0,0,8,0,0,0,33,0,114,36,33,221,87,0,0,0,152,0,0,0,5,0,0,0,0,0,0,
    0,0,0,0,0,128,1,0,0,0,0,97,46,110,112,121,80,75,1,2,20,3,20,0,0,0,8,0,0,0,33,0,238,25,187,93,70,0,0,0,130,0,0,0,
    5,0,0,0,0,0,0,0,0,0,0,0,128,1,142,0,0,0,98,46,110,112,121,80,75,5,6,0,0,0,0,2,0,2,0,102,0,0,0,11,1,0,0,0,0,
};
// clang-format on

std::string text_of(std::span<const unsigned char> bytes)
{
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// load_npz()'s error for these bytes, without the path.
std::string problem(const std::string& bytes)
{
    const temporary_directory directory;
    const std::string path = directory.write("arrays.npz", bytes).string();
    try {
        load_npz(path);
    } catch (const heed::error& caught) {
        const std::string what = caught.what();
        CHECK(what.starts_with(path + ": "));
        return what.substr(path.size() + 2);
    }
    return "no error";
}

archive some()
{
    archive contents;
    contents.tensors.push_back(tensor_entry::of("layers.0/W", {2, 3}, std::vector<float>{1, -2, 3.5F, 0, 1e-38F, 7}));
    contents.tensors.push_back(tensor_entry::of("größe", {}, std::vector<std::int64_t>{-9'000'000'000}));
    contents.tensors.push_back(tensor_entry::of("none", {0, 4}, std::vector<double>{}));
    contents.tensors.push_back(tensor_entry::of("zeros", {300, 100}, std::vector<double>(30'000, 0.0)));
    contents.tensors.push_back(tensor_entry::of("half", {1}, std::vector<float16>{float16(0.1F)}));
    return contents;
}

template <class T>
void put_at(std::string& bytes, std::size_t at, T value)
{
    std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// Where the n-th of these signatures is.
std::size_t place_of(const std::string& bytes, std::uint32_t signature, int n = 0)
{
    std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&signature), 4));
    while (n-- > 0) at = bytes.find(std::string(reinterpret_cast<const char*>(&signature), 4), at + 1);
    return at;
}

}  // namespace

TEST_CASE("what NumPy wrote, stored and deflated")
{
    const temporary_directory directory;
    for (const std::string& bytes : {text_of(stored_npz), text_of(deflated_npz)}) {
        const auto path = directory.write("file.npz", bytes);
        for (const held how : {held::mapped, held::copied}) {
            const archive contents = load_npz(path, how);
            REQUIRE(contents.tensors.size() == 2);
            CHECK(contents.tensors[0].name == "a");
            CHECK(contents.at("a").dtype == "F32");
            CHECK(contents.at("a").shape == std::vector<std::size_t>{2, 3});
            CHECK(contents.at("a").values<float>() == std::vector<float>{0, 2, 4, 1, 3, 5});
            CHECK(contents.at("b").dtype == "BOOL");
            CHECK(contents.at("b").values<std::uint8_t>() == std::vector<std::uint8_t>{1, 0});
        }
        CHECK_THROWS_WITH_AS(
            load_npz(path).at("c"),
            (path.string() + ": there is no tensor \"c\"; it holds \"a\" F32 [2,3], \"b\" BOOL [2]").c_str(),
            heed::error);
    }
}

TEST_CASE("what is saved is loaded: stored, deflated, and with every number in its ZIP64 field")
{
    const temporary_directory directory;
    const auto path = directory.path() / "file.npz";
    const archive before = some();
    const auto same = [&] {
        const archive after = load_npz(path);
        REQUIRE(after.tensors.size() == before.tensors.size());
        for (std::size_t i = 0; i < after.tensors.size(); ++i) CHECK(after.tensors[i] == before.tensors[i]);
        CHECK(directory.files() == 1);
    };
    save_npz(path, before);
    same();
    const auto stored = std::filesystem::file_size(path);
    save_npz(path, before, compression::deflated);
    same();
    CHECK(std::filesystem::file_size(path) * 50 < stored);
    for (const auto how : {compression::stored, compression::deflated}) {
        for (const std::uint64_t largest : {0u, 100u, 300u}) {
            detail::save_npz(path, before, how, existing::replace, largest);
            CHECK((place_of(directory.read("file.npz"), detail::zip64_end) != std::string::npos));
            same();
        }
    }
    save_npz(path, archive{});
    CHECK(load_npz(path).tensors.empty());
}

TEST_CASE("what .npz files cannot hold is not saved, and the old file stays")
{
    const temporary_directory directory;
    const std::string path = directory.write("file", "old").string();
    const auto said = [&](const archive& contents) -> std::string {
        try {
            save_npz(path, contents);
        } catch (const heed::error& caught) {
            CHECK(directory.read("file") == "old");
            CHECK(directory.files() == 1);
            return std::string(caught.what()).substr(path.size() + 2);
        }
        return "no error";
    };
    const tensor_entry one = tensor_entry::of("a", {1}, std::vector<float>{1});
    CHECK(said({{one, one}, {}}) == "cannot be saved: two tensors are called \"a\"");
    CHECK(said({{one}, {{"format", "pt"}}}) ==
          "cannot be saved: an .npz file has no place for metadata; clear it, or save a safetensors file");
    CHECK(said({{tensor_entry::of("a", {1}, std::vector<heed::io::bfloat16>(1))}, {}}) ==
          "cannot be saved: tensor \"a\" has dtype \"BF16\", which NumPy does not have; store floats");
    archive wrong{{one}, {}};
    wrong.tensors[0].shape = {2};
    CHECK(said(wrong) == "cannot be saved: tensor \"a\" is [2] of F32 but has 4 bytes");
    wrong.tensors[0] = one;
    wrong.tensors[0].name = std::string(65532, 'n');
    CHECK(said(wrong) == "cannot be saved: the name of a tensor has 65532 bytes; a ZIP file has place for 65531");
}

TEST_CASE("a file cut off anywhere is refused")
{
    for (const std::string& whole : {text_of(stored_npz), text_of(deflated_npz)}) {
        for (std::size_t length = 0; length < whole.size(); ++length) {
            CAPTURE(length);
            CHECK(problem(whole.substr(0, length)) != "no error");
        }
        CHECK(problem(whole) == "no error");
        CHECK(problem(whole + "x").starts_with("is not a ZIP file, or truncated"));
    }
    CHECK(problem("") == "is only 0 bytes long; not a ZIP file");
    CHECK(problem(std::string(100, 'x')) == "is not a ZIP file, or truncated: the end of its directory is missing");
}

TEST_CASE("a file with any one byte changed is refused or read, never worse")
{
    const temporary_directory directory;
    detail::save_npz(directory.path() / "wide", load_npz(directory.write("file.npz", text_of(stored_npz))),
                     compression::deflated, existing::replace, 0);
    std::size_t refused = 0, read = 0;
    for (const std::string& whole : {text_of(stored_npz), text_of(deflated_npz), directory.read("wide")}) {
        for (std::size_t i = 0; i < whole.size(); ++i)
            for (const char byte : {'\0', '\1', '\x7F', '\xFF'}) {
                if (whole[i] == byte) continue;
                std::string changed = whole;
                changed[i] = byte;
                ++(problem(changed) == "no error" ? read : refused);
            }
    }
    CHECK(refused > 3500);
    CHECK(read > 0);  // times of files, for example
}

TEST_CASE("directories that lie")
{
    const std::string good = text_of(deflated_npz);
    const std::size_t entry = place_of(good, detail::zip_central), second = place_of(good, detail::zip_central, 1),
                      end = place_of(good, detail::zip_end);
    const auto with = [&](std::size_t at, auto value) {
        std::string changed = good;
        put_at(changed, at, value);
        return problem(changed);
    };
    CHECK(with(entry + 8, std::uint16_t{1}) == "\"a.npy\" is encrypted; heed reads plain members");
    CHECK(with(entry + 10, std::uint16_t{12}) ==
          "\"a.npy\" is compressed by method 12; heed reads stored (0) and deflated (8) members");
    CHECK(with(entry + 16, std::uint32_t{1}) == "is damaged: \"a.npy\" fails its checksum (CRC-32)");
    CHECK(
        with(entry + 20, std::uint32_t{0xFFFFFF}).starts_with("is damaged: \"a.npy\" should have 16777215 bytes, and"));
    CHECK(with(entry + 24, std::uint32_t{151}) == "is damaged: \"a.npy\" does not decompress to 151 bytes");
    CHECK(with(entry + 24, std::uint32_t{153}) == "is damaged: \"a.npy\" does not decompress to 153 bytes");
    CHECK(with(entry + 24, std::uint32_t{0x7FFFFFFF}) ==
          "is damaged: 87 bytes cannot be deflated from 2147483647, as \"a.npy\" says");
    CHECK(with(entry + 24, std::uint32_t{0xFFFFFFFF}).starts_with("is damaged: 87 bytes cannot be deflated from"));
    CHECK(with(entry + 42, std::uint32_t{1}) == "is damaged: \"a.npy\" is not at byte 1");
    CHECK(with(entry + 42, std::uint32_t{0xFFFFFF}) == "is damaged: \"a.npy\" should begin at byte 16777215");
    CHECK(with(second + 42, std::uint32_t{0}) == "is damaged: \"b.npy\" is not at byte 0");
    CHECK(with(second + 46, 'a') != "no error");
    CHECK(with(end + 4, std::uint16_t{1}) == "is one of several parts of a ZIP file; join them first");
    CHECK(with(end + 10, std::uint16_t{1}) == "is damaged: its directory goes on behind its last member");
    CHECK(with(end + 10, std::uint16_t{3}).starts_with("is damaged: 3 members do not fit into a directory of 102"));
    CHECK(with(end + 12, std::uint32_t{0xFFFFFF}).starts_with("is damaged: its directory should have 16777215 bytes"));
    CHECK(with(end + 16, std::uint32_t{0}) == "is damaged: its directory has no member where one is due");

    // The same member twice, in one place: what makes small files that decompress to very large ones.
    const std::string member = good.substr(entry, second - entry);
    std::string bomb = good.substr(0, entry) + member + member + good.substr(end);
    put_at(bomb, bomb.size() - 10, static_cast<std::uint32_t>(2 * member.size()));
    CHECK(problem(bomb) == "is damaged: \"a.npy\" appears twice");

    // No arrays at all.
    const temporary_directory directory;
    {
        atomic_file file(directory.path() / "model.pt");
        detail::zip_writer zip(file);
        const std::string pickle = "not an array";
        zip.add("archive/data.pkl", std::as_bytes(std::span(pickle)), {}, compression::stored);
        zip.finish();
        file.commit();
    }
    CHECK(
        problem(directory.read("model.pt")) ==
        "is a ZIP file without arrays: it holds \"archive/data.pkl\", for example. A .pt file of PyTorch is one; store "
        "its state_dict by safetensors.torch.save_file");
}

TEST_CASE("what is decompressed is bounded by the file's size, unless a larger bound is given")
{
    const temporary_directory directory;
    const auto path = directory.path() / "file.npz";
    const auto save_zeros = [&](std::size_t bytes) {
        archive zeros;
        zeros.tensors.push_back(tensor_entry::of("a", {bytes}, std::vector<std::uint8_t>(bytes)));
        save_npz(path, zeros, compression::deflated);
    };
    save_zeros(always_inflated + 1);
    CHECK(std::filesystem::file_size(path) < always_inflated / largest_inflation);
    std::string what;
    try {
        load_npz(path);
    } catch (const heed::error& problem) {
        what = problem.what();
    }
    CHECK(what.find("more than 100 times the file") != what.npos);
    CHECK(load_npz(path, held::mapped, 1100).at("a").size() == always_inflated + 1);
    save_zeros(always_inflated - 1000);  // little enough, whatever its file
    CHECK(load_npz(path).at("a").size() == always_inflated - 1000);
}

TEST_CASE("the lines of the guide")
{
    const temporary_directory directory;
    const auto path = directory.write("arrays.npz", text_of(stored_npz));
    const auto other = directory.path() / "other.npz", single = directory.path() / "a.npy";
    // section: npz
    const io::archive arrays = io::load_npz(path);          // numpy.savez(path, a=…, b=…), compressed or not
    const auto a = io::array_of<float, 2>(arrays.at("a"));  // '>f4' in Fortran order, for example
    io::archive mine;
    mine.tensors.push_back(io::entry_of("a", a));
    io::save_npz(other, mine, io::compression::deflated);  // numpy.load(other)["a"]
    io::save_npy(single, io::entry_of("a", a));            // numpy.load(single)
    // end
    CHECK(a(0, 1) == 2);
    CHECK(a(1, 0) == 1);
    CHECK(load_npz(other).at("a").values<float>() == arrays.at("a").values<float>());
    CHECK(load_npy(single).values<float>() == arrays.at("a").values<float>());
}

// ---- with NumPy itself: numpy.py runs this program
// ---------------------------------------------------------------------

TEST_CASE("every type, byte order and layout that NumPy writes")
{
    const char* const folder = std::getenv("HEED_NUMPY_FILES");
    if (folder == nullptr) {
        MESSAGE("only where numpy.py runs this program");
        return;
    }
    const std::filesystem::path here = folder;
    for (const char* const file : {"stored.npz", "deflated.npz"}) {
        CAPTURE(file);
        archive contents = load_npz(here / file);
        CHECK(contents.tensors.size() == 11 * 4 + 6);
        for (const std::string kind : {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"}) {
            std::vector<double> expected(24);
            for (std::size_t i = 0; i < 24; ++i) {
                expected[i] = static_cast<double>(i);
                if (kind[0] != 'u') expected[i] -= 5;
                if (kind[0] == 'f') expected[i] /= 8;
            }
            for (const char* const how : {".little.C", ".little.F", ".big.C", ".big.F"}) {
                CAPTURE(kind);
                CAPTURE(how);
                const tensor_entry& entry = contents.at(kind + how);
                CHECK(entry.shape == std::vector<std::size_t>{2, 3, 4});
                std::vector<double> values(24);
                if (kind == "i8") {
                    const auto whole = entry.values<std::int64_t>();
                    values.assign(whole.begin(), whole.end());
                } else if (kind == "u8") {
                    const auto whole = entry.values<std::uint64_t>();
                    values.assign(whole.begin(), whole.end());
                } else {
                    values = entry.values<double>();
                }
                CHECK(values == expected);
            }
        }
        CHECK(contents.at("truth").dtype == "BOOL");
        CHECK(contents.at("truth").values<float>()[3] == 1);
        CHECK(contents.at("truth").values<float>()[4] == 0);
        CHECK(contents.at("number").shape.empty());
        CHECK(contents.at("number").values<double>() == std::vector<double>{2.5});
        CHECK(contents.at("row").shape == std::vector<std::size_t>{3});
        CHECK(contents.at("none").shape == std::vector<std::size_t>{0, 4});
        CHECK(contents.at("words").dtype == "<U3");
        CHECK(contents.at("words").shape == std::vector<std::size_t>{2});
        CHECK(contents.at("fields").dtype == "[('a', '<f4'), ('b', '<i8')]");
        CHECK_THROWS_AS(contents.at("words").values<float>(), heed::error);

        std::erase_if(contents.tensors, [](const tensor_entry& each) { return !dtype_size(each.dtype); });
        save_npz(here / "again.stored.npz", contents);
        save_npz(here / "again.deflated.npz", contents, compression::deflated);
        detail::save_npz(here / "again.zip64.npz", contents, compression::deflated, existing::replace, 0);
    }
    const archive zeros = load_npz(here / "zeros.npz");
    CHECK(zeros.at("zeros").values<double>() == std::vector<double>(300'000, 0.0));
    for (const char* const version : {"version1.npy", "version2.npy", "version3.npy"}) {
        const tensor_entry entry = load_npy(here / version);
        CHECK(entry.shape == std::vector<std::size_t>{2, 3, 4});
        CHECK(entry.values<float>()[6] == 1.0F / 8);
        save_npy(here / "again.npy", entry);
    }

    archive halves;
    std::vector<float16> all(65536), rounded(200'000);
    std::vector<float> floats(65536), more(200'000);
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = float16::of_bits(static_cast<std::uint16_t>(i));
        floats[i] = static_cast<float>(all[i]);
    }
    for (std::size_t i = 0; i < more.size(); ++i) {
        more[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761u));
        rounded[i] = float16(more[i]);
    }
    halves.tensors = {tensor_entry::of("float16", {65536}, all), tensor_entry::of("float32", {65536}, floats),
                      tensor_entry::of("float32.more", {more.size()}, more),
                      tensor_entry::of("rounded", {more.size()}, rounded)};
    save_npz(here / "halves.npz", halves);
}
