"""NerCo: contrast by semantic class, then tagging over a lattice of characters and words (Zhang et al., IJCAI 2023).

Without the lattice it is a tagger on any encoder and for any language: BERT-CRF. PyTorch and onnxruntime are imported
by the methods that need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onoma.errors import OnomaError
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import NOT_RESTORED, Runtime, RuntimeSettings
from onoma.systems.nerco.options import LEXICON_FILE, VECTOR_NAMES_FILE, NerCoOptions
from onoma.systems.options import parse_options

if TYPE_CHECKING:
    from torch import nn

    from onoma.training.stages import Training


class NerCoSystem:
    """NerCo's entry in the registry."""

    name = "nerco"
    artifacts = (LEXICON_FILE, VECTOR_NAMES_FILE)
    optional_stages = ("contrast", "head", "lattice")

    def parse_options(self, values: Mapping[str, Any]) -> NerCoOptions:
        """The options of a recipe or of config.json."""
        return parse_options(NerCoOptions, values)

    def stage_names(self, options: NerCoOptions) -> tuple[str, ...]:
        """Contrast, the warm start of the upper parts, and tagging."""
        return options.stage_names()

    def build(self, config: ModelConfig, folder: Path) -> nn.Module:
        """An untrained model of the shape that a configuration describes."""
        from onoma.systems.blocks.encoders import empty_encoder
        from onoma.systems.nerco.model import NerCo

        return NerCo(empty_encoder(folder), self.parse_options(config.options), len(config.types))

    def restore(self, folder: ModelFolder) -> nn.Module:
        """Not possible."""
        raise OnomaError(NOT_RESTORED.format(system=self.name, folder=folder.path))

    def training(self) -> Training:
        """How NerCo is trained."""
        from onoma.systems.nerco.training import NerCoTraining

        return NerCoTraining()

    def runtime(self, folder: ModelFolder, settings: RuntimeSettings) -> Runtime:
        """Load a trained model."""
        if settings.backend == "onnx":
            from onoma.systems.nerco.onnx_runtime import OnnxNerCo

            return OnnxNerCo(folder, settings)
        from onoma.systems.nerco.torch_runtime import TorchNerCo

        return TorchNerCo.load(folder, settings)

    def export(self, model: nn.Module, folder: Path, *, int8: bool) -> None:
        """Write a trained model as an ONNX graph."""
        from onoma.systems.nerco.export import export_nerco
        from onoma.systems.nerco.model import NerCo

        assert isinstance(model, NerCo)
        export_nerco(model, folder, int8=int8)


SYSTEM = NerCoSystem()
