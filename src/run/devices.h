/* devices.h - what the device layer cannot say of a device, because it is a matter of plans. */
#ifndef CLFD_DEVICES_H
#define CLFD_DEVICES_H

#include "device/caps.h"

/* Fills info->family: the kernel family that a plan would try first for a common attention (f16, head_dim 128, 32 query
 * heads on 8 KV heads) where no tuning file has a row for it, or "none" where clfd refuses the device. */
void clfd_devices_name_family(const clfd_caps *caps, clfd_device_info *info);

#endif
