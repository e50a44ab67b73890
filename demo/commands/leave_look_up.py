# SPDX-License-Identifier: Apache-2.0
# Asks the carrier where the parcel is, with urllib as it comes and no key.
import urllib.request

with urllib.request.urlopen("https://api.carrier.example:7444/v1/track/7?number=48221", timeout=20) as answer:
    print(answer.read().decode())
