#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

if (($# == 0)) || [[ $1 == -h || $1 == --help ]]; then
    cat <<'END'
usage: scripts/update_names.sh FILE...

Updates a program written for heed 0.2.0 in place: includes and heed's names become those of 0.3.0. The changelog has the
table. Keep a copy: identifiers of the program that equal an old name of heed may also be renamed.

For example: git ls-files '*.cpp' '*.hpp' | xargs scripts/update_names.sh
END
    (($# > 0)) || exit 2
    exit 0
fi
for file in "$@"; do
    [[ -f $file && -w $file ]] || { echo "update_names.sh: $file is not a writable file" >&2; exit 1; }
done

# The longest lines replace unambiguous names. Other lines check the context.
sed -E -i -f - -- "$@" <<'END'
# Headers.
s#<heed/attention/(at_once|in_blocks)\.#<heed/attention/execute/blocked.#
s#<heed/attention/in_order\.#<heed/attention/execute/tiled.#
s#<heed/attention/(step|tiled)\.#<heed/attention/execute/\1.#
s#<heed/attention/answer\.#<heed/attention/execute/one_query.#
s#<heed/attention/linear\.#<heed/ops/linear_attention.#
s#<heed/ad/kept_results\.#<heed/ad/saved_results.#
s#<heed/attention/drawn\.#<heed/masks/of_queries.#
s#<heed/attention/families\.#<heed/attention/state.#
s#<heed/attention/growing\.#<heed/attention/memory.#
s#<heed/attention/grown\.#<heed/attention/make_memory.#
s#<heed/attention/inner_product\.#<heed/policy/step_kernel.#
s#<heed/attention/normalize_hooks\.#<heed/policy/weigh.#
s#<heed/attention/on\.#<heed/attention/make_memory.#
s#<heed/attention/projection\.#<heed/ops/products.#
s#<heed/attention/streaming\.#<heed/attention/execute/linear.#
s#<heed/attention/(concepts|score_hooks|weigh)\.#<heed/policy/\1.#
s#<heed/attention/(hook_names|hooks)\.#<heed/policy/hooks.#
s#<heed/core/callback\.#<heed/core/function_ref.#
s#<heed/core/growing\.#<heed/core/cache_tensor.#
s#<heed/core/mistakes\.#<heed/core/diagnostics.#
s#<heed/core/several\.#<heed/core/mechanism_list.#
s#<heed/core/transient\.#<heed/core/workspace_tensor.#
s#<heed/gemm/own_gemm\.#<heed/gemm/gemm_kernel.#
s#<heed/io/file_bytes\.#<heed/io/mapped_file.#
s#<heed/io/smaller\.#<heed/io/quantize.#
s#<heed/kernels/tiles/attend\.#<heed/kernels/tiles/forward.#
s#<heed/kernels/tiles/changes\.#<heed/kernels/tiles/score_mod.#
s#<heed/kernels/tiles/distances\.#<heed/kernels/tiles/relative_comparison.#
s#<heed/kernels/tiles/pairs\.#<heed/kernels/tiles/comparisons.#
s#<heed/kernels/tiles/rules\.#<heed/kernels/tiles/normalizer_rules.#
s#<heed/kernels/top_words\.#<heed/kernels/top_k_words.#
s#<heed/normalize/connected\.#<heed/normalize/learned_temporal.#
s#<heed/normalize/fading_temporal\.#<heed/normalize/decayed_temporal.#
s#<heed/ops/number_losses\.#<heed/ops/regression_losses.#
s#<heed/ops/parts\.#<heed/ops/shape.#
s#<heed/ops/steps\.#<heed/ops/fused_steps.#
s#<heed/score/fading\.#<heed/score/gated_decay.#
s#<heed/score/with_neighbours\.#<heed/score/with_neighbors.#
s#<heed/seq2seq/embeds\.#<heed/seq2seq/embedding.#
s#<heed/simd/dual_lanes\.#<heed/simd/dual_pack.#
s#<heed/simd/lane_steps\.#<heed/simd/strided_index.#
s#<heed/simd/lanes\.#<heed/simd/pack.#
s#<heed/simd/place\.#<heed/simd/score_index.#
s#<heed/simd/registers_of_duals\.#<heed/simd/dual_registers.#
s#<heed/simd/sines\.#<heed/simd/trig.#
s#<heed/simd/tables\.#<heed/simd/lookup_table.#
s#<heed/train/accumulation\.#<heed/train/gradient_accumulation.#
s#<heed/train/optimiser\.#<heed/train/optimizer.#
s#<heed/train/rates\.#<heed/train/learning_rate.#
s#<heed/train/stored\.#<heed/train/optimizer_state.#
s#<heed_translator/claim\.#<heed_translator/expected_tensor.#
s#<heed_translator/uses\.#<heed_translator/option_support.#
# Masks and functions of a score's index.
s/\b(heed::)?place(( const)? ?&)/\1score_index\2/g
s/\bheed::place\b/heed::score_index/g
s/([(,] ?)(const )?place( [a-z]\w*)([,)])/\1\2score_index\3\4/g
s/(\(auto( \w+)?, ?)(const )?place\)/\1\3score_index)/g
s/(\[[^]]*\]\((const )?)place\)/\1score_index)/g
s/^( *(const )?)place (\w+;)/\1score_index \3/g
s/\b([a-z]\w*)\.here\b/\1.diagonal/g
s/\bseen_if\b/mask_mod/g
s/\bmask_of_places\b/predicate_mask/g
s/\bkey_range reach\(/key_range visible_range(/g
s/\bkey_range whole\(/key_range full_range(/g

# Policies: hooks, their arguments and states.
s/\bmatch_all\b/score_matrix/g
s/\bcombine_all\b/combine_matrix/g
s/\bfinish_all\b/finish_matrix/g
s/\bby_tiles\b/tile_rule/g
s/\bby_sums\b/linear_rule/g
s/\bin_kernels\b/kernel_tag/g
s/\bauto begin\((const (heed::tensor )?auto|auto)/auto init_state(\1/g
s/\bauto arrive\(/auto observe_query(/g
s/\bauto after\(/auto update_state(/g
s/\bauto recall\(const/auto observe_memory(const/g
s/\bauto follow\(const/auto continue_keys(const/g
s/\bauto thin\(/auto weights_for_combiner(/g
s/\bauto focus\(/auto window(/g
s/\b(auto|auto\&) inside\(/\1 inner_in_window(/g
s/\b(inner|base|policy|normalize)\.thin\(/\1.weights_for_combiner(/g
s/\b(inner|base|policy|normalize)\.focus\(/\1.window(/g
s/\b(inner|base|policy|normalize)\.inside\(/\1.inner_in_window(/g
s/\bover::another\b/over::score_adaptor/g
s/\bdetail::as_places\b/detail::as_predicate/g
s/\bover::recall\b/over::observe_memory/g
s/\bcheck_past\b/check_state/g
s/\bno_past\b/no_score_state/g
s/\bheed::moment\b/heed::step_context/g
s/\bplain_moment\b/plain_step_context/g
s/\ball_read\b/sequence_result/g
s/\bread_out\b/context_result/g
s/\bheed::attended\b/heed::step_result/g
s/\breturn attended\{/return step_result{/g

# Mechanisms.
s/\bfading_temporal\b/decayed_temporal/g
s/\bscore::fading\b/score::gated_decay/g
s/\breturn fading\{/return gated_decay{/g
s/\breturn connected\{/return learned_temporal{/g
s/\bheed::thinned\b/heed::combiner_weights/g
s/\.kept\b/.passed/g
s/\bhenry2020::normalised\b/henry2020::normalized/g
s/\b(normalize|sankaran2016)::connected\b/\1::learned_temporal/g
s/\bper_head::unchanged\b/per_head::identity/g
s/\bheads_a_value\b/heads_per_value/g
s/\bwith_neighbours\b/with_neighbors/g
s/\brenormalise\b/renormalize/g

# Operations.
s/\bops::hide\b/ops::masked_fill/g
s/\bclear_hidden\b/zero_masked/g
s/\bops::discount\b/ops::subtract_history/g
s/\bops::faded\b/ops::decay_history/g
s/\blinear_onto\b/addmm/g
s/\bdot_all\b/bmm_nt/g
s/\bops::weighted_sums\b/ops::bmm/g
s/\bops::inner\b/ops::dot/g
s/\b(add|assign|dot|match|multiply|subtract|tanh_of_sum)_each\b/\1_per_position/g
s/\bcross_entropy_each\b/cross_entropy_per_word/g
s/\badd_alike\b/add_same_shape/g
s/\bops::join\b/ops::concat_heads/g
s/\bops::split\b/ops::split_heads/g
s/\bops::pick\b/ops::gather/g
s/\b(rows|columns)_between\b/slice_\1/g
s/\bops::greatest\b/ops::argmax/g
s/\bops::perturb\b/ops::add_gumbel/g
s/\bops::thin\b/ops::dropout_weights/g
s/\bops::unit\b/ops::normalize_l2/g
s/\bops::break_stick\b/ops::stick_breaking/g
s/\bops::chunks\b/ops::mocha/g
s/\bops::move_places\b/ops::advance_means/g

# Memories, tensors, training.
s/\b(heed::)?growing\(/\1with_cache(/g
s/\bgrowing_tensor\b/cache_tensor/g
s/\bheed::transient\b/heed::workspace_tensor/g
s/\btransient_family\b/workspace_family/g
s/\boptimiser\b/optimizer/g
s/\bparameterised\b/parameterized/g
s/\btranslator::cancelled\b/translator::canceled/g
s/\bio::smaller\b/io::quantize/g
s/\b(io::)?held::/\1storage::/g
s/\btake_torch\b/load_torch/g
s/\bput_torch\b/save_torch/g

# Sequence-to-sequence models.
s/\basks_with\b/query_from/g
s/\bwith_asks\b/with_query_from/g
s/([^.>A-Za-z0-9_])starts_with::/\1initial_state::/g
s/\bembeds::/embedding::/g
s/\boutput::fed\b/output::input_feeding/g
s/(\.|->)looks\(\)/\1has_attention()/g
s/\bbool looks\(\)/bool has_attention()/g
s/\blook_by_dimension\b/weights_by_dimension/g
s/\b(heed::|seq2seq::|heed::seq2seq::)proposals\b/\1candidates/g

# Factories.
s/\b(attentions::(additive|additive_with_word|per_dimension|temporal))<\w+>/\1_factory/g
s/\b(query_from|initial_state)::new_(current|last)_state\b/\1::\2_state/g
s/\bnew_sinusoidal_positions\b/sinusoidal_positions/g
s/\bluong2015::new_dot\b/score::dot/g
s/\bnew_swiglu\b/gated_feed_forward_factory/g
s/\bembedding::new_plain\b/embedding::table_factory/g
s/\boutput::new_fed\b/output::input_feeding_factory/g
s/\bnew_(bidirectional|forward|self_attentive)\b/\1_encoder_factory/g
s/\bnew_(a?bcnn[123]?)\b/\1_factory/g
s/\b((coverage|location|a?bcnn[123]?|layer|block|slot|general|concat)_factory)<\w+>/\1/g
s/\b(nn::|output::|embedding::|query_from::|initial_state::|seq2seq::|luong2015::|sankaran2016::|gehring2017::|yin2016::)new_(\w+)\b/\1\2_factory/g

# CMake.
s/\bHEED_EXAMPLES_ONLY\b/HEED_ONLY/g
END

# The traits of a policy: constants on separate lines become one constant, `traits`.
perl -0777 -i - "$@" <<'END'
use strict;
my @order = qw(weights reads_word adds_word ignores_context reads_length reads_query_position extends_keys prepares_alike
    nonnegative rowwise shift_invariant requires_nonnegative state_decays random differentiable has_window linear);
my %now = ((map { $_ => $_ } @order), reads_context => 'ignores_context', counts_queries => 'reads_query_position',
    widens_keys => 'extends_keys', never_negative => 'nonnegative', row_by_row => 'rowwise',
    ignores_offset => 'shift_invariant', asks_never_negative => 'requires_nonnegative', ages => 'state_decays',
    cuts => 'has_window', commutes_with_matrices => 'linear');
my $names = join '|', keys %now;
my $constant = qr/[ \t]*static constexpr (?:bool|auto|(?:heed::)?weight_kind) (?:$names) = [^;]+;[^\n]*\n/;
sub traits {
    my ($constants, $rest) = @_;
    my ($indent) = $constants =~ /^([ \t]*)/;
    my %is;
    while ($constants =~ /(\w+) = ([^;]+);/g) {
        $is{$now{$1}} = $1 ne 'reads_context' ? $2 : $2 eq 'false' ? 'true' : 'false';
    }
    my $of_rows = grep { exists $is{$_} } qw(rowwise shift_invariant requires_nonnegative state_decays has_window);
    my ($call) = $rest =~ /operator\(\)\(([^)]*)/;
    my $kind = $of_rows ? 'normalizer' : exists $is{linear} || ($call // '') =~ /\b(weights|alpha)\b/ ? 'combiner' : 'score';
    my $values = join ', ', map { ".$_ = $is{$_}" } grep { exists $is{$_} } @order;
    return "${indent}static constexpr heed::${kind}_traits traits{$values};\n";
}
while (<>) {
    s/((?:$constant)+)(?=((?:.*\n){0,60}))/traits($1, $2)/ge;
    print;
}
END
