"""Training: recipes, examples, and stages on `transformers.Trainer`. It needs the extra `onoma[train]`."""

from typing import TYPE_CHECKING, Any

from onoma.errors import OnomaError

if TYPE_CHECKING:
    from onoma.training.few_data import fine_tune
    from onoma.training.run import train

__all__ = ["fine_tune", "train"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'onoma.training' has no attribute {name!r}")
    try:
        from onoma.training import few_data, run
    except ModuleNotFoundError as error:
        raise OnomaError(f'training needs {error.name}. Fix: pip install "onoma[train]"') from error
    return getattr(few_data if name == "fine_tune" else run, name)
