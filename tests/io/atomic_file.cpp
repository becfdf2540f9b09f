// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/atomic_file.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <string>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using heed::io::atomic_file;
using heed::io::write_file;

namespace {

/// Limits the size of every file of this process during its lifetime: write() fails as on a full disk.
class file_size_limit {
public:
    explicit file_size_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN))
    {
        ::getrlimit(RLIMIT_FSIZE, &old_);
        rlimit lower = old_;
        lower.rlim_cur = bytes;
        ::setrlimit(RLIMIT_FSIZE, &lower);
    }
    file_size_limit(const file_size_limit&) = delete;
    file_size_limit& operator=(const file_size_limit&) = delete;
    ~file_size_limit()
    {
        ::setrlimit(RLIMIT_FSIZE, &old_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    void (*handler_)(int);
    rlimit old_{};
};

/// A process that has written half of a file and lives until it is killed, as by kill -9.
class writer_elsewhere {
public:
    explicit writer_elsewhere(const std::filesystem::path& path)
    {
        int ready[2];
        REQUIRE(::pipe(ready) == 0);
        process_ = ::fork();
        if (process_ == 0) {
            atomic_file file(path);
            file.write("half of it");
            [[maybe_unused]] const auto told = ::write(ready[1], "x", 1);
            for (;;) ::pause();
        }
        char byte = 0;
        ::close(ready[1]);
        CHECK(::read(ready[0], &byte, 1) == 1);
        ::close(ready[0]);
    }
    writer_elsewhere(const writer_elsewhere&) = delete;
    writer_elsewhere& operator=(const writer_elsewhere&) = delete;
    ~writer_elsewhere() { kill(); }

    void kill()
    {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        process_ = 0;
    }

private:
    ::pid_t process_ = 0;
};

template <class Action>
std::string problem(Action&& action)
{
    try {
        action();
    } catch (const heed::error& caught) {
        return caught.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a new file is created, an old one is replaced")
{
    const temporary_directory directory;
    write_file(directory.path() / "file", "first");
    CHECK(directory.read("file") == "first");
    write_file(directory.path() / "file", "second, and longer");
    CHECK(directory.read("file") == "second, and longer");
    write_file(directory.path() / "file", "");
    CHECK(directory.read("file") == "");
    CHECK(directory.files() == 1);
}

TEST_CASE("the old file stays until commit, and without a commit no file is left")
{
    const temporary_directory directory;
    directory.write("file", "old");
    {
        atomic_file file(directory.path() / "file");
        file.write("new");
        CHECK(directory.read("file") == "old");
        CHECK(directory.files() == 2);
    }
    CHECK(directory.read("file") == "old");
    CHECK(directory.files() == 1);
}

TEST_CASE("two writers of one file do not mix")
{
    const temporary_directory directory;
    atomic_file one(directory.path() / "file"), two(directory.path() / "file");
    one.write("one");
    two.write("two");
    two.commit();
    CHECK(directory.read("file") == "two");
    one.commit();
    CHECK(directory.read("file") == "one");
    CHECK(directory.files() == 1);
    CHECK_THROWS_AS(one.write("more"), heed::error);
    CHECK_THROWS_AS(one.commit(), heed::error);
}

TEST_CASE("a full disk is reported and leaves the old file unchanged")
{
    const temporary_directory directory;
    const std::string name = directory.write("file", "old").string();
    const std::string much(100'000, 'x');
    std::string said;
    {
        const file_size_limit limit(5'000);
        said = problem([&] { write_file(name, much); });
    }
    CHECK(said == name + ": cannot write: File too large; the previous file is unchanged");
    CHECK(directory.read("file") == "old");
    CHECK(directory.files() == 1);
    write_file(name, much);
    CHECK(directory.read("file") == much);
}

TEST_CASE("a device that is always full is reported")
{
    if (!std::filesystem::exists("/dev/full")) return;
    const std::string said = problem([] { write_file("/dev/full", "anything"); });
    CHECK(said == "/dev/full: cannot write: No space left on device");
    CHECK(std::filesystem::is_character_file("/dev/full"));
}

TEST_CASE("a device is written to, not replaced")
{
    write_file("/dev/null", "anything");
    CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("a path that cannot be a file is rejected")
{
    const temporary_directory directory;
    const std::string here = directory.path().string();
    directory.write("file", "old");
    CHECK(problem([&] { write_file(here + "/none/file", "x"); }) ==
          here + "/none/file: cannot create a temporary file next to it: No such file or directory");
    CHECK(problem([&] { write_file(here + "/file/file", "x"); }) ==
          here + "/file/file: cannot create a temporary file next to it: Not a directory");
    CHECK(problem([&] { write_file(here, "x"); }) == here + ": cannot open for writing: Is a directory");
    CHECK(problem([&] { write_file("", "x"); }) == "cannot write to a file without a name: the path is empty");
    CHECK(directory.files() == 1);
}

TEST_CASE("if the target becomes a directory, the rename fails and the temporary is removed")
{
    const temporary_directory directory;
    const std::string name = (directory.path() / "file").string();
    atomic_file file(name);
    file.write("new");
    std::filesystem::create_directory(name);
    CHECK(problem([&] { file.commit(); }) ==
          name + ": cannot rename the temporary file to it: Is a directory; the previous file is unchanged");
    CHECK(directory.files() == 1);
}

TEST_CASE("permissions are kept, links are followed, long names work")
{
    const temporary_directory directory;
    const auto file = directory.write("file", "old");
    std::filesystem::permissions(file, std::filesystem::perms(0640));
    write_file(file, "new");
    CHECK(std::filesystem::status(file).permissions() == std::filesystem::perms(0640));

    std::filesystem::create_symlink("file", directory.path() / "link");
    write_file(directory.path() / "link", "through the link");
    CHECK(std::filesystem::is_symlink(directory.path() / "link"));
    CHECK(directory.read("file") == "through the link");

    const std::string longest(255, 'n');
    write_file(directory.path() / longest, "x");
    CHECK(directory.read(longest) == "x");
    CHECK(directory.files() == 3);
}

TEST_CASE("a link to a file that does not exist yet is followed")
{
    const temporary_directory directory;
    const auto& here = directory.path();
    std::filesystem::create_directory(here / "folder");
    std::filesystem::create_symlink("folder/second", here / "first");  // relative to each link's own folder
    std::filesystem::create_symlink("../third", here / "folder/second");
    std::filesystem::create_symlink(here / "folder/file", here / "third");
    write_file(here / "first", "through three links");
    CHECK(directory.read("folder/file") == "through three links");
    for (const char* link : {"first", "folder/second", "third"}) CHECK(std::filesystem::is_symlink(here / link));
    write_file(here / "first", "once more");
    CHECK(directory.read("folder/file") == "once more");
    CHECK(directory.files() == 3);

    std::filesystem::create_symlink("none/file", here / "astray");
    const std::string astray = (here / "astray").string(), end = (here / "none/file").string();
    CHECK(problem([&] { write_file(astray, "x"); }) ==
          astray + " (a link to " + end + "): cannot create a temporary file next to it: No such file or directory");
}

TEST_CASE("cyclic links are rejected")
{
    const temporary_directory directory;
    const std::string one = (directory.path() / "one").string();
    std::filesystem::create_symlink("two", one);
    std::filesystem::create_symlink("one", directory.path() / "two");
    CHECK(problem([&] { write_file(one, "x"); }) ==
          one + ": cannot follow its symbolic links: Too many levels of symbolic links");
    CHECK(std::filesystem::is_symlink(one));
    CHECK(directory.files() == 2);
}

TEST_CASE("the next writer of the same target removes a killed writer's leftover")
{
    const temporary_directory directory;
    const auto& here = directory.path();
    for (const char* target : {"file", "file.other"}) writer_elsewhere(here / target).kill();
    REQUIRE(directory.files() == 2);
    std::filesystem::create_symlink("file", here / "link");
    write_file(here / "link", "whole");
    CHECK(directory.read("file") == "whole");
    CHECK(directory.files() == 3);  // the file, the link and the other target's temporary
    write_file(here / "file.other", "whole");
    CHECK(directory.files() == 3);
}

TEST_CASE("a leftover is removed for any process number and any permissions")
{
    const temporary_directory directory;
    directory.write(".file.1-0.tmp", "of a process before");
    std::filesystem::permissions(directory.write("file", "old"), std::filesystem::perms(0400));
    writer_elsewhere(directory.path() / "file").kill();
    write_file(directory.path() / "file", "new");
    CHECK(directory.files() == 1);
}

TEST_CASE("a file that only looks like a leftover stays")
{
    const temporary_directory directory;
    const char* const names[] = {"file.1-0.tmp",   ".file.tmp",      ".file..tmp",       ".file.1-.tmp",
                                 ".file.-1.tmp",   ".file.12.tmp",   ".file.1-0.tmp.gz", ".file.a-0.tmp",
                                 ".file.1-0a.tmp", ".files.1-0.tmp", ".file.1-0-0.tmp",  ".file.1.1-0.tmp"};
    for (const char* name : names) directory.write(name, "mine");
    std::filesystem::create_directory(directory.path() / ".file.1-1.tmp");
    std::filesystem::create_symlink("file.1-0.tmp", directory.path() / ".file.1-2.tmp");
    write_file(directory.path() / "file", "x");
    CHECK(directory.files() == std::size(names) + 3);
}

TEST_CASE("a living writer's file is never removed, in this process or another")
{
    const temporary_directory directory;
    const auto file = directory.path() / "file";
    {
        const writer_elsewhere elsewhere(file);
        atomic_file here(file);
        here.write("here");
        write_file(file, "in between");
        CHECK(directory.files() == 3);
        here.commit();
        CHECK(directory.read("file") == "here");
        CHECK(directory.files() == 2);
    }
    write_file(file, "at last");
    CHECK(directory.files() == 1);
}

TEST_CASE("a file that must be new overwrites nothing")
{
    const temporary_directory directory;
    const std::string name = (directory.path() / "file").string();
    const auto write_new = [&](const char* text) {
        atomic_file file(name);
        file.write(text);
        file.commit(heed::io::existing::keep);
    };
    write_new("first");
    CHECK(directory.read("file") == "first");
    CHECK(problem([&] { write_new("second"); }) ==
          name + ": cannot rename the temporary file to it: File exists; the previous file is unchanged");
    CHECK(directory.read("file") == "first");
    CHECK(directory.files() == 1);
}
