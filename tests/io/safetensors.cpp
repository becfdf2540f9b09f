// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/safetensors.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace heed::io;

namespace {

archive small()
{
    archive contents;
    contents.tensors.push_back(tensor_entry::of("decoder.U", {2, 3}, std::vector<float>{1, -2, 3.5f, 0, 1e-38f, 7}));
    contents.tensors.push_back(tensor_entry::of("step", {}, std::vector<std::int64_t>{-9'000'000'000}));
    contents.tensors.push_back(tensor_entry::of("none", {0, 4}, std::vector<double>{}));
    contents.tensors.push_back(tensor_entry::of("moments", {1, 2}, std::vector<double>{0.1, -1e300}));
    contents.metadata = {{"format", "heed"}, {"words", "<pad>\nder\n\"größer\"\t日本"}};
    return contents;
}

/// The bytes of a file with this header and data of this size.
std::string file_of(const std::string& header, std::size_t data = 0)
{
    std::string bytes(8, '\0');
    const std::uint64_t size = header.size();
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(size >> (8 * i) & 0xFF);
    return bytes + header + std::string(data, '\1');
}

/// The error of load() for these bytes, without the path.
std::string problem(const std::string& bytes)
{
    const temporary_directory directory;
    const std::string path = directory.write("model", bytes).string();
    try {
        load(path);
    } catch (const heed::error& caught) {
        const std::string what = caught.what();
        CHECK(what.starts_with(path + ": "));
        return what.substr(path.size() + 2);
    }
    return "no error";
}

/// The error of load() for one tensor with this description and 16 bytes of data.
std::string problem_of_tensor(const std::string& description)
{
    return problem(file_of("{\"t\":" + description + "}", 16));
}

const std::string good = R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";

}  // namespace

TEST_CASE("a saved archive loads unchanged")
{
    const temporary_directory directory;
    const auto path = directory.path() / "model.safetensors";
    const archive before = small();
    save(path, before);
    const archive after = load(path);
    CHECK(directory.files() == 1);
    CHECK(after.metadata == before.metadata);
    REQUIRE(after.tensors.size() == before.tensors.size());
    for (const tensor_entry& each : before.tensors) CHECK(after.at(each.name) == each);

    // Tensors of 8-byte values go first.
    CHECK(after.tensors[0].name == "step");
    CHECK(after.tensors[1].name == "none");
    CHECK(after.tensors[2].name == "moments");
    CHECK(after.tensors[3].name == "decoder.U");

    CHECK(after.at("step").values<std::int64_t>() == std::vector<std::int64_t>{-9'000'000'000});
    CHECK(after.at("moments").values<double>() == std::vector<double>{0.1, -1e300});
    std::vector<float> into(6);
    after.at("decoder.U").copy_to<float>(into);
    CHECK(into == std::vector<float>{1, -2, 3.5f, 0, 1e-38f, 7});

    save(path, after);
    CHECK(load(path).tensors == after.tensors);
}

TEST_CASE("the bytes match the specification")
{
    const temporary_directory directory;
    archive contents;
    contents.tensors.push_back(tensor_entry::of("a", {2}, std::vector<float>{1, 2}));
    save(directory.path() / "file", contents);
    const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
    const std::string data("\0\0\x80\x3f\0\0\0\x40", 8);
    CHECK(directory.read("file") == file_of(padded) + data);
}

TEST_CASE("empty tensors and archives are valid")
{
    const temporary_directory directory;
    save(directory.path() / "file", archive{});
    const archive contents = load(directory.path() / "file");
    CHECK(contents.tensors.empty());
    CHECK(contents.metadata.empty());
    CHECK(problem(file_of("{}")) == "no error");
    CHECK(problem(file_of("{}      ")) == "no error");
    CHECK(problem(file_of(good, 16)) == "no error");
}

TEST_CASE("NaN and infinities keep every bit")
{
    const temporary_directory directory;
    archive contents;
    const std::vector<float> odd{std::numeric_limits<float>::infinity(), std::nanf("7"), -0.0f};
    contents.tensors.push_back(tensor_entry::of("odd", {3}, odd));
    save(directory.path() / "file", contents);
    CHECK(load(directory.path() / "file").tensors == contents.tensors);
}

TEST_CASE("data need not be in the order of the header")
{
    const temporary_directory directory;
    const auto path = directory.write("file", file_of(R"({"b":{"data_offsets":[8,16],"shape":[1],"dtype":"F64"},)"
                                                      R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})",
                                                      16));
    const archive contents = load(path);
    REQUIRE(contents.tensors.size() == 2);
    CHECK(contents.tensors[0].name == "a");
    CHECK(contents.tensors[1].name == "b");
}

TEST_CASE("a truncated file is rejected at any length")
{
    const temporary_directory directory;
    save(directory.path() / "file", small());
    const std::string whole = directory.read("file");
    const std::size_t data = 24 + 8 + 16;
    for (std::size_t length = 0; length < whole.size(); ++length) {
        const std::string said = problem(whole.substr(0, length));
        CAPTURE(length);
        CHECK(said != "no error");
        if (length >= 10) CHECK(said.starts_with("truncated: "));
    }
    CHECK(problem(whole.substr(0, whole.size() - 1)) == "truncated: the header promises " + std::to_string(data) +
                                                            " bytes of data, the file has " + std::to_string(data - 1) +
                                                            "; it was not copied or saved completely");
    CHECK(problem(whole) == "no error");
    CHECK(problem(whole + "x") == "1 byte after the last tensor: the header accounts for 48 of 49 bytes");
}

TEST_CASE("any one-byte change of the header is rejected or read, never a crash")
{
    const temporary_directory directory;
    save(directory.path() / "file", small());
    const std::string whole = directory.read("file");
    std::size_t refused = 0;
    for (std::size_t i = 0; i < whole.size() - 48; ++i)
        for (const char byte : {'\0', '"', '9', '{', ']', '\xFF'}) {
            std::string changed = whole;
            changed[i] = byte;
            refused += problem(changed) != "no error";
        }
    CHECK(refused > 1000);
}

TEST_CASE("a file of another format is recognized")
{
    CHECK(problem("") == "is empty; not a safetensors file");
    CHECK(problem("PK\3\4") == "is only 4 bytes long; not a safetensors file, or truncated");
    const std::string not_one = "is not a safetensors file: it does not begin with a header of a sensible size";
    CHECK(problem("Ein Text, der kein Modell ist.\n") == not_one);
    CHECK(problem(R"({"model": {"a": 1}, "words": ["x"]})") == not_one);
    CHECK(problem(std::string(100, '\0')) == not_one);
    CHECK(problem("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}") == not_one + " (it claims 18446744073709551615 bytes)");
    CHECK(problem(std::string("\1\0\0\0\0\0\0\0{}", 10)).starts_with("truncated"));
    CHECK(problem(std::string("\0\xE1\xF5\5\0\0\0\0{}", 10)) ==
          "truncated: the header should have 100000000 bytes; 2 follow its size");
}

TEST_CASE("invalid JSON and headers of another structure are rejected")
{
    CHECK(problem(file_of("{\"t\":")).starts_with("is damaged: the header is not valid JSON (at its byte "));
    CHECK(problem(file_of(good + "x", 16)).starts_with("is damaged: the header is not valid JSON"));
    CHECK(problem(file_of("{\"\xFF\":{}}")).starts_with("is damaged: the header is not valid JSON"));
    CHECK(problem(file_of("{\"t\":[1,2]}")) == "is damaged: tensor \"t\" has a list for its description");
    CHECK(problem(file_of("{\"t\":1}")) == "is damaged: tensor \"t\" has a number for its description");
    CHECK(problem(file_of("{\"__metadata__\":{\"a\":1}}")) == "is damaged: __metadata__ has a number for \"a\"");
    CHECK(problem(file_of("{\"__metadata__\":{\"a\":{}}}")) == "is damaged: __metadata__ has an object for \"a\"");
    CHECK(problem(file_of("{\"__metadata__\":[]}")) == "is damaged: __metadata__ has a list for its description");
    CHECK(problem(file_of("{\"t\":" + std::string(1'000'000, '[') + "}")) ==
          "is damaged: tensor \"t\" has a list for its description");
    CHECK(problem(file_of("{\"t\":{\"a\":" + std::string(1'000'000, '{') + "}")) ==
          "is damaged: tensor \"t\" has the unknown key \"a\"");
}

TEST_CASE("duplicate names and keys are rejected")
{
    const std::string t = R"("t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
    CHECK(problem(file_of("{" + t + "," + t + "}", 8)) == "is damaged: tensor \"t\" appears twice");
    CHECK(problem(file_of(R"({"__metadata__":{},"__metadata__":{}})")) == "is damaged: __metadata__ appears twice");
    CHECK(problem(file_of(R"({"__metadata__":{"a":"1","a":"2"}})")) ==
          "is damaged: __metadata__ has the key \"a\" twice");
    CHECK(problem_of_tensor(R"({"dtype":"F32","dtype":"F64","shape":[2],"data_offsets":[0,16]})") ==
          "is damaged: tensor \"t\" has the key \"dtype\" twice");
}

TEST_CASE("a description with wrong types or missing parts is rejected")
{
    const std::string damaged = "is damaged: tensor \"t\" ";
    const std::string parts = damaged + "must have \"dtype\", \"shape\" and \"data_offsets\"";
    CHECK(problem_of_tensor("{}") == parts);
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":[4]})") == parts);
    CHECK(problem_of_tensor(R"({"dtype":4,"shape":[4],"data_offsets":[0,16]})") ==
          damaged + "has a number for \"dtype\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":4,"data_offsets":[0,16]})") ==
          damaged + "has a number for \"shape\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":"4","data_offsets":[0,16]})") ==
          damaged + "has a string for \"shape\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":["4"],"data_offsets":[0,16]})") ==
          damaged + "has a string for \"shape\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":[[4]],"data_offsets":[0,16]})") ==
          damaged + "has a list for \"shape\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})") ==
          damaged + "has a negative number for \"shape\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":[4.0],"data_offsets":[0,16]})") ==
          damaged + "has a number that is not an integer for \"shape\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,16]})") ==
          damaged + "has a number that is not an integer for \"shape\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":[null],"data_offsets":[0,16]})") ==
          damaged + "has null for \"shape\"");
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":true,"data_offsets":[0,16]})") ==
          damaged + "has true or false for \"shape\"");
    std::string ones = "1";
    for (int i = 0; i < 40; ++i) ones += ",1";
    CHECK(problem_of_tensor(R"({"dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[0,16]})") ==
          damaged + "has a list of more than 32 numbers");
}

TEST_CASE("ranges that contradict the shape, each other or the file are rejected")
{
    const auto tensor = [](const std::string& name, const std::string& shape, const std::string& range) {
        return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[" + range + "]}";
    };
    const auto said = [&](const std::string& first, const std::string& second = "", std::size_t data = 16) {
        return problem(file_of("{" + first + (second.empty() ? "" : "," + second) + "}", data));
    };
    CHECK(said(tensor("t", "3", "0,16")) ==
          "tensor \"t\" [3] of F32 takes 12 bytes but its data_offsets [0,16] span 16");
    CHECK(said(tensor("t", "4", "16,0")) == "tensor \"t\" has data_offsets [16,0]; they must be [begin,end]");
    CHECK(said(tensor("t", "4", "16")) == "tensor \"t\" has data_offsets [16]; they must be [begin,end]");
    CHECK(said(tensor("t", "4", "0,8,16")) == "tensor \"t\" has data_offsets [0,8,16]; they must be [begin,end]");
    CHECK(said(tensor("t", "5", "0,20")) ==
          "truncated: the header promises 20 bytes of data, the file has 16; it was not copied or saved completely");
    CHECK(said(tensor("t", "4", "0,16"), tensor("u", "2", "8,16")) ==
          "tensor \"u\" begins at byte 8, inside the tensor before it, which ends at 16");
    CHECK(said(tensor("t", "4", "0,16"), tensor("u", "4", "0,16")).find("inside the tensor before it") !=
          std::string::npos);
    CHECK(said(tensor("t", "1", "0,4"), tensor("u", "2", "8,16")) ==
          "tensor \"u\" begins at byte 8 but the one before it ends at 4");
    CHECK(said(tensor("t", "3", "4,16")) == "tensor \"t\" begins at byte 4 but the one before it ends at 0");
    CHECK(said(tensor("t", "3", "0,12")) == "4 bytes after the last tensor: the header accounts for 12 of 16 bytes");
    CHECK(said(tensor("t", "4", "0,16"), tensor("u", "0", "99,99")) ==
          "tensor \"u\" begins at byte 99 but the one before it ends at 16");
    CHECK(said(tensor("t", "4", "0,16"), tensor("u", "0,7", "16,16")) == "no error");
    CHECK(said(tensor("t", "4", "0,16"), tensor("u", "0,7", "0,0")) == "no error");
}

namespace {

constexpr std::size_t countable = std::numeric_limits<std::size_t>::max();
const std::string side = std::to_string(std::size_t{1} << (4 * sizeof(std::size_t)));  // its square overflows

}  // namespace

TEST_CASE("sizes that overflow are rejected")
{
    const std::string few = std::to_string(countable / 4), many = std::to_string(countable / 4 + 2),
                      bytes = std::to_string(countable / 4 * 4);
    const auto with = [](const std::string& shape, const std::string& end) {
        return problem_of_tensor(R"({"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,)" + end + "]}");
    };
    CHECK(with(many, "4") == "tensor \"t\" has shape [" + many + "], more bytes than a file can have");
    CHECK(with(side + "," + side, "0") ==
          "tensor \"t\" has shape [" + side + "," + side + "], more bytes than a file can have");
    // An empty tensor needs no bytes, but its strides are products of the other extents.
    CHECK(with(side + "," + side + ",0", "0") ==
          "tensor \"t\" has shape [" + side + "," + side + ",0], more bytes than a file can have");
    const std::string shorter = std::to_string((std::size_t{1} << (4 * sizeof(std::size_t))) / 16);
    CHECK(with(side + "," + shorter + ",0", "0").find("16 bytes after the last tensor") == 0);
    CHECK(with(few, bytes).starts_with("truncated: the header promises " + bytes + " bytes"));
}

TEST_CASE("a tensor with an unsupported dtype is listed, and the other tensors are readable")
{
    const temporary_directory directory;
    const auto path = directory.write("file", file_of(R"({"odd":{"dtype":"F4","shape":[2,7],"data_offsets":[0,8]},)"
                                                      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})") +
                                                  "12345678" + std::string("\0\0\x80\x3f\0\0\0\x40", 8));
    const archive contents = load(path);
    CHECK(contents.at("a").values<float>() == std::vector<float>{1, 2});
    const tensor_entry& odd = contents.at("odd");
    CHECK(odd.dtype == "F4");
    CHECK(odd.size() == 14);
    CHECK(odd.bytes.text(0, odd.bytes.size()) == "12345678");
    CHECK_THROWS_WITH_AS(odd.values<float>(),
                         "tensor \"odd\" holds F4, which heed cannot read; convert it in the program that wrote it, "
                         "for example to F32",
                         heed::error);
    // Checks that do not depend on the dtype.
    CHECK(problem_of_tensor(R"({"dtype":"F4","shape":[4],"data_offsets":[0,15]})") ==
          "1 byte after the last tensor: the header accounts for 15 of 16 bytes");
    CHECK(problem_of_tensor(R"({"dtype":"F4","shape":[)" + side + "," + side + R"(],"data_offsets":[0,16]})") ==
          "tensor \"t\" has shape [" + side + "," + side + "], more bytes than a file can have");
}

TEST_CASE("every type that heed reads survives a round trip")
{
    const temporary_directory directory;
    archive before;
    const auto add = [&]<class T>(const char* name, const std::vector<T>& values) {
        before.tensors.push_back(tensor_entry::of(name, {values.size()}, values));
    };
    add("bytes", std::vector<std::uint8_t>{0, 255, 7});
    add("small", std::vector<std::int8_t>{-128, 127});
    add("short", std::vector<std::int16_t>{-32768, 5});
    add("ushort", std::vector<std::uint16_t>{65535});
    add("int", std::vector<std::int32_t>{-2147483647, 9});
    add("uint", std::vector<std::uint32_t>{4294967295});
    add("ulong", std::vector<std::uint64_t>{18446744073709551615u});
    add("half", std::vector<float16>{float16(1.0F / 3), float16(-65504.0F)});
    add("bhalf", std::vector<heed::io::bfloat16>{heed::io::bfloat16(1.0F / 3)});
    const bool truths[] = {true, false, true};
    before.tensors.push_back(tensor_entry::of("bool", {3}, truths));
    save(directory.path() / "file", before);
    for (const storage how : {storage::mapped, storage::copied}) {
        const archive after = load(directory.path() / "file", how);
        for (const tensor_entry& each : before.tensors) CHECK(after.at(each.name) == each);
        // By descending size, so that every value is aligned to its size.
        for (std::size_t i = 1; i < after.tensors.size(); ++i) {
            CHECK(*dtype_size(after.tensors[i - 1].dtype) >= *dtype_size(after.tensors[i].dtype));
        }
        CHECK(after.at("bytes").values<std::int32_t>() == std::vector<std::int32_t>{0, 255, 7});
        CHECK(after.at("int").values<std::int64_t>() == std::vector<std::int64_t>{-2147483647, 9});
        CHECK(after.at("half").values<float>() == std::vector<float>{0x1.554p-2F, -65504.0F});
        CHECK(after.at("bhalf").values<double>() == std::vector<double>{0x1.56p-2});
        CHECK(after.at("bool").values<std::uint8_t>() == std::vector<std::uint8_t>{1, 0, 1});
        bool into[3] = {};
        after.at("bool").copy_to(std::span<bool>(into));
        CHECK((into[0] && !into[1] && into[2]));
    }
    const auto rounded = tensor_entry::of<heed::io::bfloat16>("x", {2}, std::vector<float>{1.0F / 3, 1e-45F});
    CHECK(rounded.dtype == "BF16");
    CHECK(rounded.values<float>() == std::vector<float>{0x1.56p-2F, 0.0F});
}

TEST_CASE("a mapped file may be replaced and removed while its numbers are in use")
{
    const temporary_directory directory;
    save(directory.path() / "file", small());
    const archive before = load(directory.path() / "file");
    archive other;
    other.tensors.push_back(tensor_entry::of("a", {2}, std::vector<float>{1, 2}));
    save(directory.path() / "file", other);
    std::filesystem::remove(directory.path() / "file");
    for (const tensor_entry& each : small().tensors) CHECK(before.at(each.name) == each);

    // The values outlive the archive.
    tensor_entry kept;
    {
        save(directory.path() / "file", small());
        kept = load(directory.path() / "file").at("moments");
    }
    CHECK(kept.values<double>() == std::vector<double>{0.1, -1e300});
}

TEST_CASE("unaligned numbers are read")
{
    const temporary_directory directory;
    const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} )";
    REQUIRE((8 + header.size()) % 4 != 0);
    const auto path = directory.write("file", file_of(header) + std::string("\0\0\x80\x3f\0\0\0\x40", 8));
    CHECK(load(path).at("a").values<float>() == std::vector<float>{1, 2});
    CHECK(load(path).at("a").values<double>() == std::vector<double>{1, 2});
}

TEST_CASE("files that cannot be opened are reported")
{
    const temporary_directory directory;
    const std::string here = directory.path().string();
    CHECK_THROWS_WITH_AS(load(here + "/none"), (here + "/none: cannot be opened: No such file or directory").c_str(),
                         heed::error);
    CHECK_THROWS_WITH_AS(load(here), (here + ": is a directory; a safetensors file is needed").c_str(), heed::error);
    CHECK_THROWS_AS(load("/dev/null"), heed::error);
}

TEST_CASE("an inconsistent archive is not saved, and the old file stays")
{
    const temporary_directory directory;
    const std::string path = directory.write("file", "old").string();
    const auto said = [&](const archive& contents) -> std::string {
        try {
            save(path, contents);
        } catch (const heed::error& caught) {
            CHECK(directory.read("file") == "old");
            CHECK(directory.files() == 1);
            return std::string(caught.what()).substr(path.size() + 2);
        }
        return "no error";
    };
    const tensor_entry one = tensor_entry::of("a", {1}, std::vector<float>{1});
    archive contents{{one, one}, {}};
    CHECK(said(contents) == "cannot be saved: two tensors are called \"a\"");
    contents = {{one}, {}};
    contents.tensors[0].shape = {2};
    CHECK(said(contents) == "cannot be saved: tensor \"a\" is [2] of F32 but has 4 bytes");
    contents = {{one}, {}};
    contents.tensors[0].dtype = "F4";
    CHECK(said(contents) ==
          "cannot be saved: tensor \"a\" has dtype \"F4\"; heed writes F64, F32, F16, BF16, I64, I32, "
          "I16, I8, U64, U32, U16, U8 and BOOL");
    contents = {{one}, {}};
    contents.tensors[0].name = "__metadata__";
    CHECK(said(contents) == "cannot be saved: a tensor cannot be called __metadata__");
    contents = {{one}, {{"key", "\xFF"}}};
    CHECK(said(contents) == "cannot be saved: a tensor's name or the metadata is not valid UTF-8");
}
