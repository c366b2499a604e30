import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
START = re.compile(r"^(?:use rule (\w+) as (\w+) with|(?:rule|checkpoint) (\w+)):", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """The text of a rule, and the name of the one that it inherits from."""

    text: str
    parent: str | None

    def part(self, key: str) -> str:
        """Return what stands below a key, of this rule or of what it inherits from."""
        found = re.search(rf"^    {key}:(.*\n(?:        .*\n|\n)*)", self.text, re.MULTILINE)
        if found:
            return found[1]
        return rules()[self.parent].part(key) if self.parent else ""

    def paths(self, key: str, **names: str) -> list[Path]:
        """Return the paths below a key, without the folder that settings may change."""
        texts = re.findall(r'"<\w+>/([^"]+)"', self.part(key))
        # Some are f-strings, whose wildcards have two braces.
        return [Path(text.replace("{{", "{").replace("}}", "}").format(**names)) for text in texts]

    @property
    def job(self) -> str | None:
        """The kind of work that the rule does, if it is one."""
        found = re.search(r'values_and_code_of\("(\w+)"', self.part("params"))
        return found and found[1]

    def name_in(self, key: str) -> str | None:
        """Return the name of the file that a key gives, without folder and suffix."""
        found = re.search(r'"\.\./\w+/(\w+)\.\w+"', self.part(key))
        return found and found[1]


@cache
def rules() -> dict[str, Rule]:
    found = {}
    for file in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]:
        _, *parts = START.split(file.read_text(encoding="utf-8"))
        for parent, heir, name, text in zip(*[iter(parts)] * 4, strict=True):
            found[heir or name] = Rule(text, parent)
    return found
