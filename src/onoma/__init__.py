"""Onoma: name the entity types you want, in words; get back every mention, with exact offsets."""

from onoma.entities import Corpus, Document, Entity, EntityType
from onoma.errors import DataError, OnomaError

__version__ = "0.1.0"

__all__ = ["Corpus", "DataError", "Document", "Entity", "EntityType", "OnomaError", "__version__"]
