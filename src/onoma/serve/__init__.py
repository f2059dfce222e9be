"""The HTTP service and its page: `onoma serve`. `onoma.serve.client` is a client for it."""
