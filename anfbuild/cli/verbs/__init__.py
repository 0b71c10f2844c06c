"""One file a verb, and this table of them: what each takes. A verb is imported when it is asked for.

`run(arguments, project, console)` of a verb's module returns the exit code and the document for `--json`, and raises
AnfbuildError for what the user can mend.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Verb:
    """What the command line of a verb may hold beside overrides and the options that all verbs take."""

    words: tuple[str, ...] = ()
    """The plain words that follow it, each as help calls it."""
    optional: bool = False
    """Whether the words may be left out."""
    options: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    """Option -> what help calls its value, or None for one that takes no value."""


BUILD = Verb(
    options={
        "--accept": None,
        "--junit": "FILE",
        "--lock": None,
        "--locked": None,
        "--push": None,
        "--remote": "URL",
        "--resume": "ID",
    }
)
"""Without a verb: build, or with `-m` a sweep."""

VERBS: Mapping[str, Verb] = {
    "cache": Verb(
        ("status|verify|gc|pin|unpin|push|pull",),
        options={"--max-size": "SIZE", "--older-than": "AGE", "--grace": "AGE", "--delete": None, "--remote": "URL"},
    ),
    "fit": Verb(
        ("TARGET", "FILE"),
        options={"--like": "TARGET", "--models": "FOLDER", "--output": "FILE", "--overwrite": None},
    ),
    "lint": Verb(("MODEL",), optional=True, options={"--rules": None, "--sarif": None}),
    "predict": Verb(("MODEL",), options={"--no-compile": None}),
    "reproduce": Verb(options={"--keep": None}),
    "why": Verb(words=("STEP",)),
}
