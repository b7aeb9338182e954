// SPDX-License-Identifier: Apache-2.0
// The software accelerator's one exported symbol, for those who link it instead of loading it.
#pragma once

#include "strait/plugin.h"

extern "C" __attribute__((visibility("default"))) const strait_provider_ops* strait_provider_plugin(void);
