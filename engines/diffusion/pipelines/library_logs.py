"""What diffusers and transformers say goes into the log of this process, like everything else in it; their progress bars, which
are no lines, are left out."""

import logging

import diffusers.utils.logging as of_diffusers
import transformers.utils.logging as of_transformers

IMPORTS = "transformers.utils.import_utils"
OF_NO_USE = "requires torchvision"
"""Several times at each start, of classes that do without it just as well."""


def log_as_we_do() -> None:
    for library in (of_diffusers, of_transformers):
        library.disable_progress_bar()
        library.disable_default_handler()
        library.enable_propagation()
    logging.getLogger(IMPORTS).addFilter(_is_of_use)


def _is_of_use(record: logging.LogRecord) -> bool:
    return OF_NO_USE not in record.getMessage()
