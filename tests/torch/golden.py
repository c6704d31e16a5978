#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden losses and gradients of small GPT-2 and Llama models by PyTorch's automatic
differentiation in fp64 (Debian: python3-torch). Run once, results are committed; the tests need no
Python:

    /usr/bin/python3 tests/torch/golden.py

For each model of the table it writes, beside itself, NAME.yaml (the workload), NAME.tokens (uint16,
batch * seq_length + 1), NAME.weights.safetensors (F32, Hugging Face's names and shapes; llama-3 has
llama's) and NAME.gradients.safetensors (of the mean cross entropy over the batch, F32; the loss in
its metadata). The models are written from Hugging Face's definitions (GPT2LMHeadModel,
LlamaForCausalLM: rotate_half, Llama-3's frequency scaling) and share no code with the schedule.
"""
import json
import math
import os
import struct

import torch
import torch.nn.functional as F

BATCH = 4
GPT = dict(num_layers=2, hidden_size=32, num_attention_heads=4, ffn_hidden_size=80, vocab_size=45,
           seq_length=16, norm_epsilon=1e-5, tie_word_embeddings=True,
           embedding="vocabulary-parallel", positions="learned", norm="layernorm",
           attention="multi-head", mlp="gelu-mlp", head="cross-entropy")
LLAMA = dict(num_layers=2, hidden_size=32, num_attention_heads=4, num_key_value_heads=2,
             ffn_hidden_size=56, vocab_size=45, seq_length=16, norm_epsilon=1e-5,
             tie_word_embeddings=False, rope_theta=10000, embedding="vocabulary-parallel",
             positions="rotary", norm="rmsnorm", attention="grouped-query", mlp="swiglu-mlp",
             head="cross-entropy")
# Of the four frequencies one is kept, one is blended and two are divided by the factor.
LLAMA_3 = dict(LLAMA, rope_scaling_factor=8, rope_low_freq_factor=1, rope_high_freq_factor=4,
               rope_original_max_position_embeddings=64)
MODELS = {"gpt": GPT, "llama": LLAMA, "llama-3": LLAMA_3}


def normal(generator, *shape, std=0.2, mean=0.0):
    """fp32 numbers, in fp64. Large enough that every gradient matters."""
    v = mean + std * torch.randn(*shape, generator=generator, dtype=torch.float64)
    return v.float().double().requires_grad_(True)


def gpt_weights(m, g):
    h, ffn, w = m["hidden_size"], m["ffn_hidden_size"], {}
    w["wte.weight"] = normal(g, m["vocab_size"], h)
    w["wpe.weight"] = normal(g, m["seq_length"], h)

    def linear(name, k, n):  # Conv1D: (in, out)
        w[name + ".weight"] = normal(g, k, n)
        w[name + ".bias"] = normal(g, n, std=0.1)

    def norm(name):
        w[name + ".weight"] = normal(g, h, std=0.1, mean=1.0)
        w[name + ".bias"] = normal(g, h, std=0.1)

    for i in range(m["num_layers"]):
        norm(f"h.{i}.ln_1")
        linear(f"h.{i}.attn.c_attn", h, 3 * h)
        linear(f"h.{i}.attn.c_proj", h, h)
        norm(f"h.{i}.ln_2")
        linear(f"h.{i}.mlp.c_fc", h, ffn)
        linear(f"h.{i}.mlp.c_proj", ffn, h)
    norm("ln_f")
    return w


def attend(q, k, v):
    """Causal; (batch, heads, s, head_dim)."""
    s, d = q.shape[-2:]
    scores = q @ k.transpose(-1, -2) / math.sqrt(d)
    mask = torch.ones(s, s, dtype=torch.bool).tril()
    return F.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ v


def heads_of(x, n):
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


def merged(x):
    x = x.transpose(1, 2)
    return x.reshape(x.shape[0], x.shape[1], -1)


def gpt_logits(m, w, tokens):
    h, eps = m["hidden_size"], m["norm_epsilon"]

    def linear(name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def norm(name, x):
        return F.layer_norm(x, (h,), w[name + ".weight"], w[name + ".bias"], eps)

    x = F.embedding(tokens, w["wte.weight"]) + w["wpe.weight"]
    for i in range(m["num_layers"]):
        y = linear(f"h.{i}.attn.c_attn", norm(f"h.{i}.ln_1", x))
        q, k, v = (heads_of(t, m["num_attention_heads"]) for t in y.split(h, dim=-1))
        x = x + linear(f"h.{i}.attn.c_proj", merged(attend(q, k, v)))
        y = F.gelu(linear(f"h.{i}.mlp.c_fc", norm(f"h.{i}.ln_2", x)), approximate="tanh")
        x = x + linear(f"h.{i}.mlp.c_proj", y)
    return norm("ln_f", x) @ w["wte.weight"].T


def llama_weights(m, g):
    h, ffn, w = m["hidden_size"], m["ffn_hidden_size"], {}
    d = h // m["num_attention_heads"]
    kv = m["num_key_value_heads"] * d
    w["model.embed_tokens.weight"] = normal(g, m["vocab_size"], h)
    for i in range(m["num_layers"]):
        p = f"model.layers.{i}."
        for name, n, k in (("self_attn.q_proj", h, h), ("self_attn.k_proj", kv, h),
                           ("self_attn.v_proj", kv, h), ("self_attn.o_proj", h, h),
                           ("mlp.gate_proj", ffn, h), ("mlp.up_proj", ffn, h),
                           ("mlp.down_proj", h, ffn)):  # Linear: (out, in)
            w[p + name + ".weight"] = normal(g, n, k)
        for name in ("input_layernorm", "post_attention_layernorm"):
            w[p + name + ".weight"] = normal(g, h, std=0.1, mean=1.0)
    w["model.norm.weight"] = normal(g, h, std=0.1, mean=1.0)
    w["lm_head.weight"] = normal(g, m["vocab_size"], h)
    return w


def frequencies(m, d):
    f = 1.0 / m["rope_theta"] ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    if "rope_scaling_factor" not in m:
        return f
    factor, low, high = (m["rope_scaling_factor"], m["rope_low_freq_factor"],
                         m["rope_high_freq_factor"])
    old = m["rope_original_max_position_embeddings"]
    wavelength = 2 * math.pi / f
    smooth = (old / wavelength - low) / (high - low)
    blended = (1 - smooth) * f / factor + smooth * f
    f = torch.where(wavelength > old / low, f / factor,
                    torch.where(wavelength < old / high, f, blended))
    return f


def llama_logits(m, w, tokens):
    eps, heads, kv_heads = m["norm_epsilon"], m["num_attention_heads"], m["num_key_value_heads"]
    d = m["hidden_size"] // heads
    angle = torch.arange(m["seq_length"], dtype=torch.float64)[:, None] * frequencies(m, d)
    cos, sin = (torch.cat((t, t), dim=-1) for t in (angle.cos(), angle.sin()))

    def turn(x):
        half = torch.cat((-x[..., d // 2:], x[..., :d // 2]), dim=-1)
        return x * cos + half * sin

    def norm(name, x):
        return w[name + ".weight"] * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)

    x = F.embedding(tokens, w["model.embed_tokens.weight"])
    for i in range(m["num_layers"]):
        p = f"model.layers.{i}."

        def linear(name, x):
            return F.linear(x, w[p + name + ".weight"])

        y = norm(p + "input_layernorm", x)
        q = turn(heads_of(linear("self_attn.q_proj", y), heads))
        k = turn(heads_of(linear("self_attn.k_proj", y), kv_heads))
        v = heads_of(linear("self_attn.v_proj", y), kv_heads)
        k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
        x = x + linear("self_attn.o_proj", merged(attend(q, k, v)))
        y = norm(p + "post_attention_layernorm", x)
        y = F.silu(linear("mlp.gate_proj", y)) * linear("mlp.up_proj", y)
        x = x + linear("mlp.down_proj", y)
    return F.linear(norm("model.norm", x), w["lm_head.weight"])


def save(file, tensors, metadata):
    header, at = {"__metadata__": metadata}, 0
    for name, t in tensors.items():
        n = 4 * t.numel()
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.detach().float().numpy().astype("<f4").tobytes())


def save_workload(file, name, m):
    with open(file, "w") as f:
        f.write("# SPDX-License-Identifier: Apache-2.0\n# Written by golden.py.\n")
        f.write(f"name: golden-{name}\nsource: 'assumed: a small model for golden gradients'\n")
        for key, value in m.items():
            text = str(value).lower() if isinstance(value, bool) else value
            f.write(f"{key}: {'0.00001' if value == 1e-5 else text}\n")


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    for name, m in MODELS.items():
        g = torch.Generator().manual_seed(2110)
        llama = m["positions"] == "rotary"
        w = (llama_weights if llama else gpt_weights)(m, g)
        s = m["seq_length"]
        line = torch.randint(m["vocab_size"], (BATCH * s + 1,), generator=g)
        tokens = torch.stack([line[j * s:j * s + s + 1] for j in range(BATCH)])
        logits = (llama_logits if llama else gpt_logits)(m, w, tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(BATCH * s, -1), tokens[:, 1:].reshape(-1))
        loss.backward()
        path = os.path.join(folder, name)
        about = {"made_by": f"tests/torch/golden.py, PyTorch {torch.__version__}, fp64"}
        save_workload(path + ".yaml", name, m)
        if m is not LLAMA_3:
            line.numpy().astype("<u2").tofile(path + ".tokens")
            save(path + ".weights.safetensors", w, dict(about, format="pt"))
        save(path + ".gradients.safetensors", {k: v.grad for k, v in w.items()},
             dict(about, format="pt", loss=repr(loss.item())))
        print(f"{name}: loss {loss.item():.15f}, {sum(v.numel() for v in w.values())} parameters")


main()
