# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause

# heed_made_text SOURCE TARGET LINES: generates pairs of 5 to 20 words with natural word frequencies.
heed_made_text()
{
    awk -v a="$1" -v b="$2" -v lines="$3" 'BEGIN {
        srand(1)
        for (n = 0; n < lines; ++n) {
            length_of = 5 + int(16 * rand())
            for (i = 0; i < length_of; ++i) {
                word = int(exp(rand() * log(6000)))  # in proportion to 1 / rank
                printf "%s%d", i ? " " : "", word >a
                printf "%sw%d", i ? " " : "", word >b
            }
            print "" >a
            print "" >b
        }
    }'
}
