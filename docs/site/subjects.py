# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the reference: their headers and subjects."""

from dataclasses import dataclass

from names import Name


@dataclass
class Subject:
    page: str
    title: str
    about: str
    headers: tuple[str, ...]  # prefixes of header paths; the longest match counts


SEARCHES = ("beam", "greedy", "forced", "ensemble", "candidates", "decoding", "own_model", "packed")

SUBJECTS = [
    Subject("attention", "Attention", "a mechanism of three policies: memory, state, steps, many queries at once, masks",
            ("heed/attention", "heed/masks/", "heed/simd/place", "heed/heed", "heed/version")),
    Subject("policy", "Policies", "requirements of scores, normalizers and combiners: traits, hooks, the step context, a kernel of a step",
            ("heed/policy/",)),
    Subject("heads", "Heads and hops", "several attentions in one: heads, their gates and mixtures, hops",
            ("heed/heads/",)),
    Subject("score", "Scores", "how well a query matches a source position", ("heed/score/",)),
    Subject("normalize", "Normalizers", "how scores become weights", ("heed/normalize/",)),
    Subject("combine", "Combiners", "how weights and values become one context", ("heed/combine/",)),
    Subject("penalty", "Penalties on weights", "loss terms on attention weights", ("heed/penalty/",)),
    Subject("papers", "Papers", "the published mechanisms and systems by name",
            ("heed/papers", "heed/seq2seq/systems/")),
    Subject("verify", "Verification", "checks of the contracts that every combination must satisfy", ("heed/verify",)),
    Subject("ops", "Operations, one by one", "every operation with its equation, its shapes and its derivative", ("heed/ops/",)),
    Subject("ad", "Differentiation", "the tape, variables, gradients, checkpoints, products with the Hessian", ("heed/ad/",)),
    Subject("nn", "Layers", "recurrent cells, embeddings, convolutions, norms, positions, initial values", ("heed/nn/",)),
    Subject("train", "Training", "optimizers, learning rates, clipping, accumulation, averages", ("heed/train/",)),
    Subject("distributed", "Many processes", "training over processes on one machine or many: ranks, sums of gradients, MPI",
            ("heed_mpi/",)),
    Subject("models", "Models", "encoders, decoders, outputs, losses, complete translators", ("heed/seq2seq/",)),
    Subject("searches", "Searches", "greedy search, beams, ensembles, forced decoding, for heed's models and yours",
            tuple(f"heed/seq2seq/{name}.hpp" for name in SEARCHES)),
    Subject("translator", "Trained translators", "the models that `translate` trains: their files, their options, their searches",
            ("heed_translator/",)),
    Subject("pairs", "Pairs of sentences", "attention between the sentences of a pair, batches of pairs, and the matcher of ABCNN", ("heed/pairs/",)),
    Subject("metrics", "Metrics", "BLEU, TER, RIBES, chrF, error rates, alignments, significance, tuning", ("heed_kit/metrics/",)),
    Subject("text", "Text readers", "sentences, corpora, vocabularies, byte-pair encoding, phrases, Unicode", ("heed_kit/text/",)),
    Subject("io", "Files", "safetensors, .npy, weights of modules and of PyTorch, atomic file writes", ("heed/io/",)),
    Subject("view", "Pictures", "alignments for the terminal, SVG, charts, interactive HTML pages", ("heed_kit/view/",)),
    Subject("core", "Core", "tensors, lengths and masks, threads, BLAS, compiled kernels, random numbers, memory, errors",
            ("heed/core/", "heed/simd/", "heed/gemm/", "heed/compiled")),
]


def of_header(header: str) -> Subject:
    fitting = [(len(start), subject) for subject in SUBJECTS for start in subject.headers if header.startswith(start)]
    if not fitting:
        raise SystemExit(f"{header}: on no page of the reference, see docs/site/subjects.py")
    return max(fitting, key=lambda pair: pair[0])[1]


def by_subject(names: list[Name]) -> dict[str, list[Name]]:
    result: dict[str, list[Name]] = {subject.page: [] for subject in SUBJECTS}
    for name in names:
        result[of_header(name.header).page].append(name)
    return result
