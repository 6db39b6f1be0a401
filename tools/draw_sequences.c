#include "verify_draw.h"
#include "verify_view.h"

uint32_t draw_length(rng_state *rng, uint32_t most)
{
    static const uint32_t tiles[] = {16, 32, 64, 128, 256, 1024};
    const uint32_t edge = PICK(rng, tiles) * rng_between(rng, 1, 4) + rng_below(rng, 3) - 1;

    return rng_chance(rng, 40) && edge <= most ? edge : rng_log(rng, 1, most);
}

/* Lengths as a caller may give them, right or wrong, and as they count. */
static void draw_lengths(rng_state *rng, verify_trial *trial)
{
    const uint32_t capacity = trial->attention.max_kv_len;
    const uint32_t bound = trial->kv_len_bound > 0 && trial->kv_len_bound < capacity ? trial->kv_len_bound : capacity;
    const bool ragged = rng_chance(rng, 75);

    for (uint32_t s = 0; s < trial->num_sequences; s++) {
        const uint32_t kind = rng_below(rng, 20);
        int64_t length = capacity;
        if (ragged && kind < 14)
            length = draw_length(rng, capacity);
        else if (ragged && kind < 16)
            length = 0;
        else if (ragged && kind == 16)
            length = rng_chance(rng, 50) ? INT32_MIN : -(int64_t)rng_between(rng, 1, 1000);
        else if (ragged && kind == 17)
            length = rng_chance(rng, 50) ? INT32_MAX : (int64_t)capacity + rng_between(rng, 1, 1000);
        trial->kv_lens[s] = (int32_t)length;
        trial->lengths[s] = length < 0 ? 0 : length > bound ? bound : (uint32_t)length;
    }
    if (ragged)
        trial->placements[OPERAND_KV_LENS] = draw_array(rng, trial->num_sequences, sizeof(int32_t));
}

/* First keys: mostly within the sequence. */
static void draw_starts(rng_state *rng, verify_trial *trial)
{
    if (!trial->attention.kv_start)
        return;
    for (uint32_t s = 0; s < trial->num_sequences; s++) {
        const uint32_t length = trial->lengths[s];
        const int64_t wild[] = {INT32_MIN,           -1,       -(int64_t)rng_between(rng, 1, 1000), length,
                                (int64_t)length + 1, INT32_MAX};
        const uint32_t kind = rng_below(rng, 10);
        trial->kv_start[s] = (int32_t)(kind < 2                 ? 0
                                       : kind < 8 && length > 0 ? rng_below(rng, length)
                                                                : PICK(rng, wild));
    }
    trial->placements[OPERAND_KV_START] = draw_array(rng, trial->num_sequences, sizeof(int32_t));
}

/* Positions: the usual one, any within the sequence, or (in some problems) any number at all. */
static void draw_positions(rng_state *rng, verify_trial *trial)
{
    const clfd_attention *a = &trial->attention;
    const uint32_t usual = rng_below(rng, 100), wildness = rng_chance(rng, 50) ? 30 : 0;

    if (!a->query_positions)
        return;
    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < a->q_len; i++) {
            const int64_t length = trial->lengths[view_sequence(trial, b)];
            const int64_t wild[] = {INT32_MIN,   INT32_MIN + 1, INT32_MAX,  INT32_MAX - 1, -1,
                                    -length - 1, length,        length + 1, 2 * length,    0};
            int64_t position = length - a->q_len + i;
            if (rng_chance(rng, wildness))
                position = PICK(rng, wild);
            else if (!rng_chance(rng, usual) && length > 0)
                position = rng_below(rng, (uint32_t)length);
            trial->query_positions[b * a->q_len + i] = (int32_t)position;
        }
    trial->placements[OPERAND_QUERY_POSITIONS] = draw_array(rng, (size_t)trial->batch * a->q_len, sizeof(int32_t));
}

void draw_sequences(rng_state *rng, verify_trial *trial)
{
    trial->num_sequences = trial->attention.shared_kv ? 1 : trial->batch;
    draw_lengths(rng, trial);
    draw_starts(rng, trial);
    draw_positions(rng, trial);
}
