# SPDX-License-Identifier: Apache-2.0
# Prints the text of every message inside of the mail.
import email
import email.policy
from typing import Any


def show(message: Any, depth: int) -> None:
    if message.get_content_type() == "text/plain":
        print(f"depth {depth}: {message.get_content()}")
    for part in message.iter_parts() if message.is_multipart() else []:
        inner = part.get_content_type() == "message/rfc822"
        show(part.get_content() if inner else part, depth + inner)


with open("/work/48221/thread.eml", "rb") as f:
    show(email.message_from_binary_file(f, policy=email.policy.default), 0)
