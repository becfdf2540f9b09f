# SPDX-License-Identifier: BSD-3-Clause
"""Whether heed and PyTorch load each other's weights and then give the same results: the test seq2seq.torch.torch runs this.

    python3 torch.py build/dev/tests/seq2seq_torch

PyTorch computes outputs and gradients of its layers, the program takes their weights (from HEED_TORCH_VALUES) and
compares, and gives a complete model back, which PyTorch loads and runs. Ends with status 77, "skipped", where there is no
PyTorch. With --store it writes torch.safetensors, next to this file, which the program reads without PyTorch.
"""
import functools
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path = [place for place in sys.path if pathlib.Path(place or ".").resolve() != here]
try:
    import torch
    from torch import nn
except ImportError:
    print("there is no PyTorch for", sys.executable, "(Debian: apt install python3-torch, and /usr/bin/python3)")
    sys.exit(77)


def save(path, tensors):
    """As safetensors.torch.save_file, for doubles and 64-bit integers; Debian does not have the package."""
    header, data = {}, b""
    for name, x in tensors.items():
        flat = x.detach().contiguous().reshape(-1).tolist()
        kind = {torch.float64: ("F64", "d"), torch.int64: ("I64", "q")}[x.dtype]
        bytes_of = struct.pack(f"<{len(flat)}{kind[1]}", *flat)
        header[name] = {"dtype": kind[0], "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(bytes_of)]}
        data += bytes_of
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        kind, code = {"F64": (torch.float64, "d"), "I64": (torch.int64, "q")}[entry["dtype"]]
        tensors[name] = torch.tensor(struct.unpack(f"<{(end - begin) // 8}{code}", raw[begin:end]),
                                     dtype=kind).reshape(entry["shape"])
    return tensors


class Tagger(nn.Module):
    """The whole model of tests/seq2seq/torch.cpp."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(7, 3)
        self.rnn = nn.GRU(3, 4, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)
        self.out = nn.Linear(4, 3)

    def forward(self, ids):
        return self.out(self.layer(self.rnn(self.words(ids))[0]))


def cases():
    """Name, module, inputs, and a function that calls the module."""
    D, n, F, B, T, S = 4, 2, 5, 2, 4, 3
    draw = functools.partial(torch.randn, dtype=torch.float64)
    steps, x, y = draw(T, B, 3), draw(B, T, D), draw(B, S, D)
    padding = torch.tensor([[False] * T, [False, False, True, True]])
    later = torch.triu(torch.ones(S, S, dtype=torch.bool), 1)
    gelu = functools.partial(nn.functional.gelu, approximate="tanh")
    first = lambda module, *inputs: module(*inputs)[0]
    yield "lstm", nn.LSTM(3, D), [steps], first
    yield "lstm_two", nn.LSTM(3, D, num_layers=2), [steps], first
    yield "lstm_bare", nn.LSTM(3, D, bias=False), [steps], first
    yield "lstm_both", nn.LSTM(3, D, bidirectional=True), [steps], first
    yield "gru", nn.GRU(3, D), [steps], first
    yield "gru_two", nn.GRU(3, D, num_layers=2), [steps], first
    yield "gru_cell", nn.GRUCell(3, D), [steps[0], y[:, 0]], lambda module, *inputs: module(*inputs)
    attend = lambda module, q, k: module(q, k, k, key_padding_mask=padding)[0]
    yield "heads", nn.MultiheadAttention(D, n, batch_first=True), [y, x], attend
    yield "heads_bare", nn.MultiheadAttention(D, n, bias=False, batch_first=True), [y, x], attend
    wide = draw(B, T, 3)
    yield "heads_wide", nn.MultiheadAttention(D, n, kdim=3, vdim=3, batch_first=True), [y, wide], attend
    for pre in (False, True):
        name = "pre" if pre else "post"
        how = dict(dropout=0.0, batch_first=True, norm_first=pre, activation=gelu if pre else "relu")
        yield ("encoder_" + name, nn.TransformerEncoderLayer(D, n, F, **how), [x],
               lambda module, x: module(x, src_key_padding_mask=padding))
        yield ("decoder_" + name, nn.TransformerDecoderLayer(D, n, F, **how), [y, x],
               lambda module, y, x: module(y, x, tgt_mask=later, memory_key_padding_mask=padding))
    yield ("stack", nn.TransformerEncoder(nn.TransformerEncoderLayer(D, n, F, dropout=0.0, batch_first=True), 2,
                                          norm=nn.LayerNorm(D)), [x],
           lambda module, x: module(x, src_key_padding_mask=padding))


def computed():
    torch.manual_seed(1)
    tensors = {}
    for name, module, inputs, call in cases():
        module = module.double()
        with torch.no_grad():
            for parameter in module.parameters():  # avoids the initial values 0 and 1
                parameter.copy_(0.5 * torch.randn_like(parameter) + (parameter == 1))
        inputs = [x.clone().requires_grad_() for x in inputs]
        result = call(module, *inputs)
        real = torch.ones_like(result)
        if name.startswith("encoder") or name == "stack":
            real[1, 2:] = 0  # the padding does not matter
        factors = torch.randn_like(result) * real
        (result * factors).sum().backward()
        tensors.update({f"{name}.{key}": x for key, x in module.state_dict().items()})
        tensors.update({f"d/{name}.{key}": x.grad for key, x in module.named_parameters()})
        tensors.update({f"in/{name}/{i}": x for i, x in enumerate(inputs)})
        tensors.update({f"d/in/{name}/{i}": x.grad for i, x in enumerate(inputs)})
        tensors[f"out/{name}"] = result * real
        tensors[f"factors/{name}"] = factors
    tagger = Tagger().double().eval()
    ids = torch.tensor([[1, 5, 0, 6], [2, 2, 4, 3]])
    tensors.update({f"tagger.{key}": x for key, x in tagger.state_dict().items()})
    tensors["in/tagger"] = ids
    tensors["out/tagger"] = tagger(ids)
    return tensors


def check(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        values = computed()
        save(folder / "values.safetensors", values)
        subprocess.run([program], check=True, env=dict(os.environ, HEED_TORCH_VALUES=str(folder / "values.safetensors"),
                                                       HEED_TORCH_BACK=name))
        # The original weights: heed has summed the biases that PyTorch stores twice.
        back = load(folder / "same.safetensors")
        tagger = Tagger().double().eval()
        tagger.load_state_dict(back, strict=True)
        ids = values["in/tagger"]
        assert (tagger(ids) - values["out/tagger"]).abs().max() < 1e-12
        for key, x in back.items():
            if ".bias_" not in key:
                assert torch.equal(x, values[f"tagger.{key}"]), key
        # A model that heed has changed.
        back = load(folder / "changed.safetensors")
        result = back.pop("out")
        tagger.load_state_dict(back, strict=True)
        assert (result - values["out/tagger"]).abs().max() > 1e-3
        assert (tagger(ids) - result).abs().max() < 1e-12


if "--store" in sys.argv:
    save(here / "torch.safetensors", computed())
else:
    check(sys.argv[1])
