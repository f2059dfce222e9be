"""Training: recipes, examples, and stages on `transformers.Trainer`. Needs the extra `onoma[train]`."""
