// SPDX-License-Identifier: BSD-3-Clause
#include <stdexcept>
#include <tuple>
#include <utility>

#include <heed/heads/multi_head.hpp>
#include <heed/score/modified.hpp>
#include <products/heads.hpp>
#include <products/policies.hpp>

namespace composition {

namespace {

/// The queries, keys and values as a mechanism takes them, and its contexts as [B,.] or [B,S,.].
template <bool projected>
struct layout {
    static auto heads_of(const auto& x, std::size_t n)
    {
        if constexpr (projected) {
            return heed::split_heads(x, n).apart();
        } else {
            return x;
        }
    }
    static auto query_of(const auto& x, std::size_t n, std::size_t s)
    {
        const auto one = heed::ops::step_of(x, s);
        if constexpr (projected) {
            const auto [B, N] = heed::shape_of(one);
            return heed::ops::reshaped(one, heed::shape_of_rank<3>{B, n, N / n});
        } else {
            return one;
        }
    }
    static auto contexts_of(const auto& x)
    {
        if constexpr (projected) {
            return heed::join_heads(x);
        } else {
            return x;
        }
    }
};

constexpr auto near_the_query = [](heed::score_index p) { return p.key <= p.query + p.head; };

/// Calls f(mask) with the mask of a step, or of all queries if `all`; its kind must be in the set `kinds`.
template <bool all, unsigned kinds>
void under(const masks_of_heads& masks, std::size_t s, const auto& f)
{
    using enum mask_kind;
    if (!compiled_ways::among(kinds, masks.kind)) throw std::logic_error("a mask that is not compiled");
    switch (masks.kind) {
    case boolean:
        if constexpr (all && compiled_ways::among(kinds, boolean)) {
            return f(masks.visible);
        } else if constexpr (compiled_ways::among(kinds, boolean)) {
            const auto [B, n, one, T] = masks.visible.shape();
            heed::boolean_mask<3> of_step(heed::shape_of_rank<3>{B, n, T});
            for (std::size_t i = 0; i < B * n * T; ++i) of_step[i] = masks.visible[i];
            return f(of_step);
        }
        break;
    case additive:
        if constexpr (all && compiled_ways::among(kinds, additive)) {
            return f(heed::additive_mask{masks.added});
        } else if constexpr (compiled_ways::among(kinds, additive)) {
            const auto [B, n, S, T] = masks.added.shape();
            return f(heed::additive_mask{
                heed::ops::reshaped(heed::ops::slice(masks.added, 2, s, s + 1), heed::shape_of_rank<3>{B, n, T})});
        }
        break;
    case predicate:
        if constexpr (compiled_ways::among(kinds, predicate)) f(near_the_query);
        break;
    case causal:
        if constexpr (compiled_ways::among(kinds, causal)) f(heed::causal{});
        break;
    case none:
        f(heed::no_mask{});
    }
}

template <bool projected, class Make, compiled_ways compiled>
struct of_heads final : heads_product {
    using mechanism = std::invoke_result_t<const Make&, const extents&, std::size_t, std::size_t>;
    using form_of = layout<projected>;
    Make make;
    mechanism attend;

    of_heads(const Make& how, const extents& sizes, std::size_t heads, std::size_t groups)
        : make(how), attend(make(sizes, heads, groups))
    {
        form = projected ? "projected" : "multi_head";
        data.of = sizes;
        data.heads = heads;
        data.groups = groups;
        ways = compiled;
    }

    std::unique_ptr<heads_product> remade(const extents& sizes, std::size_t heads, std::size_t groups) const override
    {
        auto same = std::make_unique<of_heads>(make, sizes, heads, groups);
        same->score = score;
        same->normalizer = normalizer;
        same->shares_keys = shares_keys;
        fill_inputs(same->data, !projected);
        return same;
    }

    outcome steps(const masks_of_heads& masks) const override
    {
        outcome all;
        const recorder look{all};
        const auto memory = memory_of(attend, data.keys, data.values);
        auto state = attend.start(memory);
        for (std::size_t s = 0; s < data.of.steps; ++s) {
            under<false, compiled.steps>(masks, s, [&](const auto& mask) {
                auto [context, weights, next] =
                    attend.step(memory, form_of::query_of(data.queries, data.heads, s), state, mask);
                state = next;
                look(context);
                look(weights);
            });
        }
        return all;
    }

    numbers at_once(const masks_of_heads& masks) const override
    {
        outcome all;
        const auto memory = memory_of(attend, data.keys, data.values);
        under<true, compiled.at_once>(masks, 0, [&](const auto& mask) {
            recorder{all}(form_of::contexts_of(attend(memory, form_of::heads_of(data.queries, data.heads), mask)));
        });
        return all.front();
    }

    outcome in_segments(const std::vector<std::size_t>& lengths) const override
    {
        outcome all;
        const auto memory = memory_of(attend, data.keys, data.values);
        auto state = attend.start(memory);
        std::size_t first = 0;
        for (const std::size_t n : lengths) {
            auto some =
                attend.read_all(memory, form_of::heads_of(steps_between(data.queries, first, n), data.heads), state);
            recorder{all}(form_of::contexts_of(some.contexts));
            state = some.state;
            first += n;
        }
        return all;
    }

    outcome growing(const std::vector<std::size_t>& positions) const override
    {
        const auto part = [&](const auto& x, std::size_t first, std::size_t last) {
            return form_of::heads_of(steps_between(x, first, last - first), data.groups);
        };
        return steps_growing<2>(
            attend, positions, data.of.positions,
            [&](std::size_t first, std::size_t last) {
                return std::tuple{part(data.keys, first, last), part(data.values, first, last),
                                  lengths_between(data.real, first, last)};
            },
            [&](std::size_t s) { return form_of::query_of(data.queries, data.heads, s); });
    }

    taped_outcome on_tape(const masks_of_heads& masks) const override
    {
        taped_outcome all;
        heed::ad::tape<double> on;
        std::vector<heed::ad::var<double, 0>> terms;
        const auto mechanism = heed::ad::lift(on, attend);
        const auto queries = on.parameter(data.queries), keys = on.parameter(data.keys),
                   values = on.parameter(data.values);
        const auto memory = memory_of(mechanism, keys, values);
        under<true, compiled.tape>(masks, 0, [&](const auto& mask) {
            taped_recorder{all.values, terms}(
                form_of::contexts_of(mechanism(memory, form_of::heads_of(queries, data.heads), mask)));
        });
        backward(on, terms);
        const collect_slopes collect{all.slopes, on};
        heed::transform_parameters(mechanism, collect);
        for (const auto& x : {queries, keys, values}) collect("", x);
        return all;
    }

    numbers at_once_in_float() const override
    {
        outcome all(1);
        if constexpr (compiled.in_float) {
            const heed::detail::verifying::converting_leaf<float> convert;
            const auto in_float = heed::transform_parameters(attend, convert);
            const auto memory = memory_of(in_float, convert("", data.keys), convert("", data.values));
            all.clear();
            recorder{all}(
                form_of::contexts_of(in_float(memory, form_of::heads_of(convert("", data.queries), data.heads))));
        }
        return all.front();
    }

    std::vector<part> parts() override
    {
        std::vector<part> all;
        const collect_parts collect{all};
        heed::transform_parameters(attend, collect);
        collect("queries", data.queries);
        collect("keys", data.keys);
        collect("values", data.values);
        return all;
    }

    std::vector<setting> settings() override
    {
        std::vector<setting> all;
        auto& one = [&]() -> auto&
        {
            if constexpr (projected) {
                return attend;
            } else {
                return attend.heads[0];
            }
        }
        ();
        collect_settings(all, one.score, "score.");
        collect_settings(all, one.normalize, "normalize.");
        return all;
    }

private:
    auto memory_of(const auto& mechanism, const auto& keys, const auto& values) const
    {
        return mechanism.on(form_of::heads_of(keys, data.groups), form_of::heads_of(values, data.groups), data.real);
    }
};

using list = std::vector<std::unique_ptr<heads_product>>;

template <bool projected, compiled_ways compiled, class Make>
void add_heads(list& to, const char* score, const char* normalizer, bool shares_keys, const Make& make)
{
    auto one = std::make_unique<of_heads<projected, Make, compiled>>(make, extents{}, 1, 1);
    one->score = score;
    one->normalizer = normalizer;
    one->shares_keys = shares_keys;
    to.push_back(std::move(one));
}

/// A multi_head of n heads that `one(sizes)` returns.
auto several(const auto& one)
{
    return [one](const extents& of, std::size_t n, std::size_t groups) {
        const std::size_t d = of.width, V = of.hidden;
        return heed::multi_head{std::vector(n, one(of)), random({d, n * d}, 1), random({d, groups * d}, 2),
                                random({d, groups * V}, 3), random({n * V, d}, 4)};
    };
}

}  // namespace

const list& products_of_heads()
{
    using namespace heed;
    static const list all = [] {
        list to;
        using enum mask_kind;
        constexpr auto set = [](auto... kinds) { return ((1u << static_cast<unsigned>(kinds)) | ... | 1u); };
        constexpr unsigned all = set(boolean, additive, predicate, causal);
        const combine::weighted_sum sum;
        add_heads<false, compiled_ways{set(boolean), all, set(boolean, additive), true}>(
            to, "scaled_dot", "softmax", true, several([=](const extents&) {
                return attention{score::scaled_dot{}, normalize::softmax{}, sum};
            }));
        add_heads<false, compiled_ways{set(additive, predicate), set(boolean), set(), false}>(
            to, "additive", "temporal", false, several([=](const extents& of) {
                return attention{composition::additive(of), normalize::temporal{}, sum};
            }));
        add_heads<true, compiled_ways{set(), set(boolean), set(causal), false}>(
            to, "modified{dot, bias, f}", "softmax", true, [=](const extents&, std::size_t n, std::size_t) {
                const auto of_head = [](auto e, score_index p, const auto& bias) {
                    return e + bias(p.head, p.key - p.query + 3);
                };
                return attention{score::modified{score::dot{}, random({n, std::size_t{7}}, 5), of_head},
                                 normalize::softmax{}, sum};
            });
        add_heads<true, compiled_ways{set(boolean), set(boolean, additive, predicate), set(), false}>(
            to, "dot", "entmax15", true, [=](const extents&, std::size_t, std::size_t) {
                return attention{score::dot{}, normalize::entmax15{}, sum};
            });
        return to;
    }();
    return all;
}

}  // namespace composition
