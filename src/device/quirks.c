#include "device/quirks.h"
#include "device/text.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A row applies where everything that it names is there; NULL and 0 name nothing. */
static const struct {
    cl_device_type type;
    const char *platform, *vendor; /* fragments */
    const char *extension;         /* whole word */
    uint32_t compute_capability;   /* at least */
    size_t member;                 /* the bool of clfd_caps that becomes true, or false where the row forbids */
    bool forbids;
    const char *build_option;
    const char *reason;
} quirks[] = {
    {
        .type = CL_DEVICE_TYPE_CPU,
        .platform = "Portable Computing Language",
        .member = offsetof(clfd_caps, prefetch),
        .reason = "PoCL compiles __builtin_prefetch to the processor's own instruction; Mesa's compiler aborts the "
                  "process at it",
    },
    {
        .type = CL_DEVICE_TYPE_CPU,
        .platform = "Portable Computing Language",
        .member = offsetof(clfd_caps, blocking),
        .reason =
            "PoCL compiles a register-blocked kernel in 2 s and it is several times as fast as a plain one; Mesa's "
            "llvmpipe took 100 s for the same kernel, 15 s for the plain one",
    },
    {
        .platform = "Portable Computing Language",
        .extension = "cl_khr_subgroup_shuffle",
        .member = offsetof(clfd_caps, shuffle),
        .forbids = true,
        .reason =
            "PoCL 5.0 computes wrong results where sub-group shuffles stand in unrolled loops: decode_lanes is right "
            "there with local memory and wrong with shuffles",
    },
    {
        .vendor = "NVIDIA",
        .extension = CLFD_NVIDIA_ATTRIBUTES,
        .member = offsetof(clfd_caps, ptx),
        .reason =
            "NVIDIA's compiler takes inline PTX, though no extension says so, and offers no sub-groups: shuffles are "
            "to be had no other way",
    },
    {
        .vendor = "NVIDIA",
        .extension = CLFD_NVIDIA_ATTRIBUTES,
        .compute_capability = 7,
        .member = offsetof(clfd_caps, fused_merge),
        .reason =
            "fence.acq_rel.gpu, from compute capability 7.0, orders memory across work-groups, which mem_fence of "
            "OpenCL C 1.2 does not",
    },
    {
        .vendor = "NVIDIA",
        .member = offsetof(clfd_caps, local_mem_padded),
        .reason =
            "NVIDIA's driver reports an alignment more of local memory than a kernel has, also where it has all there "
            "is; its compiler refuses what is really too much",
    },
    {
        .vendor = "NVIDIA",
        .extension = CLFD_NVIDIA_ATTRIBUTES,
        .compute_capability = 9,
        .member = offsetof(clfd_caps, ptx_fp8),
        .reason = "cvt.rn.f16x2.e4m3x2 begins with compute capability 8.9, of which the major number is read here",
    },
    {
        .vendor = "NVIDIA",
        .extension = CLFD_NVIDIA_ATTRIBUTES,
        .compute_capability = 8,
        .member = offsetof(clfd_caps, matrix),
        .reason = "mma.sync m16n8k16 and cp.async begin with compute capability 8.0",
    },
    {
        .vendor = "NVIDIA",
        .extension = CLFD_NVIDIA_ATTRIBUTES,
        .compute_capability = 9,
        .member = offsetof(clfd_caps, cache_hints),
        .reason =
            "cp.async takes cache policies from compute capability 8.0; NVIDIA's compiler makes instructions of some "
            "that the device refuses, which was looked for on 9.0 and, in code alone, on 10.0 and 12.0",
    },
    {
        .type = CL_DEVICE_TYPE_GPU,
        .platform = "Intel(R) OpenCL",
        .member = offsetof(clfd_caps, buffers_over_4g),
        .build_option = "-cl-intel-greater-than-4GB-buffer-required",
        .reason = "Intel's GPU compiler may address buffers by 32-bit offsets unless told otherwise; other compilers "
                  "refuse the option (PoCL 3.1: CL_INVALID_BUILD_OPTIONS)",
    },
};

static bool applies(size_t row, const clfd_identity *identity)
{
    return (quirks[row].type == 0 || (quirks[row].type & identity->type) != 0) &&
           (quirks[row].platform == NULL ||
            clfd_text_contains(identity->platform, clfd_slice_of(quirks[row].platform))) &&
           (quirks[row].vendor == NULL || clfd_text_contains(identity->vendor, clfd_slice_of(quirks[row].vendor))) &&
           (quirks[row].extension == NULL || clfd_text_has_word(identity->extensions, quirks[row].extension)) &&
           identity->compute_capability >= quirks[row].compute_capability;
}

static void append_option(clfd_caps *caps, const char *option)
{
    const size_t used = strlen(caps->build_options);

    snprintf(caps->build_options + used, sizeof caps->build_options - used, "%s%s", used > 0 ? " " : "", option);
}

void clfd_quirks_apply(const clfd_identity *identity, clfd_caps *caps, const clfd_logger *logger)
{
    for (size_t i = 0; i < sizeof quirks / sizeof quirks[0]; i++) {
        if (!applies(i, identity))
            continue;
        *(bool *)((char *)caps + quirks[i].member) = !quirks[i].forbids;
        if (quirks[i].build_option != NULL)
            append_option(caps, quirks[i].build_option);
        clfd_note(logger, CLFD_LOG_INFO, "quirk in force: %s", quirks[i].reason);
    }
}
