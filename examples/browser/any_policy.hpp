// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <any>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <heed/attention.hpp>
#include <heed/score/over.hpp>

/// Scores, normalizers and combiners chosen at run time.
///
///     any_score<K>   any_normalizer<K>   any_combiner<K>          K: heed::weight_kind
///
/// Each wraps a policy in virtual functions and is itself a policy, so that one product per kind of weights is compiled
/// instead of thousands. They support only `attention::compose` on plain tensors of double, with a state_and_word as
/// the query, as required by the page. A step has the overhead of a few calls and allocations.
namespace browser {

using heed::weight_kind;

template <std::size_t N>
using numbers_of_rank = heed::array<double, N>;

using matrix = numbers_of_rank<2>;
using cube = numbers_of_rank<3>;

/// Scores and weights: [B,T], or [B,T,N] per dimension or group.
template <weight_kind K>
using weights_of_kind = numbers_of_rank<K == weight_kind::per_position ? 2 : 3>;

using query = heed::state_and_word<matrix, matrix>;
using memory = heed::memory<cube, cube>;
using now = heed::step_context<query, heed::detail::no_masks>;

/// The state of a type-erased policy. Rows are never selected: the page has only one sentence.
struct any_state {
    static constexpr bool holds_no_tensors = true;

    std::any of;

    any_state map(auto&&, const auto&...) const { return *this; }
};

/// The memory of a step as passed to a score.
struct shown_memory {
    const cube& values;
    const cube& keys;
    std::size_t batch, positions, width;
    heed::lengths_view real;
};

template <weight_kind K>
struct any_score {
    static constexpr heed::score_traits traits{.weights = K};

    struct interface {
        virtual ~interface() = default;
        virtual std::size_t groups() const = 0;
        virtual cube prepare(const cube& annotations) const = 0;
        virtual weights_of_kind<K> match(const query& asked, const cube& keys, const any_state& state) const = 0;
        virtual any_state start(const memory& source) const = 0;
        virtual any_state observe_memory(const any_state& state, const now& at, const shown_memory& source) const = 0;
        virtual any_state advance(const any_state& state, const weights_of_kind<K>& seen, const matrix& context,
                                  const now& at) const = 0;
    };

    template <class Score>
    struct holder final : interface {
        Score score;
        using state_type = decltype(heed::score::over::start(score, std::declval<const memory&>()));

        explicit holder(Score one) : score(std::move(one)) {}

        std::size_t groups() const override
        {
            if constexpr (K == weight_kind::per_group) {
                return score.groups();
            } else {
                return 0;
            }
        }
        cube prepare(const cube& annotations) const override { return heed::score::over::prepare(score, annotations); }
        weights_of_kind<K> match(const query& asked, const cube& keys, const any_state& state) const override
        {
            return heed::score::over::match(score, heed::score::over::project(score, asked), keys, held(state));
        }
        any_state start(const memory& source) const override
        {
            return {state_type(heed::score::over::start(score, source))};
        }
        any_state observe_memory(const any_state& state, const now& at, const shown_memory& source) const override
        {
            return {state_type(heed::score::over::observe_memory(score, held(state), at, source))};
        }
        any_state advance(const any_state& state, const weights_of_kind<K>& seen, const matrix& context,
                          const now& at) const override
        {
            return {state_type(heed::score::over::advance(score, state_type(held(state)), seen, context, at))};
        }

    private:
        static const state_type& held(const any_state& state) { return std::any_cast<const state_type&>(state.of); }
    };

    std::shared_ptr<const interface> of;

    std::size_t groups() const { return of->groups(); }
    cube prepare(const cube& annotations) const { return of->prepare(annotations); }
    const query& project(const query& asked) const { return asked; }
    weights_of_kind<K> match(const query& asked, const cube& keys, const any_state& state) const
    {
        return of->match(asked, keys, state);
    }
    weights_of_kind<K> operator()(const query& asked, const cube& keys, const any_state& state) const
    {
        return of->match(asked, keys, state);
    }
    any_state start(const memory& source) const { return of->start(source); }
    any_state observe_memory(const any_state& state, const now& at, const auto& source) const
    {
        return of->observe_memory(
            state, at, {source.values, source.keys, source.batch, source.positions, source.width, source.real});
    }
    any_state advance(const any_state& state, const weights_of_kind<K>& seen, const matrix& context,
                      const now& at) const
    {
        return of->advance(state, seen, context, at);
    }

    static auto parameters(auto& self, auto&&) { return any_score{self.of}; }
};

/// Score as an any_score.
template <class Score>
auto hidden_score(Score score)
{
    using any = any_score<Score::traits.weights>;
    return any{std::make_shared<typename any::template holder<Score>>(std::move(score))};
}

template <weight_kind K>
struct any_normalizer {
    using scores_type = weights_of_kind<K>;
    using blank_type = std::function<scores_type(double)>;

    struct interface {
        virtual ~interface() = default;
        virtual any_state start(const blank_type& blank) const = 0;
        virtual heed::weights_and_next<scores_type, any_state> weigh(const scores_type& scores, const any_state& state,
                                                                     const now& at) const = 0;
        virtual scores_type weights_for_combiner(const scores_type& weights, const now& at) const = 0;
    };

    template <class Normalize>
    struct holder final : interface {
        Normalize normalize;
        using state_type = decltype(heed::start_of(normalize, std::declval<const blank_type&>()));

        explicit holder(Normalize one) : normalize(std::move(one)) {}

        any_state start(const blank_type& blank) const override
        {
            return {state_type(heed::start_of(normalize, blank))};
        }
        heed::weights_and_next<scores_type, any_state> weigh(const scores_type& scores, const any_state& state,
                                                             const now& at) const override
        {
            auto both = heed::weigh_with_next(normalize, scores, std::any_cast<const state_type&>(state.of), at);
            return {std::move(both.weights), any_state{state_type(std::move(both.next))}};
        }
        scores_type weights_for_combiner(const scores_type& weights, const now& at) const override
        {
            return heed::combiner_weights(normalize, weights, at);
        }
    };

    std::shared_ptr<const interface> of;
    std::shared_ptr<scores_type> seen = std::make_shared<scores_type>();  // the scores of the last step, for the page

    any_state start(const auto& blank) const { return of->start(blank_type(blank)); }
    scores_type operator()(const scores_type& scores, const any_state& state, const now& at) const
    {
        return of->weigh(scores, state, at).weights;
    }
    any_state advance(const scores_type& scores, const scores_type&, const any_state& state, const now& at) const
    {
        return of->weigh(scores, state, at).next;
    }
    auto weigh_and_advance(const scores_type& scores, const any_state& state, const now& at) const
    {
        *seen = scores;
        return of->weigh(scores, state, at);
    }
    scores_type weights_for_combiner(const scores_type& weights, const now& at) const
    {
        return of->weights_for_combiner(weights, at);
    }

    static auto parameters(auto& self, auto&&) { return any_normalizer{self.of, self.seen}; }
};

template <weight_kind K, class Normalize>
any_normalizer<K> hidden_normalizer(Normalize normalize)
{
    return {std::make_shared<typename any_normalizer<K>::template holder<Normalize>>(std::move(normalize))};
}

template <weight_kind K>
struct any_combiner {
    static constexpr heed::combiner_traits traits{.weights = K};

    struct interface {
        virtual ~interface() = default;
        virtual matrix combine(const weights_of_kind<K>& given, const cube& values, const now& at) const = 0;
    };

    template <class Combine>
    struct holder final : interface {
        Combine combiner;

        explicit holder(Combine one) : combiner(std::move(one)) {}

        matrix combine(const weights_of_kind<K>& given, const cube& values, const now& at) const override
        {
            return heed::combined(combiner, given, values, at);
        }
    };

    std::shared_ptr<const interface> of;

    matrix operator()(const weights_of_kind<K>& given, const cube& values, const now& at) const
    {
        return of->combine(given, values, at);
    }

    static auto parameters(auto& self, auto&&) { return any_combiner{self.of}; }
};

template <class Combine>
auto hidden_combiner(Combine combine)
{
    using any = any_combiner<Combine::traits.weights>;
    return any{std::make_shared<typename any::template holder<Combine>>(std::move(combine))};
}

}  // namespace browser
