"""BINDER: a bi-encoder with learned thresholds (Zhang et al., ICLR 2023).

PyTorch and onnxruntime are imported by the methods that need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import Runtime, RuntimeSettings
from onoma.systems.binder.options import PROTOTYPES_FILE, RENAMED, BinderOptions
from onoma.systems.options import parse_options

if TYPE_CHECKING:
    from torch import nn

    from onoma.training.stages import Training


class BinderSystem:
    """BINDER's entry in the registry."""

    name = "binder"
    artifacts = (PROTOTYPES_FILE,)
    optional_stages: tuple[str, ...] = ()

    def parse_options(self, values: Mapping[str, Any]) -> BinderOptions:
        """The options of a recipe or of config.json."""
        return parse_options(BinderOptions, values, RENAMED)

    def stage_names(self, options: BinderOptions) -> tuple[str, ...]:
        """There is one stage."""
        return ("binder",)

    def build(self, config: ModelConfig, folder: Path) -> nn.Module:
        """An untrained model of the shape that a configuration describes."""
        from onoma.systems.binder.model import Binder
        from onoma.systems.blocks.encoders import empty_encoder

        options = self.parse_options(config.options)
        type_encoder = None if options.shared_encoder or options.types == "atomic" else empty_encoder(folder)
        return Binder(empty_encoder(folder), type_encoder, options, config.max_tokens, len(config.types))

    def restore(self, folder: ModelFolder) -> nn.Module:
        """A trained model from exported ONNX graphs."""
        from onoma.systems.binder.restore import restore_binder

        return restore_binder(folder, self.parse_options(folder.config.options))

    def training(self) -> Training:
        """How BINDER is trained."""
        from onoma.systems.binder.training import BinderTraining

        return BinderTraining()

    def runtime(self, folder: ModelFolder, settings: RuntimeSettings) -> Runtime:
        """Load a trained model."""
        if settings.backend == "onnx":
            from onoma.systems.binder.onnx_runtime import OnnxBinder

            return OnnxBinder(folder, settings)
        from onoma.systems.binder.torch_runtime import TorchBinder

        return TorchBinder.load(folder, settings)

    def export(self, model: nn.Module, folder: Path, *, int8: bool) -> None:
        """Write a trained model as ONNX graphs."""
        from onoma.systems.binder.export import export_binder
        from onoma.systems.binder.model import Binder

        assert isinstance(model, Binder)
        export_binder(model, folder, int8=int8)


SYSTEM = BinderSystem()
