"""spaCy: `nlp.add_pipe("onoma", config={"labels": ["person", "city"]})`.

Onoma finds mentions by characters; spans of spaCy consist of whole tokens. `alignment` says what happens to a mention
that starts or ends inside a token: "expand" takes the whole token, "contract" leaves the token out, and "strict" leaves
the mention out. Whatever it is, `doc._.onoma` has all entities with their exact offsets.

Annotations in this file are read by spaCy to check the configuration, so they must not be strings.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onoma.decoding.overlap import Overlap, check_overlap
from onoma.entities import Entity, Preset
from onoma.errors import OnomaError
from onoma.extractor import Extractor, load
from onoma.labels.parsing import Labels, Threshold, parse_labels, resolve_thresholds
from onoma.locks import ForkSafeLock
from onoma.models.hub import EMBEDDED
from onoma.systems.base import Backend

try:
    from spacy.language import Language
    from spacy.scorer import get_ner_prf
    from spacy.tokens import Doc, Span, SpanGroup
    from spacy.training import Example
    from spacy.util import raise_error
    from thinc.api import Config
except ModuleNotFoundError as error:
    raise OnomaError('the component "onoma" needs spaCy. Fix: pip install "onoma[spacy]"') from error

Alignment = Literal["expand", "contract", "strict"]

NAME = "onoma"
MODEL_FOLDER = "model"
"""Where `nlp.to_disk` puts the model, below the folder of the component."""

DEFAULTS: dict[str, Any] = {
    "model": None,
    "threshold": None,
    "overlap": "flat",
    "alignment": "expand",
    "spans_key": NAME,
    "set_ents": True,
    "overwrite_ents": False,
    "backend": "auto",
    "device": None,
    "threads": None,
}


@Language.factory(
    NAME,
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
    default_config=DEFAULTS,
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def create_component(
    nlp: Language,
    name: str,
    labels: list[str] | dict[str, str],
    model: str | None,
    threshold: float | Preset | dict[str, float | Preset] | None,
    overlap: Overlap,
    alignment: Alignment,
    spans_key: str | None,
    set_ents: bool,
    overwrite_ents: bool,
    backend: Backend,
    device: str | None,
    threads: int | None,
) -> "OnomaComponent":
    """The component, from its configuration."""
    _check_saving(labels)
    return OnomaComponent(
        nlp.vocab,
        name,
        labels=labels,
        model=model,
        threshold=threshold,
        overlap=overlap,
        alignment=alignment,
        spans_key=spans_key,
        set_ents=set_ents,
        overwrite_ents=overwrite_ents,
        load_options={"backend": backend, "device": device, "threads": threads},
    )


class OnomaComponent:
    """Finds entities of the given labels.

    Args:
        labels: names, or name → description.
        model: a folder or a hub name; None for the embedded model. It is loaded when the first document comes.
        threshold: the score to reach: a number, "precise", "balanced" or "complete", or one of these per label.
        overlap: "flat", "nested" or "any". `doc.ents` has no overlaps in any case; `doc.spans` has all mentions.
        alignment: what happens to mentions that start or end inside a token: "expand", "contract" or "strict".
        spans_key: the group of `doc.spans` for all mentions; their scores are its `attrs["scores"]`. None for no group.
        set_ents: whether to write `doc.ents`.
        overwrite_ents: whether our entities replace those of former components that they overlap.
        load_options: backend, device and threads, as for `onoma.load`.
    """

    def __init__(
        self,
        vocab: Any,
        name: str = NAME,
        *,
        labels: Labels,
        model: str | None = None,
        threshold: Threshold | None = None,
        overlap: Overlap = "flat",
        alignment: Alignment = "expand",
        spans_key: str | None = NAME,
        set_ents: bool = True,
        overwrite_ents: bool = False,
        load_options: dict[str, Any] | None = None,
    ) -> None:
        check_overlap(overlap)
        self.vocab, self.name, self.model = vocab, name, model
        self.types = parse_labels(labels)
        resolve_thresholds(self.types, threshold, 0.5, {})  # raises an error for labels or words that do not exist
        self.threshold, self.overlap, self.alignment = threshold, overlap, alignment
        self.spans_key, self.set_ents, self.overwrite_ents = spans_key, set_ents, overwrite_ents
        self.load_options = load_options or {}
        self._extractor: Extractor | None = None
        self._lock = ForkSafeLock()
        for label in self.labels:
            vocab.strings.add(label)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, for `nlp.pipe_labels`."""
        return tuple(one.name for one in self.types)

    @property
    def extractor(self) -> Extractor:
        """The model, which is loaded when it is first needed."""
        with self._lock:
            if self._extractor is None:
                self._extractor = load(self.model, **self.load_options)
            return self._extractor

    def __call__(self, doc: Doc, labels: Labels | None = None, threshold: Threshold | None = None) -> Doc:
        """Annotate a document; other labels and thresholds can be given for one call, with `component_cfg`."""
        (entities,) = self._extract([doc], labels, threshold)
        self.annotate(doc, entities)
        return doc

    def pipe(
        self,
        stream: Iterable[Doc],
        *,
        batch_size: int = 128,
        labels: Labels | None = None,
        threshold: Threshold | None = None,
    ) -> Iterator[Doc]:
        """Annotate documents, `batch_size` at a time."""
        stream = iter(stream)
        while docs := list(islice(stream, batch_size)):
            try:
                for doc, entities in zip(docs, self._extract(docs, labels, threshold), strict=True):
                    self.annotate(doc, entities)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def _extract(self, docs: Sequence[Doc], labels: Labels | None, threshold: Threshold | None) -> list[list[Entity]]:
        return self.extractor.extract(
            [doc.text for doc in docs],
            self.types if labels is None else labels,
            threshold=self.threshold if labels is None and threshold is None else threshold,
            overlap=self.overlap,
        )

    def annotate(self, doc: Doc, entities: Sequence[Entity]) -> None:
        """Write entities into a document."""
        found = {**doc.user_data.get(NAME, {})}
        found[self.name] = [[one.start, one.end, one.label, one.score] for one in entities]
        doc.user_data[NAME] = found
        aligned = align(doc, entities, self.alignment)
        for span, score in aligned:
            span._.score = score
        if self.spans_key is not None:
            scores = np.array([score for _, score in aligned], np.float64)
            spans = [span for span, _ in aligned]
            doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=spans, attrs={"scores": scores})
        if self.set_ents:
            own = [span for span, _ in sorted(aligned, key=lambda one: -one[1])]
            ranked = [*own, *doc.ents] if self.overwrite_ents else [*doc.ents, *own]
            doc.set_ents(without_overlaps(ranked))

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        """Precision, recall and F1 of `doc.ents`, for `nlp.evaluate`."""
        scores: dict[str, Any] = get_ner_prf(examples)
        return scores

    def set_error_handler(self, handler: Any) -> None:
        """Let spaCy decide what happens to documents that raise an error."""
        self._error_handler = handler

    def get_error_handler(self) -> Any:
        """What happens to documents that raise an error; by default, the error is raised."""
        return getattr(self, "_error_handler", raise_error)

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        """Save the model beside the pipeline, unless it is the embedded one, which comes with the package."""
        Path(path).mkdir(parents=True, exist_ok=True)
        source, target = self.extractor.folder, Path(path) / MODEL_FOLDER
        if source == EMBEDDED or source.resolve() == target.resolve():
            return
        if target.exists():
            shutil.rmtree(target)
        self.extractor.save_pretrained(target)

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> "OnomaComponent":
        """Use the model that was saved with the pipeline."""
        saved = Path(path) / MODEL_FOLDER
        if saved.is_dir():
            self.model, self._extractor = str(saved), None
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What a process gets that is not a fork of this one: everything but the loaded model."""
        return {**self.__dict__, "_extractor": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=ForkSafeLock())

    def __repr__(self) -> str:
        return f"OnomaComponent({self.name!r}, labels: {', '.join(self.labels)}, model: {self.model or 'embedded'})"


def _check_saving(labels: list[str] | dict[str, str]) -> None:
    """Refuse labels that would be others after `nlp.to_disk` and `spacy.load`: spaCy's configuration has a syntax."""
    config = Config({NAME: {"labels": labels}})
    try:
        text = config.to_str()  # which is read in both ways
        kept = all(Config().from_str(text, interpolate=each) == config for each in (True, False))
    except Exception:  # configparser, srsly and confection each have their own
        kept = False
    if not kept:
        fix = "write names without : and =, and neither names nor descriptions with $"
        raise OnomaError(f"the configuration of spaCy cannot hold these labels: {labels!r:.300}. Fix: {fix}")


def align(doc: Doc, entities: Iterable[Entity], alignment: Alignment) -> list[tuple[Span, float]]:
    """The spans of tokens that entities stand for, each once, with scores and in the order of the text.

    Several mentions inside of one token become the same span with "expand"; the one with the highest score stays.
    """
    best: dict[tuple[int, int], tuple[Span, float]] = {}
    for entity in entities:
        span = doc.char_span(entity.start, entity.end, label=entity.label, alignment_mode=alignment)
        if span is None:
            continue
        key = span.start, span.end
        if key not in best or best[key][1] < entity.score:
            best[key] = span, entity.score
    return [best[key] for key in sorted(best)]


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """The spans that share no token with an earlier one."""
    taken: set[int] = set()
    kept = []
    for span in spans:
        tokens = range(span.start, span.end)
        if taken.isdisjoint(tokens):
            taken.update(tokens)
            kept.append(span)
    return kept


def exact_entities(doc: Doc) -> list[Entity]:
    """The entities that components of this kind found, with exact offsets: `doc._.onoma`."""
    rows = (row for found in doc.user_data.get(NAME, {}).values() for row in found)
    return sorted(Entity(start, end, doc.text[start:end], label, score) for start, end, label, score in rows)


if not Span.has_extension("score"):
    Span.set_extension("score", default=None)
Doc.set_extension(NAME, getter=exact_entities, force=True)
