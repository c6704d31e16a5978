#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d workloads from the command line, and what files may not say.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    folder=$(mktemp -d)
    good=workloads/gpt-tiny.yaml
}

teardown() {
    rm -rf "$folder"
}

# refused STATUS TEXT ARGUMENT...: that exit status, nothing on standard output, TEXT in the message.
refused() {
    local status=0 text=$2 expected=$1
    shift 2
    timeout 60 build/scale4d workloads "$@" > "$folder/out" 2> "$folder/said" || status=$?
    cat "$folder/said"
    [ "$status" -eq "$expected" ] && [ ! -s "$folder/out" ] && grep -qF -- "$text" "$folder/said"
}

@test "workloads: a line each, every value of one" {
    [ "$(build/scale4d workloads | grep -c '^  gpt')" -ge 11 ] && [ "$(build/scale4d workloads | grep -c '^  llama')" -ge 6 ]
    build/scale4d workloads gpt2-124m | grep -qx 'parameters  *124439808'
    build/scale4d workloads "$good" | grep -qx 'norm_epsilon  *0.00001'
}

@test "workloads: every printed value may be written back" {
    for name in gpt-tiny llama-tiny; do
        build/scale4d workloads $name | grep -vE '^(parameters|hash|file) ' |
            sed -E 's/^([a-z_]+) +(.*)$/\1: "\2"/' > "$folder/$name.yaml"
        a=$(build/scale4d workloads "$folder/$name.yaml" | grep -vE '^(hash|file) ')
        b=$(build/scale4d workloads $name | grep -vE '^(hash|file) ')
        [ "$a" = "$b" ]
    done
}

@test "workloads: unknown names and options" {
    refused 65 'did you mean gpt-5b?' gpt-5bb
    refused 65 "unknown workload 'nothing'" nothing
    refused 64 'did you mean --json?' --jso
    refused 64 'unknown option' -x
}

@test "workloads: bad numbers, keys and kinds name file, line and key" {
    sed 's/^hidden_size: .*/hidden_size: 4k/' $good > "$folder/a.yaml"
    refused 65 "a.yaml:$(grep -n hidden_size: $good | cut -d: -f1): hidden_size: expected an integer in [1, 1048576], got '4k'" \
        "$folder/a.yaml"
    grep -qF 'hint: write 4096, not 4k or 1e9' "$folder/said"
    grep -v ffn_hidden_size $good > "$folder/b.yaml"
    refused 65 'missing key ffn_hidden_size' "$folder/b.yaml"
    (cat $good; echo 'seq_len: 3') > "$folder/c.yaml"
    refused 65 'did you mean seq_length?' "$folder/c.yaml"
    sed 's/^mlp: .*/mlp: relu/' $good > "$folder/d.yaml"
    refused 65 "expected a layer kind for mlp, got 'relu'" "$folder/d.yaml"
}

@test "workloads: a Hugging Face config.json in place of a YAML" {
    cat > "$folder/config.json" <<'END'
{"model_type": "llama", "_name_or_path": "meta-llama/Llama-2-7b-hf", "hidden_size": 4096,
 "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "vocab_size": 32000,
 "attention_dropout": 0.1, "torch_dtype": "float16", "a key of tomorrow": {}}
END
    build/scale4d workloads "$folder/config.json" > "$folder/out" 2> "$folder/said"
    grep -qx 'name  *Llama-2-7b-hf' "$folder/out"
    grep -qx 'parameters  *6738415616' "$folder/out"
    grep -qF 'config.json: attention_dropout is ignored: there is no dropout here' "$folder/said"
    grep -qF "config.json: key 'a key of tomorrow' is not known here, and ignored" "$folder/said"
    [ "$(wc -l < "$folder/said")" -eq 2 ]
    build/scale4d schedule --workload "$folder/config.json" --gpus 4 --grid 2x1x2x1 \
        --global-batch 2 | grep -q '^# program_check: OK'
    sed -i 's/"model_type": "llama"/"model_type": "bert"/' "$folder/config.json"
    refused 65 "config.json:1: model_type: unknown model_type 'bert'" "$folder/config.json"
    grep -qF 'hint: known: gpt2, llama, mistral' "$folder/said"
    echo '{"model_type": "gpt2",' > "$folder/open.json"
    refused 65 'open.json:2:0: no JSON' "$folder/open.json"
    head -c 100000 /dev/zero | tr '\0' '[' > "$folder/deep.json"
    refused 65 'deep.json:1:' "$folder/deep.json"
}

@test "workloads: keys of layer kinds that a model does not use" {
    (cat $good; echo 'rope_theta: 10000') > "$folder/a.yaml"
    refused 65 'rope_theta: a key of positions: rotary, but this model has learned' "$folder/a.yaml"
    sed 's/^head: .*/head: goldfish-cross-entropy/' $good > "$folder/b.yaml"
    refused 65 'missing key goldfish_k' "$folder/b.yaml"
    (cat "$folder/b.yaml"; echo 'goldfish_k: 4'; echo 'goldfish_h: 13') > "$folder/c.yaml"
    build/scale4d workloads "$folder/c.yaml" | grep -qx 'goldfish_k  *4'
    build/scale4d schedule --workload "$folder/c.yaml" --gpus 4 --grid 2x2x1x1 --global-batch 2 |
        grep -q ' goldfish '
}

@test "workloads: files that are none" {
    refused 65 'No such file' "$folder/none.yaml"
    refused 65 'found a folder' "$folder/"
    : > "$folder/empty.yaml"
    refused 65 'found nothing' "$folder/empty.yaml"
    head -c 200 $good > "$folder/truncated.yaml"
    refused 65 'truncated.yaml' "$folder/truncated.yaml"
    printf 'name: \377\376\001x\n' > "$folder/binary.yaml"
    refused 65 'expected UTF-8 text' "$folder/binary.yaml"
    printf 'name: a\0b\n' > "$folder/nul.yaml"
    refused 65 'found byte 0x00' "$folder/nul.yaml"
    refused 65 'at most 16 MiB' ./../../../../../../../../dev/zero
}

@test "workloads: bombs" {
    (echo 'a: &a [x, x, x, x, x, x, x, x, x]'
        for pair in ab bc cd de ef fg gh hi; do
            f=${pair:0:1} t=${pair:1:1}
            echo "$t: &$t [*$f, *$f, *$f, *$f, *$f, *$f, *$f, *$f, *$f]"
        done) > "$folder/laughs.yaml"
    refused 65 'anchor or alias' "$folder/laughs.yaml"
    head -c 1000000 /dev/zero | tr '\0' '[' > "$folder/deep.yaml"
    refused 65 '64 levels' "$folder/deep.yaml"
    for i in $(seq 20000); do echo "%TAG !a$i! b"; done > "$folder/directives.yaml"
    refused 65 'directive' "$folder/directives.yaml"
}

@test "workloads: an output that cannot be written" {
    for arguments in '' --json gpt-5b; do
        status=0
        build/scale4d workloads $arguments > /dev/full 2> "$folder/said" || status=$?
        [ "$status" -eq 74 ]
    done
}
