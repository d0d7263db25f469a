"""What a person sees: progress, tables, the summary of an audit. No other room imports rich."""
