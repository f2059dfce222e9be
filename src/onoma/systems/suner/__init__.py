"""SUNER: detect spans, mark them, match them with types (Mao et al., IJCAI 2024).

PyTorch and onnxruntime are imported by the methods that need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onoma.errors import OnomaError
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import NOT_RESTORED, Runtime, RuntimeSettings
from onoma.systems.options import parse_options
from onoma.systems.suner.options import RENAMED, STAGES, SunerOptions

if TYPE_CHECKING:
    from torch import nn

    from onoma.training.stages import Training


class SunerSystem:
    """SUNER's entry in the registry."""

    name = "suner"
    artifacts: tuple[str, ...] = ()
    optional_stages: tuple[str, ...] = ()

    def parse_options(self, values: Mapping[str, Any]) -> SunerOptions:
        """The options of a recipe or of config.json."""
        return parse_options(SunerOptions, values, RENAMED)

    def stage_names(self, options: SunerOptions) -> tuple[str, ...]:
        """Detection and classification, or one stage for all."""
        return STAGES[options.form]

    def build(self, config: ModelConfig, folder: Path) -> nn.Module:
        """An untrained model of the shape that a configuration describes."""
        from onoma.systems.blocks.encoders import empty_encoder
        from onoma.systems.suner.model import Suner

        options = self.parse_options(config.options)
        detection_encoder = empty_encoder(folder) if options.form == "two-stage" else None
        return Suner(empty_encoder(folder), detection_encoder, options)

    def restore(self, folder: ModelFolder) -> nn.Module:
        """Not possible."""
        raise OnomaError(NOT_RESTORED.format(system=self.name, folder=folder.path))

    def training(self) -> Training:
        """How SUNER is trained."""
        from onoma.systems.suner.training import SunerTraining

        return SunerTraining()

    def runtime(self, folder: ModelFolder, settings: RuntimeSettings) -> Runtime:
        """Load a trained model."""
        if settings.backend == "onnx":
            from onoma.systems.suner.onnx_runtime import OnnxSuner

            return OnnxSuner(folder, settings)
        from onoma.systems.suner.torch_runtime import TorchSuner

        return TorchSuner.load(folder, settings)

    def export(self, model: nn.Module, folder: Path, *, int8: bool) -> None:
        """Write a trained model as ONNX graphs."""
        from onoma.systems.suner.export import export_suner
        from onoma.systems.suner.model import Suner

        assert isinstance(model, Suner)
        export_suner(model, folder, int8=int8)


SYSTEM = SunerSystem()
