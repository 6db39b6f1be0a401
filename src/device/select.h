/* select.h - finding every device, and choosing one. The public functions stand on these (run/devices.h). */
#ifndef CLFD_SELECT_H
#define CLFD_SELECT_H

#include "device/caps.h"
#include "device/spec.h"

typedef struct clfd_found_device {
    clfd_device_info info; /* all but `family`, which is a matter of the plan layer */
    clfd_caps caps;        /* with nothing disabled */
} clfd_found_device;

typedef struct clfd_device_list {
    clfd_found_device *devices; /* malloc'ed: freed by the caller */
    size_t count;
} clfd_device_list;

/* Every device of every platform, in their order. A platform without a device is skipped; one that cannot say which it
 * has, and a device that cannot be read, are skipped with a warning, and the numbers in `spec` count them.
 * CLFD_ERROR_NO_PLATFORM where nothing is left; *list is then empty and needs no free. */
clfd_status clfd_find_devices(clfd_device_list *list, const clfd_logger *logger);

/* The device that a SPEC means, or the best one where spec is NULL: see clfd_select_device. Pure. The list holds one
 * device at least. CLFD_ERROR_NO_DEVICE_MATCH, CLFD_ERROR_AMBIGUOUS_DEVICE. */
clfd_status clfd_choose_device(const clfd_device_list *list, const clfd_spec *spec, size_t *chosen,
                               const clfd_logger *logger);

#endif
