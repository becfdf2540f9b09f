#!/usr/bin/env node
// SPDX-License-Identifier: BSD-3-Clause

// A peer of bench/long: ONNX Runtime's fused MultiHeadAttention, forward only. Answers the requests of
// bench/long_peer.hpp. The model is one node, written here as the bytes of its protocol buffer.

"use strict";

const ort = require("onnxruntime-node");
const readline = require("node:readline");

const threads = Number(process.env.OMP_NUM_THREADS || 1);

/// A field of a protocol buffer: a number, or bytes preceded by their length.
function varint(x) {
    return x < 128 ? [x] : [(x % 128) + 128, ...varint(Math.floor(x / 128))];
}
function number(field, x) {
    return [...varint(8 * field), ...varint(x)];
}
function bytes(field, ...parts) {
    const all = parts.flat();
    return [...varint(8 * field + 2), ...varint(all.length), ...all];
}
function text(field, x) {
    return bytes(field, [...Buffer.from(x)]);
}

/// onnx.proto: queries, keys and values [batch,length,heads·width] to contexts.
function model(heads, causal) {
    const attribute = (name, x) => bytes(5, text(1, name), number(3, x), number(20, 2));
    const tensor = (field, name) => {
        const shape = bytes(2, bytes(1, text(2, "batch")), bytes(1, text(2, "length")), bytes(1, text(2, "columns")));
        return bytes(field, text(1, name), bytes(2, bytes(1, number(1, 1), shape)));
    };
    const inputs = ["queries", "keys", "values"];
    const node = bytes(1, ...inputs.map((x) => text(1, x)), text(2, "contexts"), text(4, "MultiHeadAttention"),
                       attribute("num_heads", heads), attribute("unidirectional", causal ? 1 : 0),
                       text(7, "com.microsoft"));
    const graph = bytes(7, node, text(2, "attention"), ...inputs.map((x) => tensor(11, x)), tensor(12, "contexts"));
    const opset = (domain, version) => bytes(8, text(1, domain), number(2, version));
    return Uint8Array.from([...number(1, 8), ...graph, ...opset("", 17), ...opset("com.microsoft", 1)]);
}

/// The numbers of bench::fill (bench/sizes.hpp).
function filled(count, seed) {
    const result = new Float32Array(count);
    let state = BigInt.asUintN(64, 0x9e3779b97f4a7c15n * BigInt(seed + 1));
    for (let i = 0; i < count; ++i) {
        state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
        result[i] = Number(state >> 40n) * (2 / 16777216) - 1;
    }
    return result;
}

/// CPU time of the process with one thread, otherwise wall time.
function now() {
    if (threads > 1) return Number(process.hrtime.bigint()) * 1e-9;
    const used = process.cpuUsage();
    return (used.user + used.system) * 1e-6;
}

const kept = new Map();  // sessions and tensors, created once per request

async function prepared(line) {
    if (!kept.has(line)) {
        const [mask, , batch, heads, length, width] = line.split(" ").map((x, i) => (i === 0 ? x : Number(x)));
        const session = await ort.InferenceSession.create(model(heads, mask === "causal"), {
            intraOpNumThreads: threads,
            interOpNumThreads: 1,
        });
        const tensor = (x) => new ort.Tensor("float32", x, [batch, length, heads * width]);
        const count = batch * length * heads * width;
        kept.set(line, {
            session,
            inputs: {
                queries: tensor(filled(count, 1)),
                keys: tensor(filled(count, 2)),
                values: tensor(filled(count, 3)),
            },
            outputs: { contexts: tensor(new Float32Array(count)) },
        });
    }
    return kept.get(line);
}

async function main() {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        if (line.split(" ")[1] === "1") {
            console.log("0 0");
            continue;
        }
        const { session, inputs, outputs } = await prepared(line);
        const begin = now();
        await session.run(inputs, outputs);
        const seconds = now() - begin;
        const digest = outputs.contexts.data.reduce((sum, x) => sum + Math.abs(x), 0);
        console.log(`${seconds} ${digest}`);
    }
}

main();
