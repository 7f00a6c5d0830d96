"""What a run asks of its evaluator, and what becomes of the answers: scores, videos, the best checkpoints."""
