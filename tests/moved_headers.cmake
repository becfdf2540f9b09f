# SPDX-License-Identifier: BSD-3-Clause
#
# Each of these headers of 0.1.0 and 0.2.0 exists after the command in CHANGELOG.md that updates the includes of 0.1.0
# and scripts/update_names.sh.

cmake_minimum_required(VERSION 3.22)

set(headers
    heed/text/bpe heed/text/utf8 heed/metrics/bleu heed/view/alignment heed/distributed/gradients heed/translator/options
    heed/seq2seq/load heed/multi_head heed/multi_hop heed/latent_heads heed/talking_heads heed/per_head/gated heed/abcnn
    heed/memory heed/at_once heed/concepts heed/nn/adam heed/nn/gradient_norm heed/io/torch heed/core/lanes
    heed/core/tables heed/core/blas heed/core/constant heed/core/members heed/ops/moves heed/attention/place
    heed/attention/rows heed/score/hooks heed/normalize/hooks
    heed/ad/elementwise heed/ad/fused heed/ops/shape heed/ops/training heed/fused heed/seq2seq/fixed_context heed/kernels/adam heed/kernels/gru
    # of 0.2.0
    heed/ad/kept_results heed/attention/answer heed/attention/at_once heed/attention/concepts heed/attention/drawn heed/attention/families
    heed/attention/growing heed/attention/grown heed/attention/hook_names heed/attention/score_hooks heed/attention/in_blocks
    heed/attention/in_order heed/attention/inner_product heed/attention/linear heed/attention/normalize_hooks
    heed/attention/on heed/attention/projection heed/attention/step heed/attention/streaming heed/attention/tiled
    heed/core/callback heed/core/growing heed/core/mistakes heed/core/several heed/core/transient heed/gemm/own_gemm
    heed/io/file_bytes heed/io/smaller heed/kernels/tiles/attend heed/kernels/tiles/changes
    heed/kernels/tiles/distances heed/kernels/tiles/pairs heed/kernels/tiles/rules heed/kernels/top_words
    heed/normalize/connected heed/normalize/fading_temporal heed/ops/number_losses heed/ops/parts heed/ops/steps
    heed/score/fading heed/score/with_neighbours heed/seq2seq/embeds heed/simd/dual_lanes heed/simd/lane_steps
    heed/simd/lanes heed/simd/place heed/simd/registers_of_duals heed/simd/sines heed/simd/tables
    heed/train/accumulation heed/train/optimiser heed/train/rates heed/train/stored heed_translator/claim
    heed_translator/uses heed/heed heed/attention heed/score/additive heed/ops/products)

file(READ "${SOURCE_DIR}/CHANGELOG.md" changelog)
string(REGEX MATCH "\nsed -E -i '([^']*)' FILES\n" command "${changelog}")
if(NOT command)
  message(FATAL_ERROR "CHANGELOG.md has no command: sed -E -i '...' FILES")
endif()
set(of_0_1 "${CMAKE_MATCH_1}")
set(file "$ENV{TMPDIR}")
if(NOT file)
  set(file /tmp)
endif()
string(RANDOM LENGTH 12 name)
set(file "${file}/heed-${name}.cpp")
list(TRANSFORM headers REPLACE "(.+)" "#include <\\1.hpp>" OUTPUT_VARIABLE includes)
list(JOIN includes "\n" includes)
file(WRITE "${file}" "${includes}\n")
execute_process(COMMAND sed -E -i "${of_0_1}" "${file}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND bash "${SOURCE_DIR}/scripts/update_names.sh" "${file}" COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS "${file}" now)
file(REMOVE "${file}")
set(problems "")
foreach(before after IN ZIP_LISTS headers now)
  string(REGEX REPLACE "^#include <(.*)>$" "\\1" after "${after}")
  if(NOT EXISTS "${SOURCE_DIR}/include/${after}")
    list(APPEND problems "<${before}.hpp> becomes <${after}>, which does not exist")
  endif()
endforeach()
if(problems)
  list(JOIN problems "\n" problems)
  message(FATAL_ERROR "${problems}")
endif()
