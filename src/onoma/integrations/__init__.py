"""Onoma in other libraries: one module for each, named after it. Nothing here is imported by the rest of the package.

- `onoma.integrations.spacy`: the pipeline component "onoma"
- `onoma.integrations.gliner`: a class with the methods of GLiNER's
- `onoma.integrations.presidio`: a recogniser of personal data
- `onoma.integrations.pandas`, `onoma.integrations.polars`: entities of a column of texts
"""
