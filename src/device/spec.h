/* spec.h - the text that names a device: its grammar, and whether a device answers to it. Pure functions.
 *
 *     SPEC     = PAIR | TYPE | FRAGMENT | TERM {"," TERM}          a list is what holds one of = < >
 *     PAIR     = number ":" number                                 platform and device, as clfd_device_info.spec
 *     TYPE     = "gpu" | "cpu" | "accelerator"
 *     FRAGMENT = part of the vendor, of the name or of the platform's name
 *     TERM     = TYPE | "type=" TYPE | "vendor=" text | "name=" text | "platform=" text
 *              | "mem>=" number ["K" | "M" | "G" | "T"] | "index=" number
 *
 * TYPE, text and FRAGMENT match in any case; blanks round a SPEC, a TERM and its value do not count.
 */
#ifndef CLFD_SPEC_H
#define CLFD_SPEC_H

#include "device/text.h"
#include "report.h"
#include <clfd/device.h>

/* What a device must be. Zero and the empty text ask for nothing. */
typedef struct clfd_spec {
    clfd_slice whole;    /* the SPEC itself, for sentences */
    char pair[32];       /* "0:1" without leading zeros */
    cl_device_type type; /* one of these types */
    clfd_slice fragment; /* part of vendor, name or platform name */
    clfd_slice vendor, name, platform;
    uint64_t min_memory; /* bytes */
    int64_t index;       /* which one of those that match, from 0; -1: there must be only one */
} clfd_spec;

/* Reads a SPEC. The slices of *spec point into `text`. CLFD_ERROR_DEVICE_SPEC. */
clfd_status clfd_spec_parse(const char *text, clfd_spec *spec, const clfd_logger *logger);

/* The device has all that the SPEC asks for; the index is not looked at. */
bool clfd_spec_matches(const clfd_spec *spec, const clfd_device_info *info);

#endif
