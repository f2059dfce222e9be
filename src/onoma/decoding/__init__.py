"""From proposals to the spans that are reported: thresholds, ranking and overlap. Pure functions on arrays."""

from onoma.decoding.decode import decode, ranking_scores
from onoma.decoding.overlap import Overlap, resolve_overlaps
from onoma.decoding.proposals import Proposals, stitch

__all__ = ["Overlap", "Proposals", "decode", "ranking_scores", "resolve_overlaps", "stitch"]
