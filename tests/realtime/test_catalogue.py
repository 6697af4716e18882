import msgspec

from engines.deployment import GraphSettings, StageSettings, VoiceOutput
from realtime.catalogue import Catalogue, catalogue
from realtime.deployment import load


def test_the_default_deployment_names_what_clients_may_name() -> None:
    names = catalogue(load().graph)
    assert names == Catalogue(
        pipeline="antiphon-voice",
        chat=("smollm2-135m-instruct", "antiphon-voice"),
        transcription=("whisper-tiny-en",),
        voices={"joe": "audio", "heart": "narration"},
        speakers={"joe": "piper-joe", "heart": "kokoro"},
    )
    assert names.models == ("antiphon-voice", "smollm2-135m-instruct", "piper-joe", "kokoro", "whisper-tiny-en")


def test_weights_of_ones_own_are_named_by_their_folder() -> None:
    graph = load().graph
    mine = StageSettings(model="vllm", directory="/models/big-1b")
    assert catalogue(msgspec.structs.replace(graph, stages=graph.stages | {"thinker": mine})).chat[0] == "big-1b"


def test_what_is_not_there_has_no_models() -> None:
    stages = {"mine": StageSettings(model="m:M", directory="/m")}
    graph = GraphSettings(pipeline="mine:PIPELINE", workers={}, stages=stages, voices={"mia": VoiceOutput("song")})
    names = catalogue(graph)
    assert (names.chat, names.transcription, names.speech) == ((), (), ())
    assert names.voices == {"mia": "song"}


def test_who_paints_is_named_by_its_folder() -> None:
    painter = StageSettings(model="m:M", directory="/models/flux")
    graph = GraphSettings(pipeline="images", workers={}, stages={"painter": painter}, voices={})
    names = catalogue(graph)
    assert (names.pictures, names.films) == (("flux", "antiphon-images"), ())
    assert names.models == ("antiphon-images", "flux")
    filming = catalogue(msgspec.structs.replace(graph, pipeline="videos"))
    assert (filming.pictures, filming.films) == ((), ("flux", "antiphon-videos"))
