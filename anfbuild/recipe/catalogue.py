"""Where recipes and groups lie: the user's own folders, then those that come with the package.

Hydra reads them through `ConfigSource`s with schemes of our own, `conf://` and `recipes://`, so that every file passes
through `document.read` and `recipes/vision/det.yaml` is the choice `vision/det` of a group named `recipe`.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anfbuild.errors import RecipeError
from anfbuild.recipe.document import Document, read
from anfbuild.recipe.files import shipped
from anfbuild.recipe.shorthand import spell_out

PRIMARY = "config"
"""The primary config, `conf/config.yaml`. A project's own file of that name is not ours to read: it is Hydra's usual
name, and a training project has one."""

_RECIPE = "recipe"
_HYDRA = "hydra"
"""Hydra's own group. What it holds decides how Hydra runs (the environment of jobs, callbacks, search path): it is
Hydra's alone, and no file of ours or of a project adds to it."""


class ConfSource(ConfigSource):
    """A folder of groups, `conf/target/sm8650.yaml`."""

    @staticmethod
    def scheme() -> str:
        return "conf"

    def available(self) -> bool:
        return Path(self.path).is_dir()

    def is_group(self, config_path: str) -> bool:
        return not _of_hydra(config_path) and (Path(self.path) / config_path).is_dir()

    def is_config(self, config_path: str) -> bool:
        return not _of_hydra(config_path) and self._readable(config_path) and self.file(config_path).is_file()

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        if _of_hydra(config_path):
            return []
        entries = sorted((Path(self.path) / config_path).iterdir())
        if config_path == "":
            entries = [entry for entry in entries if not _of_hydra(entry.stem)]
        groups = [entry.name for entry in entries if entry.is_dir()]
        configs = [entry.stem for entry in entries if entry.suffix == ".yaml" and entry.is_file()]
        if results_filter is ObjectType.GROUP:
            return groups
        return configs if results_filter is ObjectType.CONFIG else sorted(groups + configs)

    def load_config(self, config_path: str) -> ConfigResult:
        if not self.is_config(config_path):
            raise ConfigLoadError(f"no config {config_path!r} in {self.path}")
        document = self.document(config_path)
        header = self._get_header_dict(self.file(config_path).read_text(encoding="utf-8")[:512])
        try:
            config = OmegaConf.create(document.data)
        except OmegaConfBaseException as error:
            where = document.place(error.full_key or "")
            raise RecipeError(f"cannot be read: {str(error).splitlines()[0]}", where=where) from error
        return ConfigResult(provider=self.provider, path=self.full_path(), config=config, header=header)

    def document(self, config_path: str) -> Document:
        """The file behind a config path, read once: a recipe is wanted by the checks and by Hydra."""
        path = self.file(config_path)
        if path not in self._documents:
            document = read(path, show(path))
            if config_path.removesuffix(".yaml") != PRIMARY:
                _refuse_hydra(document, path.read_text(encoding="utf-8"))
            self._documents[path] = document
        return self._documents[path]

    @functools.cached_property
    def _documents(self) -> dict[Path, Document]:
        return {}

    def file(self, config_path: str) -> Path:
        """The file behind a config path, whether it exists or not."""
        return Path(self.path) / f"{config_path.removesuffix('.yaml')}.yaml"

    def _readable(self, config_path: str) -> bool:
        return "/" in config_path or self.provider == "main"


class RecipeSource(ConfSource):
    """A folder of recipes: the choices of the group `recipe`, nested ones too, each for the whole config."""

    @staticmethod
    def scheme() -> str:
        return "recipes"

    def is_group(self, config_path: str) -> bool:
        inside = "" if config_path == "" else self._inside(config_path)
        return inside is not None and (Path(self.path) / inside).is_dir()

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """All recipes below, not of this folder alone: so completion and `glob(*)` see `vision/det`."""
        if config_path == "":
            return [] if results_filter is ObjectType.CONFIG else [_RECIPE]
        if results_filter is ObjectType.GROUP:
            return []
        folder = Path(self.path) / (self._inside(config_path) or "")
        files = [path for path in folder.rglob("*.yaml") if path.is_file()]
        return sorted(filter(is_name, (path.relative_to(folder).with_suffix("").as_posix() for path in files)))

    def load_config(self, config_path: str) -> ConfigResult:
        result = super().load_config(config_path)
        result.header["package"] = "_global_"
        if "components" in self.document(config_path).data:
            spell_out(result.config)
        return result

    def file(self, config_path: str) -> Path:
        return super().file(self._inside(config_path) or "")

    def _readable(self, config_path: str) -> bool:
        return is_name((self._inside(config_path) or "").removesuffix(".yaml"))

    @staticmethod
    def _inside(config_path: str) -> str | None:
        """`recipe/vision/det` -> `vision/det`, `recipe` -> ``, anything else -> None."""
        head, _, rest = config_path.partition("/")
        return rest if head == _RECIPE else None


class Catalogue:
    """All recipes and groups that a project sees, the project's own first."""

    def __init__(self, project: Path, loader: type[ConfigLoaderImpl] = ConfigLoaderImpl) -> None:
        version.setbase("1.3")
        plugins = Plugins.instance()
        plugins.register(ConfSource)
        plugins.register(RecipeSource)
        ours = shipped()
        search_path = create_config_search_path(f"conf://{ours / 'conf'}")
        own_recipes = [project / "recipes"] if project != ours else []
        for folder in [ours / "recipes", *own_recipes]:  # each goes right behind `main`: the project's comes first
            search_path.append("recipes", f"recipes://{folder}", anchor=SearchPathQuery(provider="main"))
        if project != ours:
            search_path.prepend("project", f"conf://{project / 'conf'}")
        self.loader = loader(search_path)

    def choices(self, group: str) -> list[str]:
        """What a group offers; empty if there is no such group."""
        return self.loader.repository.get_group_options(group)  # the loader's own would parse overrides each time

    def recipes(self) -> list[str]:
        """Every recipe, by the name that `+recipe=` takes."""
        return self.choices(_RECIPE)

    def document(self, config_path: str) -> Document | None:
        """The file that Hydra would load for `target/sm8650` or `recipe/vision/det`, or None."""
        source = self._source(config_path)
        return source.document(config_path) if source else None

    def shown(self, config_path: str) -> str:
        """How messages call that file."""
        source = self._source(config_path)
        return show(source.file(config_path)) if source else config_path

    def _source(self, config_path: str) -> ConfSource | None:
        sources = [source for source in self.loader.get_sources() if isinstance(source, ConfSource)]
        return next((source for source in sources if source.is_config(config_path)), None)


def is_name(name: str) -> bool:
    """Whether a recipe may have this name: it becomes the name of folders, files and a package."""
    return re.fullmatch(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*", name) is not None


def _of_hydra(config_path: str) -> bool:
    return config_path.strip("/").removesuffix(".yaml").partition("/")[0] == _HYDRA


def _refuse_hydra(document: Document, text: str) -> None:
    """Raises RecipeError: the content of a file, its package or its defaults list reaches into Hydra's own config."""
    where = None
    if _HYDRA in document.data:
        where = document.place(_HYDRA)
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\s*#\s*@package\b.*\bhydra\b", line):
            where = f"{document.shown}:{number}"
    defaults = document.data.get("defaults")
    for index, entry in enumerate(defaults if isinstance(defaults, list) else []):
        keys = entry if isinstance(entry, dict) else [entry]
        if any(re.search(r"(^|[\s/@.])hydra($|[\s/@.])", str(key)) for key in keys):
            where = document.place(f"defaults[{index}]")
    if where is not None:
        raise RecipeError(
            "a file says nothing of Hydra itself",
            where=where,
            remedy="Remove it; -m on the command line sweeps, with hydra/launcher=CHOICE if need be.",
        )


def show(path: Path) -> str:
    """A path as messages give it: relative if it lies below the working directory, so that it opens from there."""
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.as_posix()
