#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The training step of a GPT in PyTorch, eager, fp32: what scale4d-run is compared with.

    train_torch.py LAYERS HIDDEN HEADS SEQUENCE VOCABULARY BATCH ITERATIONS [THREADS]

Prints one JSON line: tokens a second of the median iteration, processor seconds of an iteration. The same arithmetic as workloads/: pre-norm, tied
embeddings, learned positions, causal attention, GELU by tanh, cross entropy, clipping at 1, AdamW.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

layers, hidden, heads, seq, vocabulary, batch, iterations = map(int, sys.argv[1:8])
torch.set_num_threads(int(sys.argv[8]) if len(sys.argv) > 8 else 1)
torch.manual_seed(1)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
        self.up, self.down = torch.nn.Linear(hidden, 4 * hidden), torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x, mask):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * (hidden // heads) ** -0.5 + mask
        a = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, hidden)
        x = x + self.out(a)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, hidden)
        self.positions = torch.nn.Embedding(seq, hidden)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(layers))
        self.norm = torch.nn.LayerNorm(hidden)
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        mask = torch.full((seq, seq), float("-inf")).triu(1)
        x = self.embedding(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x, mask)
        logits = self.norm(x) @ self.embedding.weight.T
        return F.cross_entropy(logits.view(-1, vocabulary), targets.reshape(-1))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
samples_s, samples_cpu_s = [], []
for i in range(iterations + 1):
    tokens = torch.randint(vocabulary, (batch, seq + 1))
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    model(tokens[:, :-1], tokens[:, 1:]).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    samples_s.append(time.perf_counter() - start_s)
    samples_cpu_s.append(time.process_time() - start_cpu_s)
print(json.dumps({"tokens_per_s": batch * seq / statistics.median(samples_s[1:]),
                  "cpu_s": statistics.median(samples_cpu_s[1:]), "version": torch.__version__}))
