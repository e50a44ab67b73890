# SPDX-License-Identifier: Apache-2.0
"""How the demo speaks to a person: short aligned lines, colours on a terminal only, and a list of what was not met."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

WIDTH = 110
COLOURS = {"green": "32", "red": "31", "bold": "1", "dim": "2"}


def shorten(text: str, width: int) -> str:
    return shorten_end(" ".join(text.split()), width)


def shorten_end(line: str, width: int) -> str:
    """A line of a table: its columns stay where they are."""
    return line if len(line) <= width else line[: width - 3] + "..."


def printable(text: str) -> str:
    """Bytes that a hostile program chose, without what a terminal obeys."""
    return "".join(c if c.isprintable() else " " for c in text)


class Story:
    def __init__(self) -> None:
        self.colour = sys.stdout.isatty()
        self.unmet: list[str] = []
        self.met = 0

    def paint(self, colour: str, text: str) -> str:
        return f"\033[{COLOURS[colour]}m{text}\033[0m" if self.colour else text

    def say(self, text: str = "") -> None:
        print(text, flush=True)

    def chapter(self, title: str) -> None:
        self.say("\n" + self.paint("bold", title))

    def line(self, label: str, text: str) -> None:
        """One aligned line below a verdict."""
        if text:
            self.say(f"         {self.paint('dim', f'{label:8}')} {shorten(printable(text), WIDTH - 18)}")

    def verdict(self, name: str, wrong: list[str], facts: str = "", good: str = "held") -> bool:
        """An expectation: met when nothing is wrong."""
        if wrong:
            self.unmet += [f"{name}: {why}" for why in wrong]
            self.say(f"  {self.paint('red', 'BROKEN')} {name}")
            for why in wrong:
                self.line("", why)
        else:
            self.met += 1
            self.say(f"  {self.paint('green', f'{good:6}')} {name:24} {facts}".rstrip())
        return not wrong

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """A step that takes a while: said before, timed after."""
        began = time.monotonic()
        if self.colour:
            print(f"  ...    {what}", end="", flush=True)
        yield
        print(f"{chr(13) if self.colour else ''}  {self.paint('green', 'done  ')} {what} ({time.monotonic() - began:.1f} s)")

    def end(self, seconds: float) -> int:
        self.say()
        if self.unmet:
            self.say(self.paint("red", f"{len(self.unmet)} expectations were not met, {self.met} were:"))
            for text in self.unmet:
                self.say(f"  - {printable(text)}")
            return 1
        self.say(self.paint("green", f"All {self.met} expectations were met in {seconds:.1f} s."))
        return 0
