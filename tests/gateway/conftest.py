# SPDX-License-Identifier: Apache-2.0
"""All tests of this folder run in a network namespace of their own."""

import rig

rig.namespace()
