"""SCL-RAI: span classification that is robust to unlabelled entities (Si et al., COLING 2022).

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
from onoma.systems.scl_rai.options import DATASTORE_FILE, SclRaiOptions

if TYPE_CHECKING:
    from torch import nn

    from onoma.training.stages import Training


class SclRaiSystem:
    """SCL-RAI's entry in the registry."""

    name = "scl-rai"
    artifacts = (DATASTORE_FILE,)
    optional_stages: tuple[str, ...] = ()

    def parse_options(self, values: Mapping[str, Any]) -> SclRaiOptions:
        """The options of a recipe or of config.json."""
        return parse_options(SclRaiOptions, values)

    def stage_names(self, options: SclRaiOptions) -> tuple[str, ...]:
        """There is one stage."""
        return ("scl-rai",)

    def build(self, config: ModelConfig, folder: Path) -> nn.Module:
        """An untrained model of the shape that a configuration describes."""
        from onoma.systems.blocks.encoders import empty_encoder
        from onoma.systems.scl_rai.model import SclRai

        return SclRai(empty_encoder(folder), self.parse_options(config.options), len(config.types))

    def restore(self, folder: ModelFolder) -> nn.Module:
        """Not possible."""
        raise OnomaError(NOT_RESTORED.format(system=self.name, folder=folder.path))

    def training(self) -> Training:
        """How SCL-RAI is trained."""
        from onoma.systems.scl_rai.training import SclRaiTraining

        return SclRaiTraining()

    def runtime(self, folder: ModelFolder, settings: RuntimeSettings) -> Runtime:
        """Load a trained model."""
        if settings.backend == "onnx":
            from onoma.systems.scl_rai.onnx_runtime import OnnxSclRai

            return OnnxSclRai(folder, settings)
        from onoma.systems.scl_rai.torch_runtime import TorchSclRai

        return TorchSclRai.load(folder, settings)

    def export(self, model: nn.Module, folder: Path, *, int8: bool) -> None:
        """Write a trained model as an ONNX graph."""
        from onoma.systems.scl_rai.export import export_scl_rai
        from onoma.systems.scl_rai.model import SclRai

        assert isinstance(model, SclRai)
        export_scl_rai(model, folder, int8=int8)


SYSTEM = SclRaiSystem()
