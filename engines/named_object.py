"""`module:NAME`, as a deployment or a command line names an object that lives elsewhere."""

from importlib import import_module

from engines.worker.foreign import attempt


def is_reference(text: str) -> bool:
    """Whether it has the form, with a module that is not relative; nothing is imported for it."""
    module, _, name = text.partition(":")
    return name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def imported(reference: str) -> object:
    """Raises ValueError with a sentence, also for whatever the module raises while it is imported."""
    if not is_reference(reference):
        raise ValueError(f"expected `module:NAME`, got {reference!r}")
    path, _, name = reference.partition(":")
    module = attempt(import_module, path)
    if isinstance(module, Exception):
        raise ValueError(f"{reference!r} cannot be imported: {type(module).__name__}: {module}") from module
    if name not in vars(module):
        raise ValueError(f"{reference!r} cannot be imported: module {path} has no {name}")
    return vars(module)[name]
