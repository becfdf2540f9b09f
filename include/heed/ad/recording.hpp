// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <mutex>

#include <heed/core/errors.hpp>

/// Which recording a variable belongs to.
///
/// A variable is a handle into the memory of a tape, valid until the tape is cleared. So that a variable kept longer is
/// an error and not a crash, each recording has a number, and a variable remembers the number of its own: every use of
/// the variable compares the two. The number lies beside the tape, in a place that is never freed: when a tape dies,
/// its place goes to the next tape that is made, and the numbers go on. A program has as many places as it has had
/// tapes at one time.
namespace heed::ad {

namespace detail {

/// The place of a tape's number.
struct recording {
    std::uint64_t number = 1;  // of the present recording; no number comes twice
    std::uint64_t first = 1;   // the first number of the tape that has this place
    void* tape = nullptr;
    recording* next = nullptr;  // of the places without a tape
};

/// The place of variables that belong to no tape, whose number is 0.
inline recording no_recording;

/// All places without a tape.
struct free_recordings {
    std::mutex guard;
    recording* first = nullptr;

    /// Never destroyed: a tape may be destroyed after everything else.
    static free_recordings& all()
    {
        static auto& them = *new free_recordings;
        return them;
    }
};

inline recording& take_recording(void* tape)
{
    free_recordings& all = free_recordings::all();
    const std::lock_guard lock(all.guard);
    recording* const at = all.first != nullptr ? all.first : new recording;
    all.first = at->next;
    at->tape = tape;
    at->first = at->number;
    return *at;
}

/// The recording is over: its variables are those of none any more.
inline void end_recording(recording& at) { ++at.number; }

inline void give_back(recording& at) noexcept
{
    free_recordings& all = free_recordings::all();
    const std::lock_guard lock(all.guard);
    at.tape = nullptr;
    at.first = at.number;
    at.next = all.first;
    all.first = &at;
}

/// A variable is used that belongs to none, to a recording that is over, or to a tape that is gone.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_variable(const recording& at, std::uint64_t number)
{
    if (number == 0)
        throw error("This variable is empty: it belongs to no tape; assign one of tape.parameter, "
                    "tape.constant or an operation first");
    if (number < at.first)
        throw error("This variable belongs to a tape that was destroyed: a tape must outlive its variables, and so "
                    "the model that was lifted onto it");
    throw error("This variable belongs to a recording that was cleared: lift the model again after tape.clear()");
}

/// A variable of one tape is used on another.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_other_tape()
{
    throw error("This variable belongs to another tape: all variables of an operation, its loss and its gradients are "
                "on one tape; lift the model onto that tape, or make the tensor a constant there by "
                "tape.constant(view_of(x))");
}

}  // namespace detail

/// Identifies a recording: equal only to that of the same recording, of all that a program makes.
class recording_id {
public:
    recording_id() = default;  // of none
    explicit recording_id(const detail::recording& at) : of_(&at), number_(at.number) {}

    bool operator==(const recording_id&) const = default;

private:
    const detail::recording* of_ = nullptr;
    std::uint64_t number_ = 0;
};

}  // namespace heed::ad
