"""What the type encoder reads of a type."""

from __future__ import annotations

from typing import Protocol

from onoma.entities import EntityType


class TypeOptions(Protocol):
    """The options of a system, as far as they matter here."""

    @property
    def types(self) -> str:
        """How types are given: "description", "name", or in other ways."""


def type_text(entity_type: EntityType, options: TypeOptions) -> str:
    """The name, and with `types="description"` also the description and examples where there are any.

    >>> from onoma.systems.binder.options import BinderOptions
    >>> type_text(EntityType("drug", "a medicine", ("aspirin",)), BinderOptions())
    'drug: a medicine, such as aspirin'
    """
    if options.types != "description":
        return entity_type.name
    text = f"{entity_type.name}: {entity_type.description}" if entity_type.description else entity_type.name
    return f"{text}, such as {', '.join(entity_type.examples)}" if entity_type.examples else text
