"""Encoders as other packages want them: a module a package, which is needed for nothing else."""
