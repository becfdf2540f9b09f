// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include <heed/core/arena.hpp>
#include <heed/core/diagnostics.hpp>
#include <heed/core/dual_number.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/core/tensor.hpp>

/// Reverse-mode differentiation.
///
/// A loss ℓ is computed by a chain of operations. Write ȳ for ∂ℓ/∂y, the *adjoint* of y. If y = f(a, b), then
///
///     ā += ȳ ∂f/∂a,   b̄ += ȳ ∂f/∂b
///
/// Adjoints accumulate, since a value that is read twice changes ℓ in two ways. With ℓ = (a b) + a, a = 2, b = 3:
///
///     ℓ̄ = 1
///     ℓ = y + a     ȳ += 1,  ā += 1                 ȳ = 1, ā = 1
///     y = a b       ā += ȳ b = 3,  b̄ += ȳ a = 2     ā = 4, b̄ = 2
///
/// **The tape.** Operations are recorded in execution order, each after all operations that it depends on. In reverse,
/// each precedes them, so its adjoint is complete: `backward` is one loop over the list, last entry first, without
/// recursion. An entry is a closure that holds its operation's arguments. All derivatives together cost two or three
/// times as much as ℓ.
///
/// **Memory.** A variable, `var`, is a handle to a `slot`, which points to its values and, once it has a gradient, to
/// its adjoint. Slots, values, adjoints and closures are in the tape's arena, which `clear()` keeps: after the first
/// steps nothing is allocated.
///
/// **Two shortcuts.** Nothing is recorded for a slot without a required derivative. Work on a *parameter*'s gradient
/// may be `deferred` until the backward pass has passed its first use, when all uses are known: one product instead of
/// one for each of fifty steps (ad/products.hpp), and sparse gradients of tables (ad/lookup.hpp).
namespace heed::inline HEED_TARGET::ad {

namespace detail {

/// The counter of a tape's recordings. A variable stores the number of its recording, and each use compares the two, so
/// that a stale variable is an error instead of a crash. Counters are never freed; when a tape is destroyed, the next
/// tape reuses its counter, and the numbers continue. A program has as many counters as its maximum number of
/// simultaneous tapes.
struct recording {
    std::uint64_t number = 1;  // of the current recording; numbers are never reused
    std::uint64_t first = 1;   // the first number of the tape that owns this counter
    void* tape = nullptr;
    recording* next = nullptr;  // in the list of counters without a tape
};

/// The counter of empty variables; their number is 0.
inline recording no_recording;

/// All counters without a tape. Never destroyed: a tape may be destroyed after all other objects.
struct free_recordings {
    std::mutex guard;
    recording* first = nullptr;
};
inline free_recordings& all_free_recordings()
{
    static auto& all = *new free_recordings;
    return all;
}

inline recording& take_recording(void* tape)
{
    free_recordings& all = all_free_recordings();
    const std::lock_guard lock(all.guard);
    recording* const at = all.first != nullptr ? all.first : new recording;
    all.first = at->next;
    at->tape = tape;
    return *at;
}

inline void give_back(recording& at) noexcept
{
    free_recordings& all = all_free_recordings();
    const std::lock_guard lock(all.guard);
    at.tape = nullptr;
    at.first = at.number;
    at.next = all.first;
    all.first = &at;
}

/// Reports the use of a variable that is empty, or whose recording was cleared, or whose tape was destroyed.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_variable(const recording& at, std::uint64_t number)
{
    if (number == 0)
        throw error("This variable is empty: it belongs to no tape; assign the result of "
                    "tape.parameter, tape.constant or an operation first");
    if (number < at.first)
        throw error("This variable belongs to a tape that was destroyed: a tape must outlive its variables, "
                    "including those of a lifted model");
    throw error("This variable belongs to a recording that was cleared: lift the model again after tape.clear()");
}

/// Reports the use of a variable on a different tape.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_other_tape()
{
    throw error(
        "This variable belongs to another tape: all variables of an operation, its loss and its gradients must be "
        "on one tape; lift the model onto that tape, or make the tensor a constant there by "
        "tape.constant(view_of(x))");
}

}  // namespace detail

/// Identifies a recording: equal only to the id of the same recording, within the program.
class recording_id {
public:
    recording_id() = default;  // of no recording
    explicit recording_id(const detail::recording& at) : of_(&at), number_(at.number) {}

    bool operator==(const recording_id&) const = default;

private:
    const detail::recording* of_ = nullptr;
    std::uint64_t number_ = 0;
};

template <class T>
class tape;
template <class T>
struct slot;
template <class T>
class saved_results;

/// Work on a parameter's gradient that is deferred until all its uses are known; identified by its `on_final`.
template <class T>
struct deferred {
    using work = void (*)(tape<T>&, slot<T>&, deferred&);

    work on_final = nullptr;     // does the work, as the last step for the parameter
    work materialize = nullptr;  // afterwards: makes the gradient dense
    deferred* next = nullptr;
};

/// The value of a variable, and its adjoint.
template <class T>
struct slot {
    const T* value = nullptr;
    T* adjoint = nullptr;
    std::size_t size = 0;
    bool wanted = false;   // is the gradient of this value required?
    bool leaf = false;     // a parameter
    bool used = false;     // a parameter that an operation has read
    bool final = false;    // a parameter whose adjoint is complete
    bool aliased = false;  // deferred work will still read this adjoint: others add to a copy

    slot* whole = nullptr;  // this value is a slice of another one and shares its memory
    std::size_t offset = 0;

    deferred<T>* waiting = nullptr;
};

/// A tensor on a tape: a cheap handle, copied freely, valid until the tape is cleared or destroyed. Any later use
/// throws heed::error (recording_id), except for reading its shape.
template <class T, std::size_t N>
class var : public heed::detail::not_of_xtensor::words {
public:
    var() = default;
    var(ad::tape<T>& on, ad::slot<T>& at, const shape_of_rank<N>& shape)
        : of_(on.place_), slot_(&at), number_(on.place_->number), shape_(shape)
    {}

    ad::tape<T>& tape() const
    {
        check();
        return *static_cast<ad::tape<T>*>(of_->tape);
    }
    ad::slot<T>& slot() const  // holds the value and its adjoint
    {
        check();
        return *slot_;
    }
    const shape_of_rank<N>& shape() const { return shape_; }
    tensor_view<const T, N> value() const { return {slot().value, shape_}; }
    tensor_view<const T, N> view() const { return value(); }  // same as view_of, valid until the tape is cleared
    const T* data() const { return slot().value; }
    std::size_t size() const { return slot().size; }
    /// Is the gradient of this value required? Each operation calls this for its variables before it is recorded: it
    /// tells the tape where a parameter is first used.
    bool wanted() const
    {
        check();
        if (slot_->leaf && !slot_->used) static_cast<ad::tape<T>*>(of_->tape)->first_use(*slot_);
        return slot_->wanted;
    }

private:
    friend class ad::tape<T>;

    void check() const
    {
        if (of_->number != number_) [[unlikely]]
            detail::refuse_variable(*of_, number_);
    }

    detail::recording* of_ = &detail::no_recording;
    ad::slot<T>* slot_ = nullptr;
    std::uint64_t number_ = 0;  // of the recording
    shape_of_rank<N> shape_{};
};

/// `parameter` and `constant` make variables, operations on them record entries, and `backward(loss)` processes the
/// entries in reverse. A tape serves one thread at a time, cannot be moved, and must outlive its variables. Using a
/// variable of another tape, or of a cleared recording, throws heed::error.
template <class T>
class tape {
public:
    tape() = default;
    tape(const tape&) = delete;
    tape& operator=(const tape&) = delete;
    ~tape()
    {
        forget();
        detail::give_back(*place_);
    }

    /// A parameter: refers to the caller's memory, which must outlive the tape's use of it. No copy.
    template <plain_tensor X>
    var<T, rank_of<X>> parameter(const X& x)
    {
        static_assert(std::is_same_v<element_of<X>, T>, HEED_SAYS_TAPE_OF_OTHERS);
        if constexpr (std::is_same_v<element_of<X>, T>) {
            auto made = external<rank_of<X>>(view_of(x), nullptr);
            made.slot().wanted = made.slot().leaf = true;
            leaves_.push_back(&made.slot());
            return made;
        } else {
            return {};
        }
    }
    template <plain_tensor X>
        requires(!std::is_trivially_destructible_v<X>)
    var<T, rank_of<X>> parameter(const X&& x)
    = delete;

    /// A value that needs no gradient; copied, so that it cannot dangle. A tape of dual numbers also takes plain ones.
    template <plain_tensor X>
    var<T, rank_of<X>> constant(const X& x)
    {
        if constexpr (std::is_same_v<element_of<X>, plain_number<T>> || std::is_same_v<element_of<X>, T>) {
            const auto made = make(shape_of(x), false);
            std::copy_n(view_of(x).data, made.result.size(), made.data);
            return made.result;
        } else {
            return parameter(x);  // rejected
        }
    }

    /// A value in the caller's memory, which must outlive the recording. Its derivative is added to `adjoint`, also in
    /// the caller's memory; if that is null, nothing is recorded for it.
    template <std::size_t N>
    var<T, N> external(tensor_view<const T, N> values, T* adjoint)
    {
        slot<T>& s = new_slot(values.data, values.size());
        s.wanted = adjoint != nullptr;
        s.adjoint = adjoint;
        return {*this, s, values.shape};
    }

    /// A new value and the memory to write it to: `data`, which must outlive the recording, or the tape's memory.
    template <std::size_t N>
    struct fresh {
        var<T, N> result;
        T* data;
    };
    template <std::size_t N>
    fresh<N> make(const shape_of_rank<N>& shape, bool wanted, T* data = nullptr)
    {
        const std::size_t size = tensor_view<const T, N>{nullptr, shape}.size();
        if (data == nullptr) data = memory_.template array_of<T>(size);
        slot<T>& s = new_slot(data, size);
        s.wanted = wanted;
        return {{*this, s, shape}, data};
    }

    /// A slice of another value, without a copy: it reads the whole's memory and adds to the whole's adjoint.
    template <std::size_t N, std::size_t M>
    var<T, N> piece(const var<T, M>& whole, std::size_t offset, const shape_of_rank<N>& shape)
    {
        const std::size_t size = tensor_view<const T, N>{nullptr, shape}.size();
        slot<T>& of = mine(whole);
        slot<T>& s = new_slot(of.value + offset, size);
        s.wanted = whole.wanted();
        s.whole = &of;
        s.offset = offset;
        return {*this, s, shape};
    }

    /// Records the backward of the operation that made y: back(∂y), called if y has a gradient.
    template <std::size_t N, class Back>
    void record(const var<T, N>& y, const Back& back)
    {
        slot<T>& s = mine(y);
        if (!y.wanted()) return;
        push(&s, run_from<Back>, back);
    }

    /// Records the backward of an operation with several results: `back()` calls `reached` for them. Only if a
    /// derivative is required.
    template <class Back>
    void record(const Back& back)
    {
        push(nullptr, run_always<Back>, back);
    }

    /// The adjoint of a slot, set to zero on first use.
    T* adjoint(slot<T>& s)
    {
        if (s.aliased) {
            s.adjoint = keep(s.adjoint, s.size);
            s.aliased = false;
        }
        if (s.adjoint == nullptr) {
            if (s.whole != nullptr) {
                s.adjoint = adjoint(*s.whole) + s.offset;
            } else {
                s.adjoint = memory_.template array_of<T>(s.size);
                std::fill_n(s.adjoint, s.size, T(0));
            }
        }
        return s.adjoint;
    }
    template <std::size_t N>
    T* adjoint(const var<T, N>& x)
    {
        slot<T>& s = mine(x);
        has_gradients_ = true;  // the caller writes the gradients
        return adjoint(s);
    }

    /// The adjoint if x requires a gradient, else nullptr.
    template <std::size_t N>
    T* wanted_adjoint(const var<T, N>& x)
    {
        slot<T>& s = mine(x);
        check_open(s);
        return x.wanted() ? adjoint(s) : nullptr;
    }

    /// The adjoint if it has a gradient, else nullptr: the operation has nothing to do.
    const T* reached(slot<T>& s)
    {
        if (s.adjoint == nullptr && s.whole != nullptr && s.whole->adjoint != nullptr) return adjoint(s);
        return s.adjoint;
    }
    template <std::size_t N>
    const T* reached(const var<T, N>& x)
    {
        return reached(mine(x));
    }

    /// Where an operation writes or adds the whole adjoint of a value.
    struct target {
        T* data;
        T beta;  // 0: sets fresh memory, without zeroing it first; 1: adds
    };
    /// The target for this slot.
    target accumulate(slot<T>& s)
    {
        if (s.adjoint == nullptr && s.whole == nullptr) {
            s.adjoint = memory_.template array_of<T>(s.size);
            return {s.adjoint, T(0)};
        }
        return {adjoint(s), T(1)};
    }

    /// The deferred work of kind D on a parameter; constructed from D(arguments...) on first use.
    template <class D, class... Arguments>
    D& defer(slot<T>& s, const Arguments&... arguments)
    {
        check_open(s);
        if (D* const there = find_deferred<D>(s)) return *there;
        D& made = *new (memory_.allocate(sizeof(D))) D(arguments...);
        made.on_final = &D::flush;
        made.next = s.waiting;
        s.waiting = &made;
        return made;
    }
    /// The deferred work of kind D on a parameter, or nullptr.
    template <class D>
    static D* find_deferred(slot<T>& s)
    {
        for (deferred<T>* d = s.waiting; d != nullptr; d = d->next) {
            if (d->on_final == &D::flush) return static_cast<D*>(d);
        }
        return nullptr;
    }

    /// ∂loss/∂(every value that requires it). Once per recording: throws heed::error the second time.
    void backward(const var<T, 0>& loss)
    {
        slot<T>& s = mine(loss);
        if (gone_back_) {
            throw error(
                "ad::tape::backward: backward was already called on this recording, and a second call would add the "
                "same gradients again; call tape.clear() before each step, or add the losses and call backward once");
        }
        gone_back_ = true;
        adjoint(s)[0] = T(1);
        go_back();
    }
    /// Rejects arguments that are not a scalar variable.
    template <class X>
    void backward(const X&)
    {
        static_assert(sizeof(X) == 0,
                      "heed: backward takes a scalar loss, a variable of rank 0 of this tape: sum a tensor "
                      "first, by `ops::dot(y, c)` with a weight c for each element (1/n for the mean), by a loss such "
                      "as `ops::mean_squared_error`, or by `ops::sum_last` once for each axis");
    }

    /// Runs backward from adjoints that the caller has set.
    void go_back()
    {
        going_back_ = has_gradients_ = true;
        for (std::size_t i = entries_.size(); i-- > 0;) {
            const entry e = entries_[i];
            e.back(*this, e.of, e.closure);
            if (between_ != nullptr) between_(of_between_);
        }
        for (slot<T>* s : leaves_) {
            if (!s->final) flush(*this, s, nullptr);
        }
        going_back_ = false;
    }

    /// Are there gradients to read: has backward or go_back run, or did the caller set gradients?
    bool has_gradients() const { return has_gradients_; }
    /// Marks gradients as present without running backward here: those of other recordings, or of other processes.
    void gradients_given() { has_gradients_ = true; }
    /// Throws heed::error, which starts with `reader`, if there are no gradients to read.
    void require_gradients(const char* reader) const
    {
        if (!has_gradients_) {
            throw error(std::string(reader) +
                        ": there are no gradients on this tape yet; call tape.backward(loss) first, after recording "
                        "the loss and before tape.clear()");
        }
    }
    /// Identifies this recording; clear() starts a new one.
    recording_id recording() const { return recording_id(*place_); }

    /// Called by var::wanted() when a parameter is about to be read for the first time.
    void first_use(slot<T>& s)
    {
        if (going_back_) return;
        s.used = true;
        // Before the entry of the operation that reads it, so it runs after that entry in the backward pass.
        entries_.push_back({&flush, &s, nullptr});
    }

    /// In the backward pass, calls f(of, slot) for each parameter as soon as its gradient is complete; nullptr:
    /// disables.
    void when_final(void (*f)(void* of, slot<T>&), void* of)
    {
        final_ = f;
        of_final_ = of;
    }

    /// In the backward pass, calls f(of) between operations; nullptr: disables.
    void meanwhile(void (*f)(void* of), void* of)
    {
        between_ = f;
        of_between_ = of;
    }

    /// ∂loss/∂x after backward. Zeros if the loss does not depend on x. Throws heed::error before backward.
    template <std::size_t N>
    tensor_view<const T, N> gradient(const var<T, N>& x)
    {
        slot<T>& s = mine(x);
        require_gradients("ad::tape::gradient");
        if (s.adjoint == nullptr) {
            for (deferred<T>* d = s.waiting; d != nullptr; d = d->next) {
                if (d->materialize != nullptr) d->materialize(*this, s, *d);
            }
        }
        return {adjoint(s), x.shape()};
    }

    /// Ends the recording and keeps the memory. Every variable becomes invalid: its use throws.
    void clear()
    {
        forget();
        memory_.clear();
    }

    /// Operations recorded since the tape was cleared.
    std::size_t entries() const { return entries_.size(); }
    /// The memory of values and adjoints.
    arena& memory() { return memory_; }
    const arena& memory() const { return memory_; }

    /// Where operations save results for their recomputation, see ad/saved_results.hpp; usually null.
    saved_results<T>* recompute_cache() const { return recompute_cache_; }
    void recompute_with(saved_results<T>* results) { recompute_cache_ = results; }  // nullptr: not saved

    /// A copy of plain data that lives as long as the recording.
    template <class U>
    U* keep(const U* data, std::size_t count)
    {
        U* const to = memory_.template array_of<U>(count);
        std::copy_n(data, count, to);
        return to;
    }

    /// The slot of x on this tape. Throws heed::error if x is on another one, or its recording was cleared.
    template <std::size_t N>
    slot<T>& mine(const var<T, N>& x) const
    {
        x.check();
        if (x.of_ != place_) [[unlikely]]
            detail::refuse_other_tape();
        return *x.slot_;
    }

private:
    template <class, std::size_t>
    friend class var;

    struct entry {
        void (*back)(tape&, slot<T>*, void*);
        slot<T>* of;
        void* closure;
    };
    struct ending {
        void (*destroy)(void*);
        void* closure;
    };

    // Functions instead of lambdas: a lambda compiles to two more functions for each operation.
    template <class Back>
    static void run_from(tape& on, slot<T>* made, void* closure)
    {
        if (const T* d_y = on.reached(*made)) (*static_cast<Back*>(closure))(d_y);
    }
    template <class Back>
    static void run_always(tape&, slot<T>*, void* closure)
    {
        (*static_cast<Back*>(closure))();
    }

    template <class Back>
    void push(slot<T>* of, void (*back)(tape&, slot<T>*, void*), const Back& closure)
    {
        void* const kept = new (memory_.allocate(sizeof(Back))) Back(closure);
        entries_.push_back({back, of, kept});
        if constexpr (!std::is_trivially_destructible_v<Back>) {
            endings_.push_back({[](void* old) { static_cast<Back*>(old)->~Back(); }, kept});
        }
    }

    void forget()
    {
        for (const ending& e : endings_) e.destroy(e.closure);
        endings_.clear();
        entries_.clear();
        leaves_.clear();
        gone_back_ = going_back_ = has_gradients_ = false;
        ++place_->number;  // invalidates its variables
    }

    slot<T>& new_slot(const T* value, std::size_t size)
    {
        return *new (memory_.allocate(sizeof(slot<T>))) slot<T>{.value = value, .size = size};
    }

    /// Throws heed::error if something is added to a gradient after it was final.
    void check_open(const slot<T>& s) const
    {
        if (s.final && going_back_) {
            throw error(
                "ad::tape: a gradient is added to a parameter after its first use; an operation must call wanted() for "
                "each of its variables before it is recorded");
        }
    }

    /// The last step for a parameter in the backward pass.
    static void flush(tape& self, slot<T>* s, void*)
    {
        for (deferred<T>* d = s->waiting; d != nullptr; d = d->next) d->on_final(self, *s, *d);
        // If the adjoint is dense, sparse terms are added to it.
        for (deferred<T>* d = s->adjoint == nullptr ? nullptr : s->waiting; d != nullptr; d = d->next) {
            if (d->materialize != nullptr) d->materialize(self, *s, *d);
        }
        s->final = true;
        if (self.final_ != nullptr) self.final_(self.of_final_, *s);
    }

    detail::recording* place_ = &detail::take_recording(this);
    saved_results<T>* recompute_cache_ = nullptr;
    void (*final_)(void*, slot<T>&) = nullptr;
    void* of_final_ = nullptr;
    void (*between_)(void*) = nullptr;
    void* of_between_ = nullptr;
    arena memory_;
    std::vector<entry> entries_;
    std::vector<ending> endings_;
    std::vector<slot<T>*> leaves_;
    bool gone_back_ = false;
    bool going_back_ = false;
    bool has_gradients_ = false;
};

struct taped_family;

using heed::shape_of;  // found for a variable in any namespace
using heed::view_of;

}  // namespace heed::inline HEED_TARGET::ad

template <class T, std::size_t N>
struct heed::tensor_traits<heed::ad::var<T, N>> {
    using element = T;
    using family = ad::taped_family;
    static constexpr std::size_t rank = N;
};
