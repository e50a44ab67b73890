# SPDX-License-Identifier: Apache-2.0
"""Being here, it puts this folder on the path of the suites below: `import daemon`. SIGTERM ends a run as Ctrl-C does:
daemons are stopped and what they made is taken away."""

import signal

signal.signal(signal.SIGTERM, signal.default_int_handler)
