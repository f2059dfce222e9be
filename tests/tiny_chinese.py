"""A small Chinese corpus and a lexicon with vectors, for tests of NerCo."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from onoma import Document
from onoma.data import write
from onoma.systems.nerco.word_vectors import VECTORS_FILE, WORDS_FILE
from tiny import document

PEOPLE = ("王芳", "李建国", "欧阳明", "张伟", "陈小红")
PLACES = ("北京", "上海市", "黑龙江省", "南京", "重庆")
PATTERNS = (
    "[person|{person}]昨天去了[city|{city}]。",
    "在[city|{city}]工作的[person|{person}]今天回家了。",
    "[city|{city}]的天气很好，[person|{person}]说。",
    "Tom和[person|{person}]都喜欢喝茶。",
    "我们每天吃米饭。",
)
LEXICON = (*PEOPLE, *PLACES, "昨天", "今天", "天气", "工作", "喜欢", "喝茶", "米饭", "江省", "京的天")
LABELS = ["city", "person"]
OPTIONS: dict[str, Any] = {
    "heads": 2,
    "head_size": 8,
    "inner_size": 32,
    "embedding_dropout": 0.1,
    "inner_dropout": 0.0,
    "output_dropout": 0.1,
}


def documents() -> list[Document]:
    """Every pattern with every person and every place."""
    filled = (pattern.format(person=p, city=c) for pattern, p, c in product(PATTERNS, PEOPLE, PLACES))
    return [document(marked) for marked in dict.fromkeys(filled)]


def write_chinese_corpus(root: Path) -> Path:
    """The corpus `chinese`, a lexicon and word vectors in one folder."""
    texts = documents()
    parts = {"train": [one for i, one in enumerate(texts) if i % 6 > 1], "dev": texts[::6], "test": texts[1::6]}
    for name, part in parts.items():
        write(part, root / "chinese" / f"{name}.jsonl")
    (root / "lexicon.txt").write_text("".join(f"{word} 10\n" for word in LEXICON), "utf-8")
    names = [*LEXICON[:12], *sorted(set("".join(LEXICON)))]
    (root / "vectors").mkdir()
    np.save(root / "vectors" / VECTORS_FILE, np.random.default_rng(0).normal(size=(len(names), 12)).astype(np.float32))
    (root / "vectors" / WORDS_FILE).write_text("\n".join(names) + "\n", "utf-8")
    return root


def nerco_recipe(encoder: Path) -> dict[str, Any]:
    """The values of a recipe that learns the corpus in a few seconds."""
    return {
        "system": "nerco",
        "encoder": str(encoder),
        "max_tokens": 130,
        "parts": {"lexicon": "lexicon.txt", "word_vectors": "vectors"},
        "data": {"corpora": [{"path": "chinese"}], "names": "labels", "windows": "sentence"},
        "options": dict(OPTIONS),
        "training": {
            "max_steps": 80,
            "batch_size": 16,
            "learning_rate": 5e-3,
            "eval_steps": 20,
            "dataloader_workers": 0,
            "checkpoints": False,
        },
        "stages": {"contrast": {"max_steps": 20, "eval_steps": 10}, "head": {"max_steps": 5, "eval_steps": 5}},
    }
