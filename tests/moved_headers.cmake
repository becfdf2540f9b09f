# SPDX-License-Identifier: BSD-3-Clause
#
# After the command in CHANGELOG.md that updates a program's includes, each of these headers of 0.1.0 exists.

cmake_minimum_required(VERSION 3.22)

set(headers
    heed/text/bpe heed/text/utf8 heed/metrics/bleu heed/view/alignment heed/distributed/gradients heed/translator/options
    heed/seq2seq/load heed/multi_head heed/multi_hop heed/latent_heads heed/talking_heads heed/per_head/gated heed/abcnn
    heed/memory heed/at_once heed/concepts heed/nn/adam heed/nn/gradient_norm heed/io/torch heed/core/lanes
    heed/core/tables heed/core/blas heed/core/constant heed/core/members heed/ops/moves heed/attention/place
    heed/attention/rows heed/score/hooks heed/normalize/hooks
    heed/ad/elementwise heed/ad/fused heed/ops/shape heed/ops/training heed/fused heed/seq2seq/fixed_context heed/kernels/adam heed/kernels/gru
    # headers that have not moved
    heed/heed heed/attention heed/score/additive heed/ops/products)

file(STRINGS "${SOURCE_DIR}/CHANGELOG.md" line REGEX "^sed -E -i '.*' FILES$")
string(REGEX MATCH "^sed -E -i '(.*)' FILES$" ignored "${line}")
if(NOT CMAKE_MATCH_1)
  message(FATAL_ERROR "CHANGELOG.md has no line: sed -E -i '...' FILES")
endif()
string(REPLACE "\\;" ";" rewriting "${CMAKE_MATCH_1}")
set(problems "")
foreach(header IN LISTS headers)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "#include <${header}.hpp>" COMMAND sed -E "${rewriting}"
                  OUTPUT_VARIABLE now OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "^#include <(.*)>$" "\\1" now "${now}")
  if(NOT EXISTS "${SOURCE_DIR}/include/${now}")
    list(APPEND problems "<${header}.hpp> becomes <${now}>, which does not exist")
  endif()
endforeach()
if(problems)
  list(JOIN problems "\n" problems)
  message(FATAL_ERROR "${problems}")
endif()
