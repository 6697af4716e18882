"""The pipelines of pictures and films, as records."""

import subprocess
import sys

import pytest

from engines.pipeline import Pipeline, PipelineError
from engines.pipelines.pictures import IMAGES, VIDEOS


@pytest.mark.parametrize(("pipeline", "output"), [(IMAGES, "image"), (VIDEOS, "video")])
def test_uploads_are_decoded_and_prompts_alone_are_not(pipeline: Pipeline, output: str) -> None:
    pipeline.check()
    assert pipeline.active_stages("painter", (output,)) == ("painter", "developer")
    assert pipeline.active_stages("pixels", (output,)) == ("pixels", "painter", "developer")
    with pytest.raises(PipelineError):
        pipeline.active_stages("developer", (output,))


def test_the_gateways_side_loads_no_library_of_pictures() -> None:
    program = "import sys, engines.pipelines.pictures; sys.exit('PIL' in sys.modules or 'av' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
