# SPDX-License-Identifier: Apache-2.0
"""Being here, it puts this folder on the path of the suites below: `import daemon`."""
