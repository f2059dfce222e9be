"""The spaCy component, in real pipelines."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

import onoma
from onoma import Entity, OnomaError
from onoma.integrations.spacy import OnomaComponent, align

ROOT = Path(__file__).parent.parent.parent
TEXT = "Maria Silva flew to Paris ."
NESTED = "The Rome Players will sing for Maria Silva today ."


@pytest.fixture
def pipeline(tiny_model: Path) -> Callable[..., Language]:
    def build(labels: Any = ("person", "city"), **config: Any) -> Language:
        nlp = spacy.blank("en")
        labels = labels if isinstance(labels, dict) else list(labels)
        nlp.add_pipe(
            "onoma",
            config={"labels": labels, "model": str(tiny_model), "backend": "torch", "device": "cpu", **config},
        )
        return nlp

    return build


def mentions(spans: Any) -> list[tuple[str, str]]:
    return [(span.text, span.label_) for span in spans]


def test_entities_spans_and_scores(pipeline: Callable[..., Language], ner: onoma.Extractor) -> None:
    doc = pipeline()(TEXT)
    found = ner.extract(TEXT, ["person", "city"])
    assert mentions(doc.ents) == mentions(doc.spans["onoma"]) == [("Maria Silva", "person"), ("Paris", "city")]
    assert doc._.onoma == found
    scores = [one.score for one in found]
    assert [ent._.score for ent in doc.ents] == scores
    assert list(doc.spans["onoma"].attrs["scores"]) == scores
    assert doc[0:1]._.score is None


def test_nested_mentions_are_in_spans_and_the_best_of_them_in_ents(pipeline: Callable[..., Language]) -> None:
    doc = pipeline(["person", "city", "band"], overlap="nested")(NESTED)
    assert mentions(doc.spans["onoma"]) == [("The Rome Players", "band"), ("Rome", "city"), ("Maria Silva", "person")]
    band, city, _ = doc.spans["onoma"]
    assert mentions(doc.ents)[0] == (("Rome", "city") if city._.score > band._.score else ("The Rome Players", "band"))
    assert mentions(doc.ents)[1:] == [("Maria Silva", "person")]


def test_options_of_extraction(pipeline: Callable[..., Language]) -> None:
    assert mentions(pipeline(threshold={"city": 1.0})(TEXT).ents) == [("Maria Silva", "person")]
    assert mentions(pipeline(threshold=1)(TEXT).ents) == []
    assert mentions(pipeline({"city": "a large town"})(TEXT).ents) == [("Paris", "city")]
    doc = pipeline(spans_key=None)(TEXT)
    assert (len(doc.spans), len(doc.ents)) == (0, 2)
    doc = pipeline(set_ents=False, spans_key="found")(TEXT)
    assert (len(doc.spans["found"]), len(doc.ents)) == (2, 0)


def test_other_labels_for_one_call(pipeline: Callable[..., Language]) -> None:
    nlp = pipeline(["person"], threshold={"person": 1.0})
    config = {"onoma": {"labels": ["city"]}}
    assert mentions(nlp(TEXT, component_cfg=config).ents) == [("Paris", "city")]
    assert [mentions(doc.ents) for doc in nlp.pipe([TEXT] * 2, component_cfg=config)] == [[("Paris", "city")]] * 2
    assert mentions(nlp(TEXT, component_cfg={"onoma": {"threshold": 0.1}}).ents) == [("Maria Silva", "person")]
    assert mentions(nlp(TEXT).ents) == []


@pytest.mark.parametrize(
    ("overwrite", "expected"),
    [
        (False, [("Maria", "GIVEN"), ("flew", "VERB"), ("Paris", "city")]),
        (True, [("Maria Silva", "person"), ("flew", "VERB"), ("Paris", "city")]),
    ],
)
def test_entities_of_other_components(
    pipeline: Callable[..., Language], overwrite: bool, expected: list[tuple[str, str]]
) -> None:
    nlp = pipeline(overwrite_ents=overwrite)
    ruler = nlp.add_pipe("entity_ruler", before="onoma")
    ruler.add_patterns([{"label": "GIVEN", "pattern": "Maria"}, {"label": "VERB", "pattern": "flew"}])
    assert mentions(nlp(TEXT).ents) == expected


def test_two_components_in_one_pipeline(pipeline: Callable[..., Language], tiny_model: Path) -> None:
    nlp = pipeline(["person"])
    config = {"labels": ["city"], "model": str(tiny_model), "backend": "torch", "device": "cpu", "spans_key": "cities"}
    nlp.add_pipe("onoma", name="cities", config=config)
    doc = nlp(TEXT)
    assert mentions(doc.ents) == [("Maria Silva", "person"), ("Paris", "city")]
    assert mentions(doc.spans["onoma"]) == [("Maria Silva", "person")]
    assert mentions(doc.spans["cities"]) == [("Paris", "city")]
    assert [one.text for one in doc._.onoma] == ["Maria Silva", "Paris"]
    assert nlp.pipe_labels == {"onoma": ["person"], "cities": ["city"]}


# --- alignment


def tokens(*words: str) -> Doc:
    return Doc(spacy.blank("en").vocab, words=list(words), spaces=[False] * len(words))


@pytest.mark.parametrize(
    ("alignment", "expected"),
    [("expand", ["Paris-", "Rome/Oslo"]), ("contract", ["Rome/"]), ("strict", [])],
)
def test_mentions_that_end_inside_a_token(alignment: Any, expected: list[str]) -> None:
    if alignment == "expand":
        doc, entities = tokens("to", "Paris-", "Rome/Oslo"), [(2, 7), (8, 12), (13, 17)]
    else:
        doc, entities = tokens("to", "Paris-", "Rome/", "Oslo."), [(2, 7), (8, 15)]
    found = [Entity(start, end, doc.text[start:end], "city", end / 100) for start, end in entities]
    spans = align(doc, found, alignment)
    assert [span.text for span, _ in spans] == expected
    if alignment == "expand":  # of Rome and Oslo, which are one token, Oslo has the higher score
        assert [score for _, score in spans] == [0.07, 0.17]


@given(
    st.lists(st.tuples(st.text("ab-é汉", min_size=1, max_size=4), st.booleans()), min_size=1, max_size=8),
    st.data(),
)
def test_alignment_follows_its_definition(words: list[tuple[str, bool]], data: st.DataObject) -> None:
    doc = Doc(VOCAB, words=[word for word, _ in words], spaces=[space for _, space in words])
    letters = [number for number, sign in enumerate(doc.text) if sign != " "]
    start, last = sorted((data.draw(st.sampled_from(letters)), data.draw(st.sampled_from(letters))))
    entity = Entity(start, last + 1, doc.text[start : last + 1], "x", 0.5)
    covered = [token for token in doc if token.idx <= last and token.idx + len(token) > start]
    inside = [token for token in covered if token.idx >= start and token.idx + len(token) <= last + 1]
    exact = bool(inside) and inside[0].idx == start and inside[-1].idx + len(inside[-1]) == last + 1
    for alignment, expected in (("expand", covered), ("contract", inside), ("strict", inside if exact else [])):
        found = align(doc, [entity], alignment)  # type: ignore[arg-type]
        assert [list(span) for span, _ in found] == ([expected] if expected else [])


VOCAB = spacy.blank("en").vocab


def test_exact_offsets_are_kept_whatever_the_tokens(pipeline: Callable[..., Language]) -> None:
    nlp = pipeline(["city"], alignment="strict")
    doc = Doc(nlp.vocab, words=["Tom flew", "to Paris", "."], spaces=[True, True, False])
    for _, component in nlp.pipeline:
        doc = component(doc)
    assert (len(doc.ents), len(doc.spans["onoma"])) == (0, 0)
    assert [(one.start, one.end, one.text) for one in doc._.onoma] == [(12, 17, "Paris")]


def test_empty_and_blank_texts(pipeline: Callable[..., Language]) -> None:
    for doc in pipeline().pipe(["", " \n ", TEXT]):
        assert len(doc.ents) == (2 if doc.text == TEXT else 0)


# --- streams and processes


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_pipe_gives_the_same_as_single_calls(pipeline: Callable[..., Language], batch_size: int) -> None:
    nlp = pipeline()
    texts = [TEXT, "We eat soup .", "In Oslo it rains , says Tom .", "", NESTED] * 2
    docs = list(nlp.pipe(texts, batch_size=batch_size))
    assert [doc.text for doc in docs] == texts
    assert [mentions(doc.ents) for doc in docs] == [mentions(nlp(text).ents) for text in texts]
    with_context = list(nlp.pipe([(TEXT, "a")], as_tuples=True))
    assert with_context[0][1] == "a"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_several_processes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("onoma", config={"labels": ["person", "city"], "threads": 1})
    texts = [f"Maria Silva flew to Oslo on day {day}." for day in range(6)]
    expected = list(nlp.pipe(texts))  # loads the model before the processes start
    context = multiprocessing.get_context(method)
    for name in ("Process", "Queue", "Pipe"):
        monkeypatch.setattr(f"spacy.language.mp.{name}", getattr(context, name))
    docs = list(nlp.pipe(texts, n_process=2, batch_size=2))
    assert [mentions(doc.ents) for doc in docs] == [mentions(doc.ents) for doc in expected]
    assert all(("Oslo", "city") in mentions(doc.ents) for doc in docs)
    for doc, other in zip(docs, expected, strict=True):
        assert [ent._.score for ent in doc.ents] == pytest.approx([ent._.score for ent in other.ents])
        assert doc._.onoma[0].text == "Maria Silva"


def test_errors_are_handled_as_in_other_components(pipeline: Callable[..., Language]) -> None:
    nlp = pipeline()
    nlp.get_pipe("onoma").model = "/no/such/model"
    with pytest.raises(OnomaError, match="no model folder"):
        list(nlp.pipe([TEXT]))
    failed = []
    nlp.set_error_handler(lambda name, component, docs, error: failed.extend(docs))
    assert list(nlp.pipe([TEXT])) == []
    assert [doc.text for doc in failed] == [TEXT]


# --- saving


def test_a_saved_pipeline_contains_its_model(
    pipeline: Callable[..., Language], tiny_model: Path, tmp_path: Path
) -> None:
    nlp = pipeline({"person": "a human being", "city": "a large town"}, threshold={"city": 0.2, "person": "complete"})
    for _ in range(2):  # a second time over the first
        nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    component = loaded.get_pipe("onoma")
    assert isinstance(component, OnomaComponent)
    assert component.extractor.folder == tmp_path / "pipeline" / "onoma" / "model"
    assert component.types == nlp.get_pipe("onoma").types
    assert component.threshold == {"city": 0.2, "person": "complete"}
    assert mentions(loaded(TEXT).ents) == mentions(nlp(TEXT).ents) != []
    loaded.to_disk(tmp_path / "pipeline")  # over itself
    assert mentions(spacy.load(tmp_path / "pipeline")(TEXT).ents) == mentions(nlp(TEXT).ents)


@pytest.mark.parametrize(
    "labels",
    [
        {"U.S. city": "a town; [x] = 3 # 100%", "Größe": "", "PERSON": "a human", "person": "another"},
        ["a.b", "c,d", '"q"', "汉", "100%", "size: large"],
    ],
)
def test_labels_are_the_same_after_saving(labels: Any, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("onoma", config={"labels": labels})
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("onoma").types == nlp.get_pipe("onoma").types


def test_a_pipeline_with_the_embedded_model_is_saved_without_it(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("onoma", config={"labels": ["city"]})
    nlp.to_disk(tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 1e6
    assert mentions(spacy.load(tmp_path)("It rained in Oslo.").ents) == [("Oslo", "city")]
    again = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert mentions(again("It rained in Oslo.").ents) == [("Oslo", "city")]


def test_documents_keep_their_scores_in_files(pipeline: Callable[..., Language], tmp_path: Path) -> None:
    nlp = pipeline()
    doc = nlp(TEXT)
    doc.to_disk(tmp_path / "doc")
    again = Doc(nlp.vocab).from_disk(tmp_path / "doc")
    assert again._.onoma == doc._.onoma
    assert [ent._.score for ent in again.ents] == [ent._.score for ent in doc.ents]
    assert list(again.spans["onoma"].attrs["scores"]) == list(doc.spans["onoma"].attrs["scores"])


# --- evaluation, use


def test_nlp_evaluate(pipeline: Callable[..., Language]) -> None:
    nlp = pipeline()
    gold = {"entities": [(0, 11, "person"), (20, 25, "band")]}
    scores = nlp.evaluate([Example.from_dict(nlp.make_doc(TEXT), gold)])
    assert (scores["ents_p"], scores["ents_r"], scores["ents_f"]) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "labels"),
        ({"labels": []}, "no labels are given"),
        ({"labels": "person"}, "labels"),
        ({"labels": ["person"], "threshold": "high"}, "threshold"),
        ({"labels": ["person"], "threshold": {"city": 0.4}}, "city, which is not among the labels"),
        ({"labels": ["person"], "overlap": "crossed"}, "overlap"),
        ({"labels": ["person"], "alignment": "near"}, "alignment"),
        ({"labels": ["person"], "thresold": 0.3}, "thresold"),
        ({"labels": {"city: a large town": ""}}, "spaCy cannot hold these labels.*Fix: write names without :"),
        ({"labels": {"size=large": ""}}, "spaCy cannot hold these labels"),
        ({"labels": ["${price}"]}, "spaCy cannot hold these labels"),
        ({"labels": {"price": "such as $5"}}, "spaCy cannot hold these labels"),
    ],
)
def test_bad_configurations_are_refused_when_the_component_is_added(config: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        spacy.blank("en").add_pipe("onoma", config=config)


def test_chinese() -> None:
    nlp = spacy.blank("zh")
    nlp.add_pipe("onoma", config={"labels": ["人名", "城市"]})
    assert ("北京", "城市") in mentions(nlp("王芳昨天飞往北京。").ents)


@pytest.mark.slow
def test_spacy_finds_the_installed_component_by_itself(tmp_path: Path) -> None:
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    info = tmp_path / "onoma_probe-1.dist-info"  # what an installation writes
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: onoma-probe\nVersion: 1\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items()) for group, rows in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    script = 'import spacy; print(spacy.blank("en").add_pipe("onoma", config={"labels": ["city"]}))'
    path = os.pathsep.join([str(tmp_path), *filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "OnomaComponent('onoma', labels: city, model: embedded)\n"
