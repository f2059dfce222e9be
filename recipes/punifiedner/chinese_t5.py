"""Make a Chinese T5 of a Chinese BERT, as the encoder of recipes/punifiedner/chinese.yaml:

    python recipes/punifiedner/chinese_t5.py --data CORPORA --output encoders/flan-t5-small-zh \\
        --t5 google/flan-t5-small --bert BAAI/bge-small-zh-v1.5
    python recipes/punifiedner/chinese_t5.py --data CORPORA --output encoders/t5-bert-zh

With --t5, the T5 keeps its layers and gets the vocabulary and the embeddings of the BERT. Without, it has the weights
of the BERT as far as they fit, and its encoder is trained for some minutes to give the states of the BERT (`--steps 0`:
not). Then, on texts of train splits, the whole T5 learns to write texts that it read with masked tokens
(`--denoising-steps 0`: not), which teaches it to copy. It has no language model yet: that comes from
recipes/punifiedner/chinese_adapt.yaml. The folder loads as `T5ForConditionalGeneration`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from onoma.data import load_corpus
from onoma.files import atomic_folder
from onoma.inputs.batches import bucket_by_length, pad_rows
from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.blocks.encoders import load_encoder, load_t5, save_tokenizer
from onoma.systems.punifiedner.from_bert import (
    agreement,
    denoise,
    denoising_loss,
    distil,
    t5_from_bert,
    t5_with_embeddings,
)

CORPORA = ("resume", "cluener", "ecommerce", "msra", "weibo", "ec", "uner_zh_gsd", "video_music_book", "cmeee")
"""Corpora below DATA/zh whose train splits are read."""
MAX_TOKENS = 128
HELD_OUT = 64  # texts by which the encoders are compared


def main() -> None:
    """Convert, train, compare and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpora")
    parser.add_argument("--bert", default="google-bert/bert-base-chinese", help="hub name or folder")
    parser.add_argument("--t5", help="hub name or folder of a T5 whose layers are kept")
    parser.add_argument("--output", required=True, type=Path, help="folder of the T5")
    parser.add_argument("--corpora", nargs="*", default=CORPORA, help="below DATA/zh")
    parser.add_argument("--decoder-layers", type=int, default=4, help="without --t5")
    parser.add_argument("--steps", type=int, default=4000, help="of the encoder, without --t5")
    parser.add_argument("--denoising-steps", type=int, default=4000)
    parser.add_argument("--denoising-rate", type=float, default=5e-3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    texts = [one.text for name in arguments.corpora for one in load_corpus(arguments.data / "zh" / name, "train")]
    make(arguments.bert, arguments.output, texts, arguments)


def make(bert_name: str, output: Path, texts: Sequence[str], arguments: argparse.Namespace) -> None:
    """Write the folder of a T5 that was made of a BERT and texts."""
    torch.manual_seed(arguments.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with atomic_folder(output) as folder:
        save_tokenizer(bert_name, folder)
        tokenizer = WordTokenizer.load(folder)
        rows = tokenizer.encode(np.random.default_rng(arguments.seed).permutation(np.array(texts)).tolist(), MAX_TOKENS)
        test = tensors(rows[:HELD_OUT], tokenizer.pad, device)
        bert = load_encoder(bert_name)
        if arguments.t5:
            shared = shared_tokens(tokenizer, arguments.t5)
            print(f"{len(shared)} shared tokens", flush=True)
            t5 = t5_with_embeddings(load_t5(arguments.t5), bert, shared, end=tokenizer.sep, start=tokenizer.cls)
        else:
            t5 = t5_from_bert(bert, decoder_layers=arguments.decoder_layers, end=tokenizer.sep, start=tokenizer.cls)
        t5.to(device)
        if arguments.steps and not arguments.t5:
            bert.to(device)
            print(f"mean cosine of states before training: {agreement(t5, bert, *test):.3f}", flush=True)
            batches = endless(rows[HELD_OUT:], arguments.batch_size, tokenizer.pad, device, arguments.seed)
            distil(t5, bert, batches, arguments.steps, on_step=report)
            print(f"mean cosine of states after training: {agreement(t5, bert, *test):.3f}", flush=True)
        if arguments.denoising_steps:
            batches = endless(rows[HELD_OUT:], arguments.batch_size, tokenizer.pad, device, arguments.seed + 1)
            steps, rate = arguments.denoising_steps, arguments.denoising_rate
            denoise(t5, batches, steps, mask_token=tokenizer.unk, rate=rate, on_step=report)
            with torch.inference_mode():
                loss = denoising_loss(t5, *test, mask_token=tokenizer.unk)
            print(f"denoising loss on held-out texts: {float(loss):.4f}", flush=True)
        t5.to("cpu").save_pretrained(folder)
    print(f"{sum(one.numel() for one in t5.parameters()) / 1e6:.0f} million parameters, written to {output}")


def shared_tokens(tokenizer: WordTokenizer, t5_name: str) -> dict[int, int]:
    """Tokens that the vocabulary of the BERT and that of a T5 have: the word pieces "a" and "##a" are "▁a" and "a"."""
    with TemporaryDirectory() as folder:
        save_tokenizer(t5_name, folder)
        other = WordTokenizer.load(folder).tokenizer.get_vocab()
    shared = {}
    for piece, token in tokenizer.tokenizer.get_vocab().items():
        names = (piece[2:],) if piece.startswith("##") else (f"▁{piece}", piece)
        known = [other[name] for name in names if name in other]
        if known:
            shared[token] = known[0]
    return shared


def endless(rows: Sequence[list[int]], size: int, pad: int, device: str, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of texts of similar length, again and again in other orders."""
    generator = np.random.default_rng(seed)
    while True:
        batches = bucket_by_length([len(row) for row in rows], size)
        for place in generator.permutation(len(batches)):
            yield tensors([rows[row] for row in batches[place]], pad, device)


def tensors(rows: Sequence[list[int]], pad: int, device: str) -> tuple[Tensor, Tensor]:
    """Rows of token ids as one padded tensor, and its mask."""
    ids, mask = pad_rows(rows, pad)
    return torch.as_tensor(ids, device=device), torch.as_tensor(mask, device=device)


def report(step: int, loss: Tensor) -> None:
    """Print the loss now and then."""
    if step % 500 == 0:
        print(f"step {step}, loss {float(loss):.4f}", flush=True)


if __name__ == "__main__":
    main()
