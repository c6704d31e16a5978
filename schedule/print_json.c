/* SPDX-License-Identifier: Apache-2.0 */
/* The program as JSON: everything an executor needs. Tensors and storages are named by their place
 * in their lists, -1 where there is none. */
#include "schedule/flops.h"
#include "schedule/print.h"

static void set_int(json_t *o, const char *key, int64_t v)
{
    json_object_set_new(o, key, json_integer(v));
}

static void set_real(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, json_real(v));
}

static void set_text(json_t *o, const char *key, const char *v)
{
    json_object_set_new(o, key, v ? json_string(v) : json_null());
}

static void set_bool(json_t *o, const char *key, bool v)
{
    json_object_set_new(o, key, json_boolean(v));
}

/* A number, or {"base": ..., "x": stride, ..., "limit": ...}. */
static void set_expr(json_t *o, const char *key, const struct s4d_expr *e)
{
    if (s4d_expr_is_constant(e) && e->limit < 0) {
        set_int(o, key, e->base);
        return;
    }
    json_t *v = json_object();
    set_int(v, "base", e->base);
    for (int a = 0; a < S4D_AXES; a++)
        if (e->stride[a])
            set_int(v, s4d_axis_names[a], e->stride[a]);
    if (e->limit >= 0)
        set_int(v, "limit", e->limit);
    json_object_set_new(o, key, v);
}

static json_t *axes_json(s4d_axes axes)
{
    json_t *v = json_array();
    for (int a = 0; a < S4D_AXES; a++)
        if (axes & S4D_AXIS(a))
            json_array_append_new(v, json_string(s4d_axis_names[a]));
    return v;
}

static json_t *model_json(const struct s4d_model *m)
{
    json_t *o = json_object();
    set_text(o, "name", m->name);
    set_int(o, "num_layers", m->num_layers);
    set_int(o, "hidden_size", m->hidden_size);
    set_int(o, "num_attention_heads", m->num_attention_heads);
    set_int(o, "num_key_value_heads", m->num_key_value_heads);
    set_int(o, "ffn_hidden_size", m->ffn_hidden_size);
    set_int(o, "vocab_size", m->vocab_size);
    set_int(o, "seq_length", m->seq_length);
    return o;
}

static json_t *grid_json(const struct s4d_grid *g)
{
    json_t *o = json_object(), *order = json_array();
    for (int a = 0; a < S4D_AXES; a++) {
        set_int(o, s4d_axis_names[a], g->size[a]);
        json_array_append_new(order, json_string(s4d_axis_names[g->order[a]]));
    }
    json_object_set_new(o, "rank_order", order);
    return o;
}

static json_t *options_json(const struct s4d_options *x)
{
    char overlap[128];
    s4d_overlap_format(&x->overlap, overlap, sizeof overlap);
    json_t *o = json_object();
    set_int(o, "global_batch", x->global_batch);
    set_int(o, "micro_batch", x->micro_batch);
    set_text(o, "recompute", s4d_recompute_names[x->recompute]);
    set_text(o, "overlap", overlap);
    set_int(o, "cache_layers", x->cached_layers);
    set_text(o, "precision", s4d_type_names[x->precision]);
    set_text(o, "gradient_type", s4d_type_names[x->gradient_type]);
    set_text(o, "gradient_reduce", x->gradient_reduce == S4D_REDUCE_BUCKETS ? "buckets" : "at-end");
    set_bool(o, "loss_scaling", x->loss_scaling);
    set_real(o, "learning_rate", x->learning_rate);
    set_real(o, "clip_norm", x->clip_norm);
    return o;
}

static json_t *storages_json(const struct s4d_program *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_storages; i++) {
        const struct s4d_storage *s = &p->storages[i];
        json_t *o = json_object();
        set_text(o, "name", s->name);
        set_int(o, "bytes", s->bytes);
        set_text(o, "place", s->place == S4D_PINNED_HOST ? "pinned-host" : "device");
        set_text(o, "role", s4d_role_names[s->role]);
        set_bool(o, "persistent", s->persistent);
        set_int(o, "offset", s->offset);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *tensors_json(const struct s4d_program *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_tensors; i++) {
        const struct s4d_tensor *t = &p->tensors[i];
        json_t *o = json_object(), *shape = json_array(), *stride = json_array();
        for (int d = 0; d < t->dims; d++) {
            json_array_append_new(shape, json_integer(t->shape[d]));
            json_array_append_new(stride, json_integer(t->stride[d]));
        }
        set_text(o, "name", t->name);
        set_int(o, "storage", t->storage);
        set_text(o, "type", s4d_type_names[t->type]);
        set_expr(o, "offset", &t->offset);
        json_object_set_new(o, "shape", shape);
        json_object_set_new(o, "stride", stride);
        json_array_append_new(list, o);
    }
    return list;
}

/* The names of parts that are saved apart; empty where hf_name is saved. */
static json_t *hf_parts_json(const struct s4d_param *q)
{
    json_t *names = json_array();
    for (int part = 0; part < q->parts; part++)
        if (q->hf_part_name[part])
            json_array_append_new(names, json_string(q->hf_part_name[part]));
    return names;
}

static json_t *params_json(const struct s4d_program *p)
{
    static const char *const inits[] = {"zero", "one", "normal"};
    json_t *list = json_array();
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        json_t *o = json_object(), *cols = json_array();
        for (int part = 0; part < q->parts; part++)
            json_array_append_new(cols, json_integer(q->part_cols[part]));
        set_text(o, "name", q->name);
        set_text(o, "hf_name", q->hf_name);
        json_object_set_new(o, "hf_parts", hf_parts_json(q));
        set_bool(o, "hf_transposed", q->hf_transposed);
        set_int(o, "rows", q->rows);
        json_object_set_new(o, "part_cols", cols);
        set_text(o, "row_axis", q->row_axis < 0 ? NULL : s4d_axis_names[q->row_axis]);
        set_text(o, "col_axis", q->col_axis < 0 ? NULL : s4d_axis_names[q->col_axis]);
        set_bool(o, "sharded_z", q->sharded_z);
        set_int(o, "block_elements", q->block_elements);
        set_int(o, "shard_elements", q->shard_elements);
        set_int(o, "master", q->master);
        set_int(o, "working", q->working);
        set_int(o, "gradient", q->gradient);
        set_text(o, "init", inits[q->init]);
        set_real(o, "init_std", q->init_std);
        json_object_set_new(o, "replicated", axes_json(q->replicated));
        json_object_set_new(o, "summed", axes_json(q->summed));
        set_bool(o, "decay", q->decay);
        json_array_append_new(list, o);
    }
    return list;
}

static void set_collective(json_t *o, const struct s4d_op *x)
{
    json_object_set_new(o, "axes", axes_json(x->c.collective.axes));
    set_text(o, "reduction", x->c.collective.reduction == S4D_MAX ? "max" : "sum");
    set_text(o, "type", s4d_type_names[x->c.collective.type]);
    set_int(o, "count", x->c.collective.count);
    set_int(o, "members", x->c.collective.members);
    set_int(o, "bytes", s4d_collective_bytes(&x->c, x->kind));
}

static void set_message(json_t *o, const struct s4d_op *x)
{
    set_text(o, "channel", s4d_channel_names[x->c.message.channel]);
    set_int(o, "peer", x->c.message.peer);
    set_text(o, "type", s4d_type_names[x->c.message.type]);
    set_int(o, "count", x->c.message.count);
    set_int(o, "bytes", s4d_collective_bytes(&x->c, x->kind));
}

static json_t *constants_json(const struct s4d_op *x)
{
    json_t *o = json_object();
    if (s4d_op_kinds[x->kind].op_class == S4D_CLASS_MESSAGE)
        set_message(o, x);
    if (s4d_op_kinds[x->kind].op_class == S4D_CLASS_COLLECTIVE)
        set_collective(o, x);
    for (const struct s4d_constant *c = s4d_op_kinds[x->kind].constants; c && c->name; c++) {
        const void *field = (const char *)&x->c + c->offset;
        switch (c->type) {
        case S4D_CONSTANT_INT:
            set_int(o, c->name, *(const int64_t *)field);
            break;
        case S4D_CONSTANT_REAL:
            set_real(o, c->name, *(const double *)field);
            break;
        case S4D_CONSTANT_BOOL:
            set_bool(o, c->name, *(const bool *)field);
            break;
        case S4D_CONSTANT_FUNCTION:
            set_text(o, c->name, s4d_function_names[*(const enum s4d_function *)field]);
            break;
        case S4D_CONSTANT_EXPR:
            set_expr(o, c->name, field);
            break;
        }
    }
    return o;
}

static json_t *operands_json(const struct s4d_op *x)
{
    static const char *const accesses[] = {"none", "read", "write", "accumulate"};
    json_t *o = json_object();
    for (int k = 0; k < s4d_op_kinds[x->kind].n_operands; k++) {
        if (x->operand[k].tensor < 0)
            continue;
        json_t *u = json_object();
        set_int(u, "tensor", x->operand[k].tensor);
        set_text(u, "access", accesses[x->operand[k].access & 3]);
        json_object_set_new(o, s4d_op_kinds[x->kind].operand[k].name, u);
    }
    return o;
}

static json_t *waits_json(const struct s4d_op *x)
{
    static const char *const kinds[] = {"data", "memory", "order"};
    json_t *list = json_array();
    for (int w = 0; w < x->n_waits; w++) {
        json_t *o = json_object();
        set_int(o, "iteration", x->waits[w].iteration);
        set_text(o, "stream", s4d_streams[x->waits[w].stream].name);
        set_int(o, "position", x->waits[w].position);
        set_text(o, "kind", kinds[x->waits[w].kind]);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *ops_json(const struct s4d_program *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *x = &p->ops[i];
        json_t *o = json_object();
        set_text(o, "kind", s4d_op_kinds[x->kind].name);
        set_text(o, "stream", s4d_streams[x->stream].name);
        set_int(o, "position", x->position);
        if (x->batch != 0)
            set_int(o, "batch", x->batch);
        set_text(o, "phase", s4d_phase_names[x->label.phase]);
        set_int(o, "layer", x->label.layer);
        set_int(o, "micro_batch", x->label.micro_batch);
        set_text(o, "name", x->label.name);
        json_object_set_new(o, "operands", operands_json(x));
        json_object_set_new(o, "constants", constants_json(x));
        set_real(o, "flops", x->flops);
        set_real(o, "model_flops", x->model_flops);
        set_int(o, "bytes_read", x->bytes_read);
        set_int(o, "bytes_written", x->bytes_written);
        json_object_set_new(o, "waits", waits_json(x));
        json_array_append_new(list, o);
    }
    return list;
}

json_t *s4d_program_json(const struct s4d_program *p)
{
    json_t *o = json_object();
    set_text(o, "kind", "schedule");
    json_object_set_new(o, "model", model_json(&p->model));
    json_object_set_new(o, "grid", grid_json(&p->grid));
    json_object_set_new(o, "options", options_json(&p->options));
    if (p->grid.size[S4D_PIPE] > 1)
        set_int(o, "stage", p->stage);
    set_int(o, "micro_batches", p->micro_batches);
    set_int(o, "tokens", p->tokens);
    set_int(o, "parameters", s4d_program_parameters(p));
    set_real(o, "flops_model", s4d_program_model_flops(p));
    set_real(o, "flops_executed", s4d_program_executed_flops(p));
    set_int(o, "device_bytes", p->arena_bytes[S4D_DEVICE]);
    set_int(o, "pinned_host_bytes", p->arena_bytes[S4D_PINNED_HOST]);
    json_object_set_new(o, "storages", storages_json(p));
    json_object_set_new(o, "tensors", tensors_json(p));
    json_object_set_new(o, "params", params_json(p));
    json_object_set_new(o, "ops", ops_json(p));
    set_int(o, "loss", p->loss);
    set_int(o, "grad_norm", p->grad_norm);
    set_int(o, "tokens_host", p->tokens_host);
    return o;
}
