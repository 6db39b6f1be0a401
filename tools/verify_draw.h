/* verify_draw.h - the parts of draw_trial. Each reads what the ones before it drew. */
#ifndef TOOLS_VERIFY_DRAW_H
#define TOOLS_VERIFY_DRAW_H

#include "verify_view.h"

/* What a generator is for. */
enum { PURPOSE_SPECIALISATION = 1, PURPOSE_TRIAL = 2, PURPOSE_DATA = 3 };

#define PICK(rng, table) (table)[rng_below(rng, sizeof(table) / sizeof(table)[0])]

/* The features that follow from what is compiled in. */
feature_set draw_specialisation_features(const draw_specialisation *specialisation);

/* A length from 1 to `most`: often at a tile's edge, else any size. */
uint32_t draw_length(rng_state *rng, uint32_t most);

/* Lengths, starts and positions of the sequences. */
void draw_sequences(rng_state *rng, verify_trial *trial);

/* Window, softcap and scale; strides and placements of bias and mask; slopes and sinks. */
void draw_scores(rng_state *rng, verify_trial *trial);

/* Cache rows, and the pages that the rows of the block table have; what is wrong with them. */
void draw_cache(rng_state *rng, verify_trial *trial);

/* Strides, layout and placements of q, K, V and out, and of everything that lies as they do. */
void draw_layout(rng_state *rng, bool aligned, verify_trial *trial);

/* Strides and placements of the scales and zeros of K or V. */
void draw_scales(rng_state *rng, verify_trial *trial);

/* What is checked beside the result; whether a sequence can be computed alone. */
void draw_checks(rng_state *rng, verify_trial *trial);

/* Bytes by which the operand of a call of sequence b alone lies behind that of the whole batch. */
size_t draw_alone_shift(const verify_trial *trial, verify_operand operand, uint32_t b);

/* The features that follow from what was drawn; strides have marked theirs already. */
void draw_features(const draw_specialisation *specialisation, verify_trial *trial);

/* Keys of each sequence whose pages are needed, as draw_page_needed takes them. */
void draw_needs(const verify_trial *trial, view_keys needs[TRIAL_MAX_BATCH]);

/* Whether a key of some sequence needs page `page` of a row of the block table. */
bool draw_page_needed(const verify_trial *trial, const view_keys *needs, uint32_t row, uint32_t page);

/* Strides of a tensor [batch][token][head][inner], dense in some order with some padding behind each dimension. */
typedef struct draw_shape {
    uint64_t counts[3]; /* batch, token, head */
    uint32_t inner;     /* units of the innermost dimension */
    uint32_t unit;      /* what padding is a multiple of */
    bool head_first;    /* the default order has heads before tokens */
    bool may_broadcast;
    bool explicit_strides; /* the default will not do */
} draw_shape;

/* *given is what the descriptor says: zeros for the default. */
clfd_strides draw_strides(rng_state *rng, const draw_shape *shape, clfd_strides *given, verify_feature mark,
                          verify_trial *trial);

/* Units from the first to the last of a tensor. */
size_t draw_extent(const draw_shape *shape, const clfd_strides *strides);

/* Bytes around an operand: `before` a multiple of its alignment, `after` any number of elements, also none. */
verify_placement draw_placement(rng_state *rng, size_t bytes, size_t element, size_t alignment);

/* An array of `count` elements of `element` bytes. */
verify_placement draw_array(rng_state *rng, size_t count, size_t element);

/* The shape of K, V or their scales. */
draw_shape draw_cache_shape(const verify_trial *trial, uint32_t inner);

#endif
