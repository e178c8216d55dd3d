"""What a transaction can do: each statement looks at the lake as the transaction sees it, works, and then stages."""
